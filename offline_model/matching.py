"""Which offered tool answers a question, and with which arguments.

Nothing here knows a shop: a tool of another one is found by the words of its name and description,
and its parameters are filled from their schema.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from offline_model.conversation import Tool, Wanted
from offline_model.lexicon import Lexicon, Mark, Marks, phrase_pattern
from offline_model.schemas import kind_of, nullable, resolved

UNFILLED = object()
Given = Mapping[str, str]
NOTHING: Given = MappingProxyType({})


@dataclass(frozen=True)
class Toolbox:
    """The tools of a request, seen with the words of a language."""

    tools: tuple[Tool, ...]
    lexicon: Lexicon

    def marks(self) -> Marks:
        """Phrases by which the tools that the lexicon has no words for are asked for."""
        marks = []
        for tool in self._others():
            name, about = self._words_of(tool.name), self._about(tool)
            alike = self.lexicon.data["matching"]["alike"]
            name = name.union(*(words for words in alike if name & set(words)))
            lead = self.lexicon.data["matching"]["lead"]
            if name:
                marks.append((Mark("topic", f"tool:{tool.name}"), _any_of(name, lead)))
            if about - name:
                marks.append((Mark("weak", f"tool:{tool.name}"), _any_of(about - name)))
        return marks

    def named(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def for_topic(self, topic: str, facets: Iterable[str] = ()) -> Tool | None:
        """The tool for a topic: the one that the lexicon names, else the one nearest in words."""
        if topic.startswith("tool:"):
            return self.named(topic.removeprefix("tool:"))
        if topic == "list":
            return self.named(self.lexicon.data["tools"]["list"]) or self._other_listing()
        if topic in self.lexicon.data["tools"]:
            return self.named(self.lexicon.data["tools"][topic])
        stems = tuple(self.lexicon.words_of(topic, facets))
        scored = [(sum(w.startswith(stems) for w in self._about(t)), t) for t in self._others()]
        best = max(scored, key=lambda pair: pair[0], default=(0, None))
        return self.named(self.lexicon.topics[topic].tool) or (best[1] if best[0] else None)

    def for_request(self, request: str) -> Tool | None:
        return self.named(self.lexicon.requests[request])

    def deeds(self) -> dict[str, str]:
        """The requests that an offered tool can do, with its name."""
        named = {tool.name for tool in self.tools}
        return {name: tool for name, tool in self.lexicon.requests.items() if tool in named}

    def _other_listing(self) -> Tool | None:
        """Another shop's listing: a tool that needs nothing and speaks of orders."""
        nouns = self.lexicon.ids["nouns"]
        listings = (t for t in self.tools if nouns & set(_words(f"{t.name} {t.description}")))
        return next((tool for tool in listings if not _required(tool)), None)

    def _others(self) -> list[Tool]:
        """The tools that the lexicon does not know by name."""
        known = {topic.tool for topic in self.lexicon.topics.values()}
        known |= {*self.lexicon.data["tools"].values(), *self.lexicon.requests.values()}
        return [tool for tool in self.tools if tool.name not in known]

    def _words_of(self, text: str) -> set[str]:
        return set(_words(text)) - set(self.lexicon.data["matching"]["empty"])

    def _about(self, tool: Tool) -> set[str]:
        """The words of a tool's name, description and choices."""
        choices = [str(v) for part in _properties(tool).values() for v in part.get("enum", ())]
        told = " ".join([tool.description.partition("Card placeholders")[0], *choices])
        longer = {word for word in self._words_of(told) if len(word) > 3}
        return self._words_of(tool.name) | longer

    # Arguments.

    def calls(
        self, tool: Tool | None, ids: Sequence[str], text: str = "", given: Given = NOTHING
    ) -> list[Wanted]:
        """The calls that a tool needs to answer about some orders: one, or one for each order.

        Empty where a required parameter can be filled neither from a text nor from what is `given`
        by its name, and where there is no tool.
        """
        if tool is None:
            return []
        single = any(self._takes_id(n, part, "string") for n, part in _properties(tool).items())
        groups = [[order_id] for order_id in ids] if single and ids else [list(ids)]
        filled = (self._filled(tool, group, text, given) for group in groups)
        return [(tool.name, each) for each in filled if set(_required(tool)) <= set(each)]

    def _filled(self, tool: Tool, ids: list[str], text: str, given: Given) -> dict[str, Any]:
        parts = _properties(tool).items()
        values = {n: given.get(n) or self._value(n, part, ids, text) for n, part in parts}
        return {name: value for name, value in values.items() if value is not UNFILLED}

    def _value(self, name: str, part: dict[str, Any], ids: list[str], text: str) -> Any:
        if part.get("enum"):
            return _chosen(part["enum"], text)
        if self._takes_id(name, part, "array") and ids:
            return ids[: part.get("maxItems")]
        if self._takes_id(name, part, "string") and ids:
            return ids[0]
        return None if part.get("nullable") else UNFILLED

    def _takes_id(self, name: str, part: dict[str, Any], kind: str) -> bool:
        """Whether a parameter is an order's id: "order_id", "parcel_numbers", "id"."""
        if kind_of(part) != kind or part.get("enum"):
            return False
        matching = self.lexicon.data["matching"]
        of = set(_words(name)) - set(matching["id_words"])
        is_id = len(of) < len(_words(name)) or bool(of & self.lexicon.ids["nouns"])
        return is_id and not of & set(matching["foreign_ids"]) and len(of) < 2


def _chosen(values: Sequence[Any], text: str) -> Any:
    """The value of an enumeration that a text speaks of; UNFILLED if none."""
    said = {_stem(word) for word in _words(text)}
    scored = [(len({_stem(w) for w in _words(str(value))} & said), value) for value in values]
    best = max(scored, key=lambda pair: pair[0])
    return best[1] if best[0] else UNFILLED


def _properties(tool: Tool) -> dict[str, dict[str, Any]]:
    parts = (tool.parameters.get("properties") or {}).items()
    return {
        name: {**part, **resolved(part, tool.parameters), "nullable": nullable(part)}
        for name, part in parts
    }


def _required(tool: Tool) -> list[str]:
    return list(tool.parameters.get("required") or ())


def _words(text: str) -> list[str]:
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ")
    return re.findall(r"[^\W\d_]+", parted.lower())


def _stem(word: str) -> str:
    return re.sub(r"(?<=\w{4})(ing|ed|es|s)$", "", word)


def _any_of(words: set[str], lead: str = "") -> re.Pattern[str]:
    stems = (re.escape(_stem(word)) for word in sorted(words))
    return phrase_pattern(f"{lead}{stem}(s|es|ed|ing)?" for stem in stems)
