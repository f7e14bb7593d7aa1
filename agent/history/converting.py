"""A history in the form of another protocol; what that one cannot hold is named."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from agent.history.model import History, Part, Role
from agent.history.writers import LIST, Raw, grouped, written_call, written_result
from agent.strict import SEAL, sealed
from agent.wire.names import FITS, Name

# What the readers take of a part or a message; other fields are the protocol's own.
TAKEN: dict[str, set[str]] = {
    "call": {"type", "call_id", "name", "arguments", "input", "function", "custom", "status"},
    "result": {"type", "role", "status", "content", "output",
               "call_id", "tool_call_id", "tool_use_id"},
    "text": {"type", "text"},
    "refusal": {"type", "refusal"},
    "image": {"type", "image_url", "source", "detail"},
    "message": {"type", "role", "content", "tool_calls", "refusal", "status", "stop_reason",
                "finish_reason", "index", "message"},
}  # fmt: skip
# Options of a request that have one name in all protocols, and in OpenAI's two.
SAME = ("model", "temperature", "top_p", "stream")
OPENAIS = ("parallel_tool_calls", "store", "metadata", "user")
LONGEST_ANSWER: dict[Name, str] = {
    "chat": "max_completion_tokens", "responses": "max_output_tokens", "messages": "max_tokens",
}  # fmt: skip


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
        turns = self._turns()
        system: list[Part] = []
        if self.to == "messages" or (self.to == "responses" and self.history.is_request):
            while turns and turns[0][0] in ("system", "developer"):
                system += turns.pop(0)[1]
        document = {**self._options(), **self._system(system)}
        messages = [raw for role, parts in turns for raw in self._written(role, parts)]
        self._name_ids()
        if self.history.is_request or document:
            return Converted({**document, LIST[self.to]: messages}, self.lost)
        return Converted(messages, self.lost)

    def _turns(self) -> list[tuple[Role, list[Part]]]:
        """Items of one response become one message; results of one response, too."""
        turns: list[tuple[Role, list[Part]]] = []
        joining = ("tool", "assistant") if self.history.protocol == "responses" else ("tool",)
        if self.history.above:
            turns.append(("system", [*self.history.above]))
        for message in self.history.messages:
            self._name_fields(message.raw, "message", message.path, message.parts)
            if message.role in joining and turns and turns[-1][0] == message.role:
                turns[-1][1].extend(message.parts)
            else:
                turns.append((message.role, [*message.parts]))
        return turns

    def _system(self, parts: list[Part]) -> Raw:
        content = _plain(self._contents(parts, "system"))
        if self.to == "responses" and not isinstance(content, str):
            content = "\n\n".join(block["text"] for block in content)
        return {"system" if self.to == "messages" else "instructions": content} if content else {}

    def _written(self, role: Role, parts: Sequence[Part]) -> Iterator[Raw]:
        results = [raw for part in parts if part.kind == "result" for raw in self._result(part)]
        yield from grouped(self.to, results)
        rest = [part for part in parts if part.kind != "result"]
        if self.to == "responses":
            yield from self._items(role, rest)
        elif self.to == "messages" and role in ("system", "developer"):
            self.lost += [
                Lost(part.path, f"a {role} message later than the first") for part in rest
            ]
        else:
            yield from self._message(role, rest)

    def _items(self, role: Role, parts: Sequence[Part]) -> Iterator[Raw]:
        for is_call, some in groupby(parts, lambda part: part.kind == "call"):
            if is_call:
                yield from (raw for part in some for raw in self._call(part))
            elif blocks := self._contents([*some], role):
                yield {"type": "message", "role": role, "content": _plain(blocks)}

    def _message(self, role: Role, parts: Sequence[Part]) -> Iterator[Raw]:
        calls = [raw for part in parts if part.kind == "call" for raw in self._call(part)]
        blocks = self._contents([part for part in parts if part.kind != "call"], role)
        if self.to == "messages" and (blocks or calls):
            yield {"role": role, "content": [*blocks, *calls] if calls else _plain(blocks)}
        elif blocks or calls:
            asked = {"tool_calls": calls} if calls else {}
            yield {"role": role, "content": _plain(blocks) or None, **asked}

    def _call(self, part: Part) -> list[Raw]:
        self._calls[part.id] = part
        if not self._holds(part):
            self.lost.append(Lost(part.path, f"a call of the kind {part.form}, with its result"))
            return []
        self._name_fields(part.raw, "call", part.path)
        return [written_call(self.to, part, self._arguments(part))]

    def _holds(self, call: Part) -> bool:
        return call.form == "function" or (call.form == "custom" and self.to != "messages")

    def _arguments(self, part: Part) -> Any:
        """Text that is no strict JSON is sealed in an object, as the wire does it."""
        given = part.arguments
        if self.to != "messages":
            if isinstance(given, dict):
                return given[SEAL] if [*given] == [SEAL] else _text(given)
            return given
        arguments = sealed(given) if isinstance(given, str) else given
        if isinstance(arguments, dict) and SEAL in arguments:
            self.lost.append(Lost(part.path, "arguments that are no JSON object, but as a text"))
        return arguments

    def _result(self, part: Part) -> list[Raw]:
        call = self._calls.get(part.id)
        if call and not self._holds(call):
            return []
        self._name_fields(part.raw, "result", part.path)
        content = _plain(self._contents(part.inner, "tool")) or ""
        return [written_result(self.to, part.id, call.form if call else "function", content)]

    def _contents(self, parts: Sequence[Part], role: Role) -> list[Raw]:
        return [block for part in parts if (block := self._block(part, role))]

    def _block(self, part: Part, role: Role) -> Raw | None:
        self._name_fields(part.raw, part.kind, part.path)
        if part.kind == "refusal" and self.to != "messages":
            return {"type": "refusal", "refusal": part.text}
        if part.kind == "refusal":
            self.lost.append(Lost(part.path, "that it is a refusal; its words stay"))
        if self.to == "messages" and part.kind == "text" and not part.text.strip():
            self.lost.append(Lost(part.path, "a text of nothing but space"))
            return None
        if part.kind in ("text", "refusal"):
            said = "output_text" if role == "assistant" else "input_text"
            kind = said if self.to == "responses" else "text"
            return {"type": kind, "text": part.text}
        image = self._image(part, role) if part.kind == "image" else None
        if image is None:
            self.lost.append(Lost(part.path, f"{part.raw.get('type', part.kind)}"))
        return image

    def _image(self, part: Part, role: Role) -> Raw | None:
        """Only a user shows images, and a tool where its results may hold any."""
        shows = role == "user" or (role == "tool" and self.to != "chat")
        if not part.text or not shows:
            return None
        detail = {"detail": part.name} if part.name else {}
        if self.to == "chat":
            return {"type": "image_url", "image_url": {"url": part.text, **detail}}
        if self.to == "responses":
            return {"type": "input_image", "image_url": part.text, **detail}
        self.lost += [Lost(part.path, "`detail`")] if detail else []
        return {"type": "image", "source": _source(part.text)}

    def _name_fields(self, raw: Raw, kind: str, path: str, within: Sequence[Part] = ()) -> None:
        if kind not in TAKEN or any(part.raw is raw for part in within):
            return
        taken = TAKEN[kind] | ({"id"} if kind == "call" and "call_id" not in raw else set())
        self.lost += [
            Lost(path, f"`{name}`") for name, value in raw.items()
            if name not in taken and value not in (None, "", [], {}, False)
        ]  # fmt: skip

    def _name_ids(self) -> None:
        times = Counter(call.id for call in self.history.calls())
        for call in self.history.calls():
            again = self.to == "messages" and times[call.id] > 1
            if again or not FITS[self.to].fullmatch(call.id):
                self.lost.append(Lost(call.path, "an id that it takes; this one stays as it is"))

    def _options(self) -> Raw:
        """The options of a request that both have, under their other names."""
        if not isinstance(document := self.history.document, dict) or self.history.key == "content":
            return {}
        read = (self.history.key, "system", "instructions")
        given = {name: value for name, value in document.items() if name not in read}
        same = SAME if "messages" in (self.to, self.history.protocol) else (*SAME, *OPENAIS)
        kept = {name: given.pop(name) for name in same if name in given and self.history.is_request}
        for name in (LONGEST_ANSWER[self.history.protocol], "max_tokens"):
            if name in given:
                kept[LONGEST_ANSWER[self.to]] = given.pop(name)
        if tools := given.pop("tools", None):
            kept["tools"] = [told for tool in tools for told in self._tool(tool)]
        if choice := given.pop("tool_choice", None):
            kept["tool_choice"] = _choice(choice, self.to)
        self.lost += [Lost("", f"`{name}`") for name, value in given.items() if value is not None]
        return kept

    def _tool(self, tool: Raw) -> list[Raw]:
        about = tool.get("function", tool)
        schema = about.get("input_schema", about.get("parameters"))
        if not isinstance(schema, dict) or "name" not in about:
            self.lost.append(Lost("tools", f"a tool of the kind {tool.get('type')}"))
            return []
        told = {n: about[n] for n in ("name", "description", "strict") if about.get(n) is not None}
        if self.to == "messages":
            return [{**told, "input_schema": schema}]
        told |= {"parameters": schema}
        return [{"type": "function", **({"function": told} if self.to == "chat" else told)}]


def _choice(choice: Any, to: Name) -> Any:
    """`auto`, `none`, `required`, or one tool by its name."""
    about = choice if isinstance(choice, dict) else {"type": choice}
    if name := about.get("name") or about.get("function", {}).get("name"):
        named: dict[Name, Raw] = {
            "chat": {"type": "function", "function": {"name": name}},
            "responses": {"type": "function", "name": name},
            "messages": {"type": "tool", "name": name},
        }
        return named[to]
    words = {"required": "any"} if to == "messages" else {"any": "required"}
    word = words.get(about["type"], about["type"])
    return {"type": word} if to == "messages" else word


def _text(arguments: Raw) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _plain(blocks: list[Raw]) -> str | list[Raw]:
    """One text alone is written as such."""
    if len(blocks) == 1 and "text" in blocks[0]:
        return str(blocks[0]["text"])
    return blocks


def _source(url: str) -> Raw:
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return {"type": "base64", "media_type": kind, "data": data}
