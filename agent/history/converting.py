"""A history in the form of another protocol; what that one cannot hold is named."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from agent.history.model import History, Part, Raw, Role
from agent.history.options import options
from agent.history.writers import compact, grouped, written_call, written_result
from agent.strict import SEAL, sealed
from agent.wire.names import ENDED, FITS, Name

# What the readers take of a part or a message; other fields are the protocol's own.
TAKEN: dict[str, set[str]] = {
    "call": {"type", "call_id", "name", "arguments", "input", "function", "custom", "status"},
    "result": {"type", "role", "status", "content", "output",
               "call_id", "tool_call_id", "tool_use_id"},
    "text": {"type", "text"},
    "refusal": {"type", "refusal"},
    "image": {"type", "image_url", "source", "detail"},
    # A message in each protocol.
    "chat": {"type", "role", "content", "tool_calls", "refusal", "finish_reason", "index",
             "message"},
    "responses": {"type", "role", "content", "status"},
    "messages": {"type", "role", "content", "stop_reason"},
}  # fmt: skip
APART = ("system", "developer")


class Lost(NamedTuple):
    """What the other protocol cannot hold: where it stood, and what it was."""

    path: str
    what: str


@dataclass(frozen=True)
class Converted:
    """document: the history in the other protocol. lost: what that one cannot hold."""

    document: Any
    lost: list[Lost]


@dataclass
class Conversion:
    """One history on its way to another protocol."""

    history: History
    to: Name
    lost: list[Lost] = field(default_factory=list)
    _calls: dict[str, Part] = field(default_factory=dict)  # the newest of each id

    def converted(self) -> Converted:
        turns, system = self._turns(), list[Part]()
        if self.history.key == "choices" and self.history.document["choices"][1:]:
            self.lost.append(Lost("choices[1]", "another choice than the first"))
        if self.to == "messages" or (self.to == "responses" and self.history.is_request):
            while turns and turns[0][0] in APART:
                system += turns.pop(0)[1]
        document = {**self._options(), **self._system(system)}
        messages = [raw for role, parts in turns for raw in self._written(role, parts)]
        self._name_ids()
        if not (self.history.is_request or document):
            return Converted(messages, self.lost)
        key = "input" if self.to == "responses" else "messages"
        return Converted({**document, key: messages}, self.lost)

    def _turns(self) -> list[tuple[Role, list[Part]]]:
        """Items of one response become one message; results of one response, too."""
        turns: list[tuple[Role, list[Part]]] = []
        joining = ("tool", "assistant") if self.history.protocol == "responses" else ("tool",)
        if self.history.above:
            turns.append(("system", [*self.history.above]))
        for message in self.history.messages:
            inner = message.raw.get("message", {}) if self.history.protocol == "chat" else {}
            if not any(part.raw is message.raw for part in message.parts):
                self._name_fields({**message.raw, **inner}, self.history.protocol, message.path)
            if message.ended not in ("", *ENDED):
                self.lost.append(Lost(message.path, f"that it ended as {message.ended}"))
            if message.role in joining and turns and turns[-1][0] == message.role:
                turns[-1][1].extend(message.parts)
            else:
                turns.append((message.role, [*message.parts]))
        return turns

    def _system(self, parts: list[Part]) -> Raw:
        content = _plain(self._made(parts, "system"))
        if self.to == "responses" and not isinstance(content, str):
            content = "\n\n".join(block["text"] for block in content)
        return {"system" if self.to == "messages" else "instructions": content} if content else {}

    def _written(self, role: Role, parts: list[Part]) -> Iterator[Raw]:
        results = [part for part in parts if part.kind == "result"]
        rest = [part for part in parts if part.kind != "result"]
        yield from grouped(self.to, self._made(results, "tool"))
        if self.to == "messages" and role in APART:
            self._lose(f"a {role} message later than the first", *rest)
        elif self.to == "responses":
            for is_call, some in groupby(rest, lambda part: part.kind == "call"):
                made = self._made(some, role)
                said = [{"type": "message", "role": role, "content": _plain(made)}] if made else []
                yield from made if is_call else said
        else:
            calls = self._made((part for part in rest if part.kind == "call"), role)
            said = self._made((part for part in rest if part.kind != "call"), role)
            if self.to == "messages" and (said or calls):
                yield {"role": role, "content": [*said, *calls] if calls else _plain(said)}
            elif said or calls:
                asked = {"tool_calls": calls} if calls else {}
                yield {"role": role, "content": _plain(said) or None, **asked}

    def _made(self, parts: Iterable[Part], role: Role) -> list[Raw]:
        return [raw for part in parts if (raw := self._one(part, role)) is not None]

    def _one(self, part: Part, role: Role) -> Raw | None:
        if part.kind == "call":
            return self._call(part)
        if part.kind == "result":
            return self._result(part)
        self._name_fields(part.raw, part.kind, part.path)
        if part.kind == "image":
            return self._image(part, role)
        if part.kind not in ("text", "refusal"):
            return self._lose(part.raw.get("type") or "a function's result", part)
        if part.kind == "refusal" and self.to != "messages" and role == "assistant":
            return {"type": "refusal", "refusal": part.text}
        if part.kind == "refusal":
            self._lose("that it is a refusal; its words stay", part)
        elif self.to == "messages" and not part.text.strip():
            return self._lose("a text of nothing but space", part)
        said = "output_text" if role == "assistant" else "input_text"
        return {"type": said if self.to == "responses" else "text", "text": part.text}

    def _call(self, part: Part) -> Raw | None:
        self._calls[part.id] = part
        if not self._holds(part):
            return self._lose(f"a call of the kind {part.form}, with its result", part)
        self._name_fields(part.raw, "call", part.path)
        given = part.arguments
        if self.to == "messages":
            given = sealed(given) if isinstance(given, str) else given
            if isinstance(given, dict) and SEAL in given:
                self._lose("arguments that are no JSON object, but as a text", part)
        elif isinstance(given, dict):  # text that was no JSON is sealed in one, as the wire does it
            given = given[SEAL] if [*given] == [SEAL] else compact(given)
        return written_call(self.to, part, given)

    def _holds(self, call: Part) -> bool:
        return call.form == "function" or (call.form == "custom" and self.to != "messages")

    def _result(self, part: Part) -> Raw | None:
        call = self._calls.get(part.id, part)
        if call is not part and not self._holds(call):
            return None
        self._name_fields(part.raw, "result", part.path)
        content = _plain(self._made(part.inner, "tool")) or ""
        return written_result(self.to, call, content)

    def _image(self, part: Part, role: Role) -> Raw | None:
        """Only a user shows images, and a tool where its results may hold any."""
        if not part.text or not (role == "user" or (role == "tool" and self.to != "chat")):
            return self._lose(part.raw["type"], part)
        detail = {"detail": part.name} if part.name else {}
        if self.to == "chat":
            return {"type": "image_url", "image_url": {"url": part.text, **detail}}
        if self.to == "responses":
            return {"type": "input_image", "image_url": part.text, **detail}
        if detail:
            self._lose("`detail`", part)
        kind, is_data, data = part.text.removeprefix("data:").partition(";base64,")
        if part.text.startswith("data:") and is_data:
            source = {"type": "base64", "media_type": kind, "data": data}
        else:
            source = {"type": "url", "url": part.text}
        return {"type": "image", "source": source}

    def _lose(self, what: str, *parts: Part) -> Raw | None:
        """Names what is left out. Nothing stands in its place."""
        self.lost += [Lost(part.path, what) for part in parts]
        return None

    def _name_fields(self, raw: Raw, kind: str, path: str) -> None:
        if kind not in TAKEN:
            return
        taken = TAKEN[kind] | ({"id"} if kind == "call" and "call_id" not in raw else set())
        self.lost += [
            Lost(path, f"`{name}`") for name, value in raw.items()
            if name not in taken and value not in (None, "", [], {}, False)
        ]  # fmt: skip

    def _name_ids(self) -> None:
        calls = [p for message in self.history.messages for p in message.parts if p.kind == "call"]
        times = Counter(call.id for call in calls)
        for call in calls:
            again = self.to == "messages" and times[call.id] > 1
            if again or not FITS[self.to].fullmatch(call.id):
                self._lose("an id that it takes; this one stays as it is", call)

    def _options(self) -> Raw:
        if not self.history.key or self.history.key == "content":
            return {}
        elsewhere = (self.history.key, "system", "instructions")
        given = {
            name: value for name, value in self.history.document.items()
            if value is not None and name not in elsewhere
        }  # fmt: skip
        if not self.history.is_request:  # what a response says beside its message
            self.lost += [Lost("", f"`{name}`") for name in given]
            return {}
        kept, lost = options(given, self.history.protocol, self.to)
        self.lost += [Lost("", what) for what in lost]
        return kept


def _plain(blocks: list[Raw]) -> str | list[Raw]:
    """One text alone is written as such."""
    if len(blocks) == 1 and "text" in blocks[0]:
        return str(blocks[0]["text"])
    return blocks
