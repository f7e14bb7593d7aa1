"""Start-up's look at the sentences of every language: what they name must be there to be named."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent.answer.render import fields_in
from tools.locales import available, locale
from tools.tool import BadDeclaration, Tool, question_lacks

OF_FAILURES = {"error", "write_error"}


def check_sentences(tools: Iterable[Tool]) -> None:
    """Raises BadDeclaration, with file and key, for a sentence that cannot be filled in, and for a
    question that leaves out what is being confirmed."""
    for name in sorted(available()):
        data = locale(name).data
        for section in OF_FAILURES:
            for key, sentence in data[section].items():
                _check(name, section, key, sentence, {"what", "subject", "message"}, set())
        for tool in tools:
            for section, allowed, needed in _of(tool):
                sentence = data.get(section, {}).get(tool.name, "")
                _check(name, section, tool.name, sentence, allowed, needed)
            if lacking := question_lacks(tool, data["questions"].get(tool.name, tool.question)):
                raise _wrong(name, "questions", tool.name, f"it leaves out {sorted(lacking)}")


def _of(tool: Tool) -> Iterator[tuple[str, set[str], set[str]]]:
    """The sections that speak of a tool: what they may name, and what they must."""
    yield "what", {"subject"} if tool.subject else set(), set()
    yield "questions", set(tool.parameters["properties"]), set()
    if tool.returns is not None:
        yield "cards", set(tool.returns.model_fields), {tool.subject} & set(tool.required)


def _check(
    name: str, section: str, key: str, sentence: Any, allowed: set[str], needed: set[str]
) -> None:
    for form in _forms(sentence):
        named = set(fields_in(form))
        if unknown := named - allowed:
            raise _wrong(name, section, key, f"there is nothing to put in {sorted(unknown)}")
        if form and (missing := needed - named):
            raise _wrong(name, section, key, f"it leaves out {sorted(missing)}")


def _forms(sentence: Any) -> Iterator[str]:
    """A sentence, or each of the forms of one."""
    if not isinstance(sentence, Mapping):
        yield str(sentence)
        return
    for key, form in sentence.items():
        if key != "by":
            yield from _forms(form)


def _wrong(name: str, section: str, key: str, why: str) -> BadDeclaration:
    return BadDeclaration(f"tools/locales/{name}.toml, [{section}] {key}: {why}.")
