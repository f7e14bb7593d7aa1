"""A history, whichever protocol it was written in: its messages, and the parts of each."""

from dataclasses import dataclass
from typing import Any, Literal

from agent.wire.names import Name

Role = Literal["system", "developer", "user", "assistant", "tool"]
Kind = Literal["text", "refusal", "image", "reasoning", "call", "result", "other"]
Raw = dict[str, Any]


class NotHistory(Exception):
    """What was given is no history in any of the protocols. The message is for a person."""


@dataclass(slots=True)
class Part:
    """The least that can be kept, moved or left out: words, an image, a call, a result.

    path: where it stands, such as `messages[3].tool_calls[0]`. raw: as it stands there.
    text: words, or an image's URL. id: the call's, which its result names too; never an item's.
    arguments: a call's, text in OpenAI's protocols, an object in Messages. item_id: `fc_…`.
    inner: what a result consists of.
    """

    kind: Kind
    path: str
    raw: Any
    text: str = ""
    id: str = ""
    name: str = ""
    arguments: Any = None
    item_id: str = ""
    inner: tuple["Part", ...] = ()

    @property
    def form(self) -> str:
        """Of a call: `function` takes a JSON object, `custom` text; else the vendor's own tool."""
        kind = str(self.raw.get("type") or "function")
        return {"tool_use": "function", "custom_tool_call": "custom"}.get(
            kind, kind.removesuffix("_call")
        )


@dataclass(slots=True)
class Message:
    """A message, or an item of the Responses API. ended: how its response did, where it says so."""

    role: Role
    parts: tuple[Part, ...]
    path: str
    raw: Any
    ended: str = ""


@dataclass(frozen=True)
class History:
    """The messages of a document, which is a request, a response, or a list of messages alone.

    above: the parts that stand beside the list (`system`, `instructions`). key: where the list
    stands in the document, "" where it is the list. chained: the server has the beginning.
    response: whether the document is a response, whose calls have no results yet.
    """

    protocol: Name
    messages: list[Message]
    document: Any
    key: str = ""
    above: tuple[Part, ...] = ()
    chained: bool = False
    response: bool = False

    @property
    def is_request(self) -> bool:
        return bool(self.key) and not self.response
