"""Which offered tool answers a question, and with which arguments.

Nothing here knows a shop: a tool of another one is found by the words of its name and description,
and its parameters are filled from their schema.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from offline_model.clauses import Extra
from offline_model.conversation import Tool
from offline_model.lexicon import Lexicon, Mark, phrase_pattern
from offline_model.schemas import kind_of, nullable, resolved

UNFILLED = object()


@dataclass(frozen=True)
class Toolbox:
    """The tools of a request, seen with the words of a language."""

    tools: tuple[Tool, ...]
    lexicon: Lexicon

    def marks(self) -> Extra:
        """Phrases by which the tools that the lexicon has no words for are asked for."""
        marks = []
        for tool in self.tools:
            if tool.name in self._familiar():
                continue
            name, about = self.name_words(tool), self._description_words(tool)
            if name:
                marks.append((Mark("topic", f"tool:{tool.name}"), _any_of(name)))
            if about - name:
                marks.append((Mark("weak", f"tool:{tool.name}"), _any_of(about - name)))
        return marks

    def named(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def for_topic(self, topic: str, facets: Iterable[str] = ()) -> Tool | None:
        """The tool for a topic: the one that the lexicon names, else the one nearest in words."""
        if topic.startswith("tool:"):
            return self.named(topic.removeprefix("tool:"))
        if topic in self.lexicon.data["tools"]:
            return self.named(self.lexicon.data["tools"][topic]) or self._stand_in(topic)
        tool = self.named(self.lexicon.topics[topic].tool)
        return tool or self._nearest(self.lexicon.words_of(topic, facets))

    def for_request(self, request: str) -> Tool | None:
        return self.named(self.lexicon.requests[request])

    def _nearest(self, words: set[str]) -> Tool | None:
        others = [tool for tool in self.tools if tool.name not in self._familiar()]
        scored = [(len(words & self._spoken_words(tool)), tool) for tool in others]
        best = max(scored, key=lambda pair: pair[0], default=(0, None))
        return best[1] if best[0] else None

    def _stand_in(self, topic: str) -> Tool | None:
        """Another shop's listing: a tool that needs nothing and speaks of orders."""
        if topic != "list":
            return None
        nouns = self.lexicon.ids["nouns"]
        words = ((tool, set(_words(f"{tool.name} {tool.description}"))) for tool in self.tools)
        return next((t for t, said in words if said & nouns and not _required(t)), None)

    def _familiar(self) -> set[str]:
        named = {topic.tool for topic in self.lexicon.topics.values()}
        named |= set(self.lexicon.data["tools"].values()) | set(self.lexicon.requests.values())
        return named

    def name_words(self, tool: Tool) -> set[str]:
        return set(_words(tool.name)) - self._empty()

    def _description_words(self, tool: Tool) -> set[str]:
        enums = [
            str(value) for part in _properties(tool).values() for value in part.get("enum", ())
        ]
        said = _words(" ".join([tool.description.partition("Card placeholders")[0], *enums]))
        return {word for word in said if len(word) > 3} - self._empty()

    def _spoken_words(self, tool: Tool) -> set[str]:
        return self.name_words(tool) | self._description_words(tool)

    def _empty(self) -> set[str]:
        return set(self.lexicon.data["matching"]["empty"])

    # Arguments.

    def arguments(self, tool: Tool, ids: Sequence[str], text: str) -> list[dict[str, Any]]:
        """The calls that a tool needs to answer about some orders: one, or one for each order.

        Empty where a required parameter cannot be filled from what was said.
        """
        parts = _properties(tool)
        single = [name for name, part in parts.items() if self._takes_id(name, part, "string")]
        if single and ids:
            return [one for i in ids for one in self._filled(tool, [i], text)]
        return self._filled(tool, ids, text)

    def _filled(self, tool: Tool, ids: Sequence[str], text: str) -> list[dict[str, Any]]:
        given: dict[str, Any] = {}
        for name, part in _properties(tool).items():
            value = self._value(name, part, ids, text)
            if value is UNFILLED and name in _required(tool):
                return []
            if value is not UNFILLED:
                given[name] = value
        return [given]

    def _value(self, name: str, part: dict[str, Any], ids: Sequence[str], text: str) -> Any:
        if part.get("enum"):
            chosen = self._chosen(part["enum"], text)
            return chosen if chosen is not None or not part.get("nullable") else UNFILLED
        if self._takes_id(name, part, "array") and ids:
            return list(ids)[: part.get("maxItems")]
        if self._takes_id(name, part, "string") and ids:
            return ids[0]
        return None if part.get("nullable") else UNFILLED

    def _takes_id(self, name: str, part: dict[str, Any], kind: str) -> bool:
        words = _words(name)
        if kind_of(part) != kind or part.get("enum"):
            return False
        of = set(words) - {"id", "ids", "number", "numbers", "no", "ref", "reference", "code"}
        foreign = of & set(self.lexicon.data["matching"]["foreign_ids"])
        is_id = len(of) < len(words) or bool(of & self.lexicon.ids["nouns"])
        return is_id and not foreign and len(of) < 2

    def _chosen(self, values: Sequence[Any], text: str) -> Any:
        """The value of an enumeration that a text speaks of; UNFILLED if none."""
        said = {_stem(word) for word in _words(text)}
        scored = [(len({_stem(w) for w in _words(str(value))} & said), value) for value in values]
        best = max(scored, key=lambda pair: pair[0])
        return best[1] if best[0] else UNFILLED


def _properties(tool: Tool) -> dict[str, dict[str, Any]]:
    found = {}
    for name, part in (tool.parameters.get("properties") or {}).items():
        whole = {**part, **resolved(part, tool.parameters)}
        found[name] = {**whole, "nullable": nullable(part)}
    return found


def _required(tool: Tool) -> list[str]:
    return list(tool.parameters.get("required") or ())


def _words(text: str) -> list[str]:
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ")
    return re.findall(r"[^\W\d_]+", parted.lower())


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) > 3:
            return word.removesuffix(ending)
    return word


def _any_of(words: set[str]) -> re.Pattern[str]:
    return phrase_pattern(re.escape(_stem(word)) + "(s|es|ed|ing)?" for word in sorted(words))
