"""Reads a history from the JSON of the three protocols.

Sources: the request and response types of the official SDKs, `openai` and `anthropic`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agent.history.model import History, Kind, Message, NotHistory, Part, Role
from agent.wire.names import Name

Raw = dict[str, Any]

WRONG_FORM = (AttributeError, IndexError, KeyError, TypeError, ValueError)
NAMES = {"chat": "Chat Completions", "responses": "Responses", "messages": "Messages"}
# A part of a content, by its type: what it is, and the field that says it.
CONTENT: dict[str, tuple[Kind, str]] = {
    "text": ("text", "text"),
    "input_text": ("text", "text"),
    "output_text": ("text", "text"),
    "refusal": ("refusal", "refusal"),
    "image_url": ("image", "image_url"),
    "input_image": ("image", "image_url"),
    "image": ("image", "source"),
    "thinking": ("reasoning", "thinking"),
    "redacted_thinking": ("reasoning", "data"),
}
# What is found in one protocol alone.
ONLY_CHAT = {"image_url", "input_audio", "file"}
ONLY_MESSAGES = {"tool_use", "tool_result", "image", "thinking", "redacted_thinking", "document"}
PAIRED = ("call", "result")
ONLY_RESPONSES = {"input_text", "output_text", "input_image", "input_file"}
ROLES: dict[str, Role] = {
    "system": "system", "developer": "developer", "user": "user", "assistant": "assistant",
    "tool": "tool", "function": "tool",
}  # fmt: skip


def read(document: Any, protocol: Name | None = None) -> History:
    """A request, a response or a list of messages, parsed. Raises NotHistory.

    protocol: where it is known that this is one, even if an empty one.
    """
    try:
        return document if isinstance(document, History) else _read(document, protocol)
    except NotHistory:
        raise
    except WRONG_FORM:
        raise NotHistory("It does not have the form of a request or a response.") from None


def _read(document: Any, protocol: Name | None) -> History:
    key, listed = _listed(document)
    if not listed and not protocol:
        raise NotHistory("It holds no messages.")
    if not all(isinstance(each, dict) for each in listed):
        raise NotHistory("A message in it is no JSON object.")
    name = protocol or _protocol(document, key, listed)
    places = (f"{key}[{n}]" if key != "content" else "" for n in range(len(listed)))
    messages = [_message(name, *each) for each in zip(listed, places, strict=True)]
    about = document if isinstance(document, dict) else {}
    if key == "output" and messages:
        ended = str(about.get("status") or "")
        messages[-1] = replace(messages[-1], ended=ended or messages[-1].ended)
    return History(
        protocol=name,
        messages=messages,
        document=document,
        key=key,
        above=_above(about),
        chained=bool(about.get("previous_response_id") or about.get("conversation"))
        or any(raw.get("type") == "item_reference" for raw in listed),
        response=key in ("output", "choices", "content"),
    )


def _listed(document: Any) -> tuple[str, list[Any]]:
    """The messages, and under which name they stand."""
    if isinstance(document, list):
        return "", document
    if not isinstance(document, dict):
        raise NotHistory("It is neither a JSON object nor a list.")
    if document.get("type") == "message" and document.get("role") == "assistant":
        return "content", [document]
    key = next((k for k in ("messages", "input", "output", "choices") if k in document), None)
    if key is None and "role" in document:
        return "", [document]
    if key is None:
        raise NotHistory("It has none of `messages`, `input`, `output` and `choices`.")
    listed = document[key]
    if isinstance(listed, str) and key == "input":
        return key, [{"role": "user", "content": listed}]
    if not isinstance(listed, list):
        raise NotHistory(f"`{key}` is no list.")
    return key, listed[:1] if key == "choices" else listed


def _protocol(document: Any, key: str, listed: list[Raw]) -> Name:
    found = {"choices": "chat", "input": "responses", "output": "responses", "content": "messages"}
    marks = {found[key]} if key in found else {m for raw in listed for m in _marks(raw)}
    if isinstance(document, dict) and key == "messages":
        tools = document.get("tools")
        anthropic = isinstance(tools, list) and any("input_schema" in t for t in tools)
        marks |= {"messages"} if "system" in document or anthropic else set()
    if len(marks) > 1:
        raise NotHistory(f"It mixes the protocols {' and '.join(NAMES[m] for m in sorted(marks))}.")
    if not key and not any("role" in raw or "call_id" in raw for raw in listed):
        raise NotHistory("Its entries are no messages.")
    name: Any = next(iter(marks), "chat")
    return name  # type: ignore[no-any-return]


def _marks(raw: Raw) -> set[str]:
    """The protocols that only can have written a message."""
    kind, role, content = raw.get("type"), raw.get("role"), raw.get("content")
    blocks = content if isinstance(content, list) else []
    inner = {block.get("type") for block in blocks if isinstance(block, dict)}
    found = {
        "chat": role in ("tool", "function") or "tool_calls" in raw or bool(inner & ONLY_CHAT),
        "messages": bool(inner & ONLY_MESSAGES) or "stop_reason" in raw,
        "responses": (bool(kind) and "stop_reason" not in raw) or bool(inner & ONLY_RESPONSES),
    }
    return {name for name, is_ in found.items() if is_}


def _message(name: Name, raw: Raw, path: str) -> Message:
    try:
        message = READERS[name](raw, path)
        _check(message)
        return message
    except WRONG_FORM:
        raise NotHistory(f"{path or 'It'} does not have the form of {NAMES[name]}.") from None


def _check(message: Message) -> None:
    """Raises ValueError for a text that is none, and for a call or result in a wrong role."""
    texts = [message.ended]
    for part in message.parts:
        if (message.role == "assistant") != (part.kind == "call") and part.kind in PAIRED:
            raise ValueError
        texts += [part.id, part.name, part.item_id, *(each.text for each in (part, *part.inner))]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError


def _chat(raw: Raw, path: str) -> Message:
    choice, raw_message = (raw, raw["message"]) if "message" in raw else ({}, raw)
    path = f"{path}.message" if choice else path
    role = ROLES[raw_message["role"]]
    asks = role == "assistant" and raw_message.keys() & {"tool_calls", "refusal"}
    content = raw_message.get("content") if asks else raw_message["content"]
    parts = said = _content(content, path)
    if raw_message["role"] == "tool":
        parts = (_result(raw_message, path, raw_message.get("tool_call_id"), said),)
    else:
        calls = enumerate(raw_message.get("tool_calls") or ())
        refusal = raw_message.get("refusal")
        refused = [Part("refusal", f"{path}.refusal", {}, text=refusal)] if refusal else []
        parts = (*said, *refused, *(_chat_call(c, f"{path}.tool_calls[{n}]") for n, c in calls))
    ended = (choice or raw_message).get("finish_reason") or ""
    return Message(role, parts, path, raw, ended)


def _chat_call(raw: Raw, path: str) -> Part:
    inner = raw["custom"] if raw.get("type") == "custom" else raw["function"]
    arguments = inner["input"] if raw.get("type") == "custom" else inner["arguments"]
    return Part("call", path, raw, id=raw.get("id") or "", name=inner["name"], arguments=arguments)


def _responses(raw: Raw, path: str) -> Message:
    kind, ended = str(raw.get("type") or "message"), raw.get("status") or ""
    if kind == "message":
        return Message(ROLES[raw["role"]], _content(raw["content"], path), path, raw, ended)
    if kind == "function_call" or (kind.endswith("_call") and "call_id" in raw):
        arguments = raw["arguments"] if kind == "function_call" else raw.get("input")
        id_, item_id, name = raw.get("call_id") or "", raw.get("id") or "", raw.get("name", "")
        part = Part("call", path, raw, "", id_, name, arguments, item_id)
        return Message("assistant", (part,), path, raw, ended)
    if kind.endswith("_call_output"):
        said = _content(raw["output"], path, "output")
        return Message("tool", (_result(raw, path, raw.get("call_id"), said),), path, raw, ended)
    part = Part("reasoning" if kind == "reasoning" else "other", path, raw)
    return Message("assistant", (part,), path, raw, ended)


def _messages(raw: Raw, path: str) -> Message:
    role, parts = ROLES[raw["role"]], _content(raw["content"], path)
    return Message(role, parts, path, raw, raw.get("stop_reason") or "")


READERS: dict[Name, Callable[[Raw, str], Message]] = {
    "chat": _chat,
    "responses": _responses,
    "messages": _messages,
}


def _content(content: Any, path: str, key: str = "content") -> tuple[Part, ...]:
    """A text, a list of parts, or one part alone."""
    if content is None or isinstance(content, str):
        return (Part("text", path, {}, text=content),) if content else ()
    at = f"{path}.{key}" if path else key
    listed = [content] if isinstance(content, dict) else content
    return tuple(_part(raw, f"{at}[{n}]") for n, raw in enumerate(listed))


def _part(raw: Raw, path: str) -> Part:
    kind = raw["type"]
    if kind == "tool_use":
        return Part("call", path, raw, "", raw.get("id") or "", raw["name"], raw["input"])
    if kind == "tool_result":
        return _result(raw, path, raw.get("tool_use_id"), _content(raw.get("content"), path))
    meaning, field = CONTENT.get(kind, ("other", ""))
    if meaning == "image":
        image: Any = raw.get(field)
        detail = (image if kind == "image_url" else raw).get("detail") or ""
        return Part("image", path, raw, text=_url(image), name=detail)
    return Part(meaning, path, raw, text=raw[field] if field else "")


def _result(raw: Raw, path: str, id_: Any, said: tuple[Part, ...]) -> Part:
    return Part("result", path, raw, id=id_ or "", inner=said)


def _url(image: Any) -> str:
    """Where an image is, or the image itself as a `data:` URL; "" for one that a vendor keeps."""
    if isinstance(image, dict) and image.get("type") == "base64":
        return f"data:{image['media_type']};base64,{image['data']}"
    url = image.get("url") if isinstance(image, dict) else image
    return str(url or "")


def _above(document: Raw) -> tuple[Part, ...]:
    keys = ("system", "instructions")
    return tuple(part for key in keys for part in _content(document.get(key), "", key))
