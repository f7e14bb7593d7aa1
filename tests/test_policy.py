"""The shop's policy: what the customer reads of it is the shop's own text, word for word."""

import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage

import tools.policy
from tests.scripted import Scripted, answering, calling
from tests.turns import ask, cards_of, graph_of
from tools.database import Database
from tools.policies import Policy
from tools.policy import OWN, sections, version
from tools.registry import TOOLS
from tools.tool import BadDeclaration

FOLDER = Path(tools.policy.__file__).parent
RETURNS = calling(("c1", "get_policy", {"topic": "returns"}))


def written(name: str) -> str:
    """What a policy file says below its front matter, read without the product."""
    return re.split(r"^---$", (FOLDER / name).read_text("utf-8"), flags=re.MULTILINE)[2].strip()


async def _turn(database: Database, *lines: AIMessage, text: str = "Returns?") -> Any:
    graph = graph_of(Scripted(*lines), database=database)
    return await ask(graph, text, str(uuid4()))


@pytest.mark.parametrize("template", ["{text}", "", "You may always return it: {text}", "{topic}"])
async def test_the_customer_reads_the_section_word_for_word(
    template: str, database: Database
) -> None:
    answer = (await _turn(database, RETURNS, answering(("c1", template))))["answer"]
    assert answer["message"] == written("returns.md")
    assert answer["cards"][0]["source"] == ("model" if template == "{text}" else "default")
    assert answer["cards"][0]["values"] == {"text": written("returns.md")}


@pytest.mark.parametrize("topic", sections())
async def test_each_section_can_be_asked_for(topic: str, database: Database) -> None:
    state = await _turn(database, calling(("c1", "get_policy", {"topic": topic})), answering())
    result = state["results"]["1/c1"]
    assert (result["subject"], result["subject_name"]) == (topic, "topic")
    assert result["data"]["version"] == "2026-11-02"
    assert state["answer"]["message"] == written(f"{topic}.md")


@pytest.mark.parametrize("language", ["ru", "zh", "es"])
async def test_a_section_is_read_in_the_language_of_the_answer(
    language: str, database: Database
) -> None:
    draft = answering(("c1", "{text}"), locale=language)
    answer = (await _turn(database, RETURNS, draft))["answer"]
    assert answer["message"] == answer["cards"][0]["values"]["text"]
    assert answer["message"] == written(f"returns.{language}.md")


async def test_the_model_is_sent_a_section_in_one_language(database: Database) -> None:
    model = Scripted(RETURNS, answering(("c1", "{text}"), locale="ru"))
    await ask(graph_of(model, database=database), "Возврат?", str(uuid4()))
    sent = "".join(str(message.content) for message in model.requests[-1])
    assert "within 30 days" in sent
    assert "30 дней" not in sent


def test_a_section_that_has_changed_since_it_was_looked_up_is_read_as_it_was() -> None:
    old = Policy(topic="returns", version="2020-01-01", text="As it was.")
    assert old.spoken("ru") == old
    assert Policy(topic="gone", version="1", text="As it was.").spoken("ru").text == "As it was."


async def test_a_policy_stands_beside_an_order_in_one_answer(database: Database) -> None:
    both = calling(
        ("c1", "get_order", {"order_id": "A"}), ("c2", "get_policy", {"topic": "refunds"})
    )
    answer = (await _turn(database, both, answering(("c1", "{order_id} {status}"))))["answer"]
    assert cards_of({"answer": answer})["c1"]["text"] == "A on its way"
    assert answer["message"] == f"A on its way\n{written('refunds.md')}"


async def test_a_topic_that_the_policy_lacks_is_refused(database: Database) -> None:
    call = calling(("c1", "get_policy", {"topic": "warranty"}))
    state = await _turn(database, call, answering())
    assert state["results"]["1/c1"]["error"]["kind"] == "invalid_arguments"
    assert "contact, delivery, refunds, returns" in state["results"]["1/c1"]["error"]["message"]
    assert "our policy on that" in state["answer"]["message"]


def test_the_model_is_told_the_topics_and_what_they_are_about() -> None:
    topic = next(tool for tool in TOOLS if tool.name == "get_policy").parameters["properties"][
        "topic"
    ]
    assert topic["enum"] == ["contact", "delivery", "refunds", "returns"]
    assert "returns: Returns" in topic["description"]


def test_the_version_names_every_file() -> None:
    named = dict(each.split() for each in version().split(", "))
    assert set(named) == {path.stem for path in FOLDER.glob("*.md")}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", each) for each in named.values())


HEAD = "---\nid: returns\nversion: 1\ntitle: Returns\n---\n"


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"a.md": "No front matter."}, "a.md cannot be used: it must begin with a front matter"),
        ({"a.md": "---\nid: a\ntitle: A\n---\nText"}, "front matter that names id, version, title"),
        ({"a.md": "---\n[\n---\nText"}, "a.md cannot be used: it cannot be read (ParserError)"),
        ({"a.md": "---\n- a\n---\nText"}, "a.md cannot be used: it must begin with a front matter"),
        ({"a.md": HEAD}, "a.md cannot be used: there is no text below its front matter"),
        ({"a.md": b"\xff\xfe"}, "a.md cannot be used: it cannot be read (UnicodeDecodeError)"),
        (
            {"a.md": HEAD + "Text", "b.md": HEAD + "Text"},
            "b.md cannot be used: another file has the id 'returns' too",
        ),
        ({"returns.ru.md": HEAD + "Text"}, "section 'returns' is only a translation"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused_in_a_sentence(
    files: dict[str, str | bytes], sentence: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadDeclaration, match=re.escape(sentence)):
        sections(tmp_path)


def test_a_shop_may_write_its_policy_in_one_language(tmp_path: Path) -> None:
    (tmp_path / "garantie.md").write_text(
        "---\nid: garantie\nversion: 3\ntitle: G\n---\nZwei Jahre."
    )
    assert sections(tmp_path)["garantie"][OWN].text == "Zwei Jahre."
