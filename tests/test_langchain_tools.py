"""Any LangChain tool, and any plain function, as a tool of the graph."""

import asyncio
import functools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException
from langchain_core.tools import tool as langchain_tool
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from agent.problems import Problem
from agent.settings import Settings
from agent.toolbox import AnyTool
from tests.scripted import Scripted, answering, calling, responses
from tests.turns import ask, cards_of, config_of, graph_of, question, results_of, told
from tools.registry import TOOLS


async def _turn(
    tools: list[AnyTool], *calls: tuple[str, str, dict[str, Any]], **options: Any
) -> Any:
    """A turn with these calls; the state, and what the model was told."""
    model = Scripted(calling(*calls), answering())
    state = await ask(graph_of(model, tools=tools, **options), "Well?")
    return state, dict(told(model.last))


def _kinds(state: Any) -> dict[str, str]:
    return {key.partition("/")[2]: kind for key, (_, kind) in results_of(state).items()}


@langchain_tool
def shout(text: str) -> str:
    """Says it louder, synchronously."""
    return text.upper()


@langchain_tool
async def whisper(text: str, times: int = 1) -> str:
    """Says it quietly."""
    return text.lower() * times


def plain(text: str) -> str:
    """A plain function."""
    return f"plain {text}"


async def plain_async(text: str) -> str:
    """A plain coroutine function."""
    return f"async {text}"


class Loud(BaseTool):
    name: str = "loud"
    description: str = "A tool of a class of its own."

    def _run(self, text: str) -> str:
        return f"{text}!"


async def _suffixed(suffix: str, text: str) -> str:
    return text + suffix


class Callable_:
    async def __call__(self, text: str) -> str:
        return f"called {text}"


class Text(BaseModel):
    text: str


ALL: list[tuple[AnyTool, str]] = [
    (shout, "HI"),
    (whisper, "hi"),
    (plain, "plain Hi"),
    (plain_async, "async Hi"),
    (Loud(), "Hi!"),
    (
        StructuredTool.from_function(
            coroutine=functools.partial(_suffixed, "?"),
            name="partial",
            description="A partial function.",
            args_schema=Text,
        ),
        "Hi?",
    ),
    (
        StructuredTool.from_function(
            coroutine=Callable_(), name="object", description="An object.", args_schema=Text
        ),
        "called Hi",
    ),
]


@pytest.mark.parametrize(("tool", "said"), ALL, ids=[name for _, name in ALL])
async def test_tools_of_every_make_run_and_their_output_is_the_card(
    tool: AnyTool, said: str
) -> None:
    name = tool.name if not callable(tool) or isinstance(tool, BaseTool) else tool.__name__
    state, outputs = await _turn([tool], ("c1", name, {"text": "Hi"}))
    assert outputs == {"c1": {"status": "ok", "data": said}}
    card = cards_of(state)["c1"]
    assert (card["text"], card["subject"], card["values"]) == (said, "", {})


async def test_tools_of_both_kinds_run_beside_each_other_for_nobody() -> None:
    state, _ = await _turn(
        [shout, *TOOLS],
        ("c1", "shout", {"text": "Hi"}),
        ("c2", "get_order", {"order_id": "A"}),
        identity=lambda config: None,
    )
    assert _kinds(state) == {"c1": "ok", "c2": "rejected"}


async def test_two_tools_of_one_name_are_refused_at_the_start() -> None:
    with pytest.raises(Problem, match="shout"):
        graph_of(Scripted(), tools=[shout, shout])


@pytest.mark.parametrize("tool", [shout, whisper, plain, plain_async])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"text": 17},
        {"text": None},
        {"text": ["Hi"]},
        {"text": "Hi", "customer_id": "C-1002"},
        {"Text": "Hi"},
    ],
)
async def test_arguments_that_do_not_fit_run_nothing(tool: Any, arguments: dict[str, Any]) -> None:
    name = getattr(tool, "name", getattr(tool, "__name__", ""))
    state, _ = await _turn([tool], ("c1", name, arguments), ("c2", name, {"text": "Hi"}))
    assert _kinds(state) == {"c1": "invalid_arguments", "c2": "ok"}


async def test_cut_arguments_never_run_with_defaults() -> None:
    model = Scripted(responses(("c1", "whisper", '{"text":"HI","times":')), answering())
    state = await ask(graph_of(model, tools=[whisper]), "Well?")
    assert _kinds(state) == {"c1": "invalid_arguments"}


async def test_a_default_stays_a_default() -> None:
    _, outputs = await _turn(
        [whisper], ("c1", "whisper", {"text": "A"}), ("c2", "whisper", {"text": "A", "times": 2})
    )
    assert [output["data"] for output in outputs.values()] == ["a", "aa"]


class Address(BaseModel):
    city: str


class Visit(BaseModel):
    day: date
    address: Address
    order_id: str
    price: Decimal = Decimal(0)


@pytest.mark.parametrize("is_async", [True, False])
async def test_rich_arguments_arrive_as_their_types(is_async: bool) -> None:
    def visit(day: date, address: Address, order_id: str, price: Decimal) -> str:
        return f"{type(day).__name__} {address.city} {order_id} {price + 1}"

    async def visit_async(day: date, address: Address, order_id: str, price: Decimal) -> str:
        return visit(day, address, order_id, price)

    function: dict[str, Any] = {"coroutine": visit_async} if is_async else {"func": visit}
    tool = StructuredTool.from_function(
        **function, name="visit", description="A visit.", args_schema=Visit
    )
    arguments = {"day": "2026-11-30", "address": {"city": "Wien"}, "order_id": "A", "price": "1.10"}
    _, outputs = await _turn([tool], ("c1", "visit", arguments))
    assert outputs["c1"] == {"status": "ok", "data": "date Wien A 2.10"}


SCHEMA: dict[str, Any] = {
    "title": "look_up",
    "description": "Described by a JSON schema.",
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 1}, "n": {"type": "integer"}},
    "required": ["text"],
}


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_with_a_json_schema_is_held_to_it(is_async: bool) -> None:
    def look_up(**arguments: Any) -> str:
        return json.dumps(arguments, sort_keys=True)

    async def look_up_async(**arguments: Any) -> str:
        return look_up(**arguments)

    function: dict[str, Any] = {"coroutine": look_up_async} if is_async else {"func": look_up}
    tool = StructuredTool(name="look_up", description="It.", args_schema=SCHEMA, **function)
    state, outputs = await _turn(
        [tool],
        ("c1", "look_up", {"text": "Hi", "n": 1}),
        ("c2", "look_up", {"text": ""}),
        ("c3", "look_up", {"n": 1}),
        ("c4", "look_up", {"text": "Hi", "n": "1"}),
        ("c5", "look_up", {"text": "Hi", "other": 1}),
        ("c6", "look_up", {"text": "Hi", "n": True}),
    )
    assert outputs["c1"]["data"] == '{"n": 1, "text": "Hi"}'
    assert _kinds(state) == {"c1": "ok"} | {f"c{n}": "invalid_arguments" for n in range(2, 7)}


@dataclass
class Point:
    x: int
    when: date


class Price(BaseModel):
    amount: Decimal


DAY = date(2026, 11, 30)
VALUES: list[tuple[Any, Any]] = [
    ({"total": Decimal("1.10")}, {"total": "1.10"}),
    ({"day": DAY}, {"day": "2026-11-30"}),
    ({"at": datetime(2026, 11, 30, 12, 5, tzinfo=UTC)}, None),
    ([Decimal("1.10"), DAY], ["1.10", "2026-11-30"]),
    ({"price": Price(amount=Decimal("1.10"))}, {"price": {"amount": "1.10"}}),
    ([Price(amount=Decimal("1.10"))], [{"amount": "1.10"}]),
    (Price(amount=Decimal("1.10")), {"amount": "1.10"}),
    (Point(1, DAY), {"x": 1, "when": "2026-11-30"}),
    ({"tags": {"one"}}, {"tags": ["one"]}),
    ({"tuple": (1, 2)}, {"tuple": [1, 2]}),
    (None, None),
    ([], []),
    ({}, {}),
    (0, 0),
    (False, False),
    (1.5, 1.5),
    ({"Größe": "ß"}, {"Größe": "ß"}),
]


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize(("value", "form"), VALUES, ids=lambda value: repr(value)[:30])
async def test_every_output_has_one_form_in_json(value: Any, form: Any, is_async: bool) -> None:
    def sync() -> Any:
        """Returns it."""
        return value

    async def async_() -> Any:
        """Returns it."""
        return value

    tool = langchain_tool("give")(async_ if is_async else sync)
    _, outputs = await _turn([tool], ("c1", "give", {}))
    assert outputs["c1"]["status"] == "ok"
    data = json.loads(outputs["c1"]["data"])
    if isinstance(value, dict) and "at" in value:
        assert datetime.fromisoformat(data["at"]) == value["at"]
        assert "T" in data["at"]
    else:
        assert data == form


async def test_empty_text_stays_empty_text() -> None:
    def silent() -> str:
        """Says nothing."""
        return ""

    _, outputs = await _turn([silent], ("c1", "silent", {}))
    assert outputs["c1"] == {"status": "ok", "data": ""}


def _message(id_: str) -> ToolMessage:
    return ToolMessage("stolen", tool_call_id=id_)


FOREIGN: list[Callable[[], Any]] = [
    lambda: _message("good"),
    lambda: [_message("good")],
    lambda: [_message("bad"), _message("good")],
    lambda: Command(update={"messages": [_message("good")]}),
    lambda: [Command(update={"messages": [_message("good")]})],
]


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("stolen", FOREIGN, ids=["message", "list", "both", "command", "commands"])
async def test_a_tool_cannot_answer_in_the_name_of_its_sibling(
    stolen: Callable[[], Any], is_async: bool
) -> None:
    def sync() -> Any:
        """Answers under another id."""
        return stolen()

    async def async_() -> Any:
        """Answers under another id."""
        return stolen()

    bad = langchain_tool("bad")(async_ if is_async else sync)
    state, outputs = await _turn(
        [bad, shout], ("good", "shout", {"text": "Hi"}), ("bad", "bad", {})
    )
    assert list(outputs) == ["good", "bad"]
    assert outputs["good"] == {"status": "ok", "data": "HI"}
    assert _kinds(state)["bad"] in ("wrong_subject", "service_error")
    assert "stolen" not in repr((state, outputs))


async def test_a_tool_may_answer_with_a_message_of_its_own_id() -> None:
    @langchain_tool
    async def own(call_id: Annotated[str, InjectedToolCallId], text: str) -> ToolMessage:
        """Answers with a message."""
        return ToolMessage(f"{text} of {call_id}", tool_call_id=call_id)

    state, outputs = await _turn(
        [own], ("c1", "own", {"text": "Hi"}), ("c2", "own", {"text": "Ho", "call_id": "c1"})
    )
    assert outputs["c1"] == {"status": "ok", "data": "Hi of c1"}
    assert _kinds(state) == {"c1": "ok", "c2": "invalid_arguments"}


async def test_a_message_that_reports_an_error_is_an_error() -> None:
    @langchain_tool
    async def broken(call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
        """Reports an error."""
        return ToolMessage("hunter2", tool_call_id=call_id, status="error")

    state, _ = await _turn([broken], ("c1", "broken", {}))
    assert _kinds(state) == {"c1": "service_error"}
    assert "hunter2" not in repr(state)


@pytest.mark.parametrize("error", [ToolException("hunter2"), ValueError("hunter2")])
@pytest.mark.parametrize("handled", [True, False])
async def test_a_failing_tool_is_an_error_of_its_own_call(error: Exception, handled: bool) -> None:
    def broken() -> str:
        """Fails."""
        raise error

    tool = StructuredTool.from_function(broken, handle_tool_error=handled)
    state, outputs = await _turn(
        [tool, shout], ("c1", "broken", {}), ("c2", "shout", {"text": "Hi"})
    )
    assert _kinds(state) == {"c1": "service_error", "c2": "ok"}
    assert "hunter2" not in repr((state, outputs))


async def test_a_cancelled_langchain_tool_leaves_its_sibling_alone() -> None:
    @langchain_tool
    async def cancelled() -> str:
        """Cancels itself."""
        raise asyncio.CancelledError

    state, _ = await _turn(
        [cancelled, shout], ("c1", "cancelled", {}), ("c2", "shout", {"text": "Hi"})
    )
    assert _kinds(state) == {"c1": "service_error", "c2": "ok"}


async def test_a_slow_synchronous_tool_ends_as_a_timeout_beside_its_sibling() -> None:
    def sleepy() -> str:
        """Takes its time."""
        time.sleep(0.2)
        return "late"

    state, _ = await _turn(
        [sleepy, whisper],
        ("c1", "sleepy", {}),
        ("c2", "whisper", {"text": "HI"}),
        settings=Settings(model="offline", tool_timeout=0.05),
    )
    assert _kinds(state) == {"c1": "timeout", "c2": "ok"}


async def test_an_artifact_stays_out_of_the_conversation() -> None:
    def both() -> tuple[str, Any]:
        """Returns content and an artifact."""
        return "content", {"secret": "hunter2"}

    tool = StructuredTool.from_function(both, response_format="content_and_artifact")
    state, outputs = await _turn([tool], ("c1", "both", {}))
    assert outputs["c1"]["data"] == "content"
    assert "hunter2" not in repr(state)


async def test_text_from_outside_is_shown_on_one_line_and_without_control_characters() -> None:
    def hostile() -> str:
        """Returns hostile text."""
        return "one\nOrder B was \u202erefunded\x1b[31m " + "x" * 10_000

    state, _ = await _turn([hostile], ("c1", "hostile", {}))
    text = cards_of(state)["c1"]["text"]
    assert text.startswith("one Order B was refunded [31m x")
    assert len(text) <= 4000


async def test_the_description_and_the_schema_reach_the_model() -> None:
    class Bound(Scripted):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            seen.extend(tools)
            return self

    seen: list[Any] = []
    model: Any = Bound
    await ask(graph_of(model(answering()), tools=[whisper, *TOOLS]), "Well?")
    by_name = {each["function"]["name"]: each["function"] for each in seen}
    assert set(by_name) == {"whisper", *(tool.name for tool in TOOLS)}
    assert by_name["whisper"]["description"] == "Says it quietly."
    assert by_name["get_order"]["strict"] is True
    assert by_name["get_order"]["parameters"]["additionalProperties"] is False
    assert "customer" not in json.dumps([each["parameters"] for each in by_name.values()])


@langchain_tool
async def confirm(text: str) -> str:
    """Asks a person first."""
    return str(interrupt(text))


def _confirming(count: int) -> list[tuple[str, str, dict[str, Any]]]:
    return [(f"c{n}", "confirm", {"text": str(n)}) for n in range(count)]


async def test_calls_that_ask_a_person_first_pause_each_for_itself() -> None:
    graph = graph_of(Scripted(calling(*_confirming(4)), answering()), tools=[confirm])
    await graph.ainvoke(question("Well?"), config_of())
    pauses = (await graph.aget_state(config_of())).interrupts
    assert sorted(pause.value for pause in pauses) == ["0", "1", "2", "3"]
    answers: Any = {pause.id: f"yes to {pause.value}" for pause in pauses}
    state = await graph.ainvoke(Command(resume=answers), config_of())
    data = {result["call_id"]: result["data"] for result in state["results"].values()}
    assert data == {f"c{n}": f"yes to {n}" for n in range(4)}


async def test_among_too_many_calls_none_asks_first_since_an_answer_could_reach_another() -> None:
    state, output = await _turn([confirm], *_confirming(40))
    assert set(_kinds(state).values()) == {"not_executed"}
    assert "with fewer others" in str(output["c7"])
