"""Reads a history from the JSON of the three protocols.

Sources: the request and response types of the official SDKs, `openai` and `anthropic`.
"""

from dataclasses import replace
from typing import Any, get_args

from agent.history.model import History, Kind, Message, NotHistory, Part, Raw, Role
from agent.wire.assemble import WRONG_FORM, responses
from agent.wire.names import Name

NAMES = {"chat": "Chat Completions", "responses": "Responses", "messages": "Messages"}
# The lists of messages that a document may hold, and whose they are where only one has them.
LISTS = {"messages": "", "input": "responses", "output": "responses", "choices": "chat"}
# What one protocol alone has: a role, a field of a message, or a type within its content.
SIGNS = {
    "chat": {"tool", "function", "tool_calls", "image_url", "input_audio", "file"},
    "messages": {"stop_reason", "tool_use", "tool_result", "image", "thinking",
                 "redacted_thinking", "document"},
    "responses": {"type", "input_text", "output_text", "input_image", "input_file"},
}  # fmt: skip
# How a response ended, and whose result a result is.
OfEach = dict[Name, str]
ENDS: OfEach = {"chat": "finish_reason", "responses": "status", "messages": "stop_reason"}
RESULT_ID: OfEach = {"chat": "tool_call_id", "responses": "call_id", "messages": "tool_use_id"}
ROLES: dict[str, Role] = {**{role: role for role in get_args(Role)}, "function": "tool"}
# Items that ask for an `…_output` under their call_id, and what holds the arguments of our tools'.
CALLS = {
    **responses.CALLS,
    **dict.fromkeys(("computer_call", "shell_call", "apply_patch_call"), ""),
}
# A part of a content, by its type: what it is, and the field that says it.
CONTENT: dict[str, tuple[Kind, str]] = {
    **dict.fromkeys(("text", "input_text", "output_text"), ("text", "text")),
    "refusal": ("refusal", "refusal"),
    "image_url": ("image", "image_url"),
    "input_image": ("image", "image_url"),
    "image": ("image", "source"),
    "thinking": ("reasoning", "thinking"),
    "redacted_thinking": ("reasoning", "data"),
}


def read(document: Any, protocol: Name | None = None) -> History:
    """A request, a response or a list of messages, parsed. Raises NotHistory.

    protocol: where it is known that this is one, even if an empty one.
    """
    try:
        return document if isinstance(document, History) else _read(document, protocol)
    except WRONG_FORM:
        raise NotHistory("It does not have the form of a request or a response.") from None


def _read(document: Any, protocol: Name | None) -> History:
    key, listed = _listed(document)
    if not listed and not protocol:
        raise NotHistory("It holds no messages.")
    if not all(isinstance(each, dict) for each in listed):
        raise NotHistory("A message in it is no JSON object.")
    name = protocol or _protocol(document, key, listed)
    places = [f"{key}[{n}]" if key != "content" else "" for n in range(len(listed))]
    messages = [_message(name, *each) for each in zip(listed, places, strict=True)]
    about = document if isinstance(document, dict) else {}
    if key == "output" and messages and about.get("status"):
        messages[-1] = replace(messages[-1], ended=str(about["status"]))
    above = (*_content(about, "", "system"), *_content(about, "", "instructions"))
    _check("system", above)
    return History(
        protocol=name,
        messages=messages,
        document=document,
        key=key,
        above=above if key else (),
        chained=bool(about.get("previous_response_id") or about.get("conversation")),
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
    key = next((key for key in LISTS if key in document), None)
    if key is None:
        if "role" in document:
            return "", [document]
        raise NotHistory("It has none of `messages`, `input`, `output` and `choices`.")
    listed = document[key]
    if isinstance(listed, str) and key == "input":
        return key, [{"role": "user", "content": listed}]
    if not isinstance(listed, list):
        raise NotHistory(f"`{key}` is no list.")
    return key, listed[:1] if key == "choices" else listed


def _protocol(document: Any, key: str, listed: list[Raw]) -> Name:
    whose = {**LISTS, "content": "messages"}.get(key)
    marks = {whose} if whose else set()
    if key not in ("choices", "content"):
        marks |= {name for raw in listed for name in _marks(raw)}
    if key == "messages":
        tools = document.get("tools") or []
        if "system" in document or any("input_schema" in tool for tool in tools):
            marks.add("messages")
    if len(marks) > 1:
        raise NotHistory(f"It mixes the protocols {' and '.join(NAMES[m] for m in sorted(marks))}.")
    if not key and not any("role" in raw or "call_id" in raw for raw in listed):
        raise NotHistory("Its entries are no messages.")
    name: Any = next(iter(marks), "chat")
    return name  # type: ignore[no-any-return]


def _marks(raw: Raw) -> set[str]:
    """The protocols that only can have written a message."""
    content = raw.get("content") if isinstance(raw.get("content"), list) else []
    signs = {raw.get("role"), *raw, *(b.get("type") for b in content or () if isinstance(b, dict))}
    found = {name for name in SIGNS if signs & SIGNS[name]}
    return found - {"responses"} if "stop_reason" in raw else found


def _message(name: Name, raw: Raw, path: str) -> Message:
    try:
        is_item = name == "responses" and raw.get("type") not in (None, "message")
        role, parts = (_item if is_item else _said)(name, raw, path)
        ended = raw.get(ENDS[name]) or ""
        _check(role, parts, ended)
        return Message(role, parts, path, raw, ended)
    except WRONG_FORM:
        raise NotHistory(f"{path or 'It'} does not have the form of {NAMES[name]}.") from None


def _check(role: Role, parts: tuple[Part, ...], *texts: object) -> None:
    """Raises ValueError for a text that is none, and for a call or result in a wrong role."""
    wrong = {"call": role != "assistant", "result": role not in ("user", "tool")}
    for part in parts:
        if wrong.get(part.kind):
            raise ValueError
        texts += (part.id, part.name, part.item_id, part.text, *(each.text for each in part.inner))
    if not all(isinstance(text, str) for text in texts):
        raise ValueError


def _said(name: Name, raw: Raw, path: str) -> tuple[Role, tuple[Part, ...]]:
    """A message; in Chat Completions also the choice that it is."""
    roles = ROLES
    if name == "chat" and "message" in raw:
        raw, path, roles = raw["message"], f"{path}.message", {"assistant": "assistant"}
    role = roles[raw["role"]]
    if name != "chat":
        return role, _content(raw, path, needed=True)
    if raw["role"] == "function":
        return role, (Part("other", path, raw),)
    parts = _content(raw, path, needed=not {"tool_calls", "refusal", "function_call"} & raw.keys())
    if role == "tool":
        return role, (_result(name, raw, path, parts),)
    if refusal := raw.get("refusal"):
        parts += (Part("refusal", f"{path}.refusal", {}, text=refusal),)
    calls = enumerate(raw.get("tool_calls") or ())
    return role, parts + tuple(_chat_call(c, f"{path}.tool_calls[{n}]") for n, c in calls)


def _chat_call(raw: Raw, path: str) -> Part:
    kind, field = ("custom", "input") if raw.get("type") == "custom" else ("function", "arguments")
    about = raw[kind]
    return Part("call", path, raw, "", raw.get("id") or "", about["name"], about[field])


def _item(name: Name, raw: Raw, path: str) -> tuple[Role, tuple[Part, ...]]:
    kind, id_ = raw["type"], raw.get("call_id") or ""
    if kind in CALLS:
        given, item_id = raw[CALLS[kind]] if CALLS[kind] else None, raw.get("id") or ""
        part = Part("call", path, raw, "", id_, raw.get("name", ""), given, item_id)
        return "assistant", (part,)
    of = kind.removesuffix("_output")
    if of != kind and of in CALLS:
        ours, other = CALLS[of], (Part("other", path, raw),)
        said = _content(raw, path, "output", needed=True, inner=True) if ours else other
        return "tool", (_result(name, raw, path, said),)
    return "assistant", (Part("reasoning" if kind == "reasoning" else "other", path, raw),)


def _content(
    about: Raw, path: str, key: str = "content", *, needed: bool = False, inner: bool = False
) -> tuple[Part, ...]:
    """A text, a list of parts, or one part alone. inner: of a result, which holds no other."""
    content = about[key] if needed else about.get(key)
    if content is None or isinstance(content, str):
        return (Part("text", path, {}, text=content),) if content else ()
    at = f"{path}.{key}" if path else key
    listed = [content] if isinstance(content, dict) else content
    part = _block if inner else _part
    return tuple(part(raw, f"{at}[{n}]") for n, raw in enumerate(listed))


def _part(raw: Raw, path: str) -> Part:
    if raw["type"] == "tool_use":
        return Part("call", path, raw, "", raw.get("id") or "", raw["name"], raw["input"])
    if raw["type"] == "tool_result":
        return _result("messages", raw, path, _content(raw, path, inner=True))
    return _block(raw, path)


def _block(raw: Raw, path: str) -> Part:
    kind, field = CONTENT.get(raw["type"], ("other", ""))
    if kind != "image":
        return Part(kind, path, raw, text=raw[field] if field else "")
    image: Any = raw.get(field)
    about = image if raw["type"] == "image_url" else raw
    return Part("image", path, raw, text=_url(image), name=about.get("detail") or "")


def _result(name: Name, raw: Raw, path: str, said: tuple[Part, ...]) -> Part:
    return Part("result", path, raw, id=raw.get(RESULT_ID[name]) or "", inner=said)


def _url(image: Any) -> str:
    """Where an image is, or the image itself as a `data:` URL; "" for one that a vendor keeps."""
    if isinstance(image, dict) and image.get("type") == "base64":
        return f"data:{image['media_type']};base64,{image['data']}"
    url = image.get("url") if isinstance(image, dict) else image
    return str(url or "")
