"""What Chat Completions refuse before their model reads a word.

Source: the official SDK's types (`openai.types.chat`) for the shapes, and the API's own error
messages as clients report them. One rule is stricter than the vendor's: tools and instructions
must come with every request whose messages hold calls.
"""

from collections.abc import Mapping
from typing import Any

from offline_model import fields
from offline_model.errors import ApiRefusal, missing

Message = dict[str, Any]

PARAMETERS = fields.parameters(
    {
        "model user service_tier reasoning_effort verbosity prompt_cache_key "
        "prompt_cache_retention safety_identifier": fields.STRING,
        "messages tools functions": fields.OBJECTS,
        "modalities": fields.STRINGS,
        "response_format stream_options metadata logit_bias audio prediction web_search_options "
        "moderation prompt_cache_options": fields.OBJECT,
        "stream store parallel_tool_calls logprobs": fields.BOOLEAN,
        "temperature top_p frequency_penalty presence_penalty": fields.DECIMAL,
        "n seed max_tokens max_completion_tokens top_logprobs": fields.INTEGER,
        "tool_choice function_call": fields.CHOICE,
        "stop": ((str, list), "one of a string or an array of strings"),
    }
)
ROLES = ("system", "developer", "user", "assistant", "tool")
PARTS = {"user": ("text", "image_url", "input_audio", "file"), "assistant": ("text", "refusal")}
FORMATS = ("text", "json_object", "json_schema")
UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}"
)
UNASKED = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
    "'tool_calls'."
)


def check(sent: dict[str, Any]) -> None:
    """Raises the refusal that the API would answer a request with, if any."""
    fields.known(sent, PARAMETERS)
    for name in ("model", "messages"):
        fields.required(name, sent.get(name), PARAMETERS[name])
    for number, tool in enumerate(sent.get("tools") or ()):
        _tool(f"tools[{number}]", tool)
    _together(sent)
    _answer_format(sent.get("response_format") or {"type": "text"})
    if not sent["messages"]:
        raise _empty("messages")
    for number, message in enumerate(sent["messages"]):
        _message(f"messages[{number}]", message)
    pairs(sent["messages"])
    if any(message.get("tool_calls") for message in sent["messages"]):
        told = any(message["role"] in ("system", "developer") for message in sent["messages"])
        fields.sent_again("messages hold", bool(sent.get("tools")), told)


def _together(sent: Mapping[str, Any]) -> None:
    """What makes sense beside something else only."""
    if sent.get("tools") == []:
        raise _empty("tools")
    for name in ("tool_choice", "parallel_tool_calls"):
        if sent.get(name) is not None and not sent.get("tools"):
            words = f"'{name}' is only allowed when 'tools' are specified."
            raise ApiRefusal(f"Invalid value for '{name}': {words}", name)
    if sent.get("stream_options") and not sent.get("stream"):
        words = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise ApiRefusal(words, "stream_options")


def _empty(param: str) -> ApiRefusal:
    return ApiRefusal(
        f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead.",
        param,
        "empty_array",
    )


def _tool(param: str, tool: Any) -> None:
    fields.required(param, tool, fields.OBJECT)
    fields.one_of(f"{param}.type", tool.get("type"), ("function",))
    fields.required(f"{param}.function", tool.get("function"), fields.OBJECT)
    fields.function(f"{param}.function", tool["function"])


def _answer_format(form: Mapping[str, Any]) -> None:
    fields.one_of("response_format.type", form.get("type"), FORMATS)
    if form["type"] == "json_schema":
        told = form.get("json_schema")
        fields.required("response_format.json_schema", told, fields.OBJECT)
        fields.answer_schema("response_format.json_schema", told or {}, "response_format")


def _message(param: str, message: Any) -> None:
    fields.required(param, message, fields.OBJECT)
    fields.one_of(f"{param}.role", message.get("role"), ROLES)
    content, calls = message.get("content"), message.get("tool_calls")
    fields.typed(f"{param}.content", content, fields.TEXT)
    if content is None and not calls:
        words = "expected a string, got null."
        raise ApiRefusal(f"Invalid value for 'content': {words}", f"{param}.content")
    for number, part in enumerate(content if isinstance(content, list) else ()):
        fields.required(f"{param}.content[{number}]", part, fields.OBJECT)
        allowed = PARTS.get(message["role"], ("text",))
        fields.one_of(f"{param}.content[{number}].type", part.get("type"), allowed)
    fields.typed(f"{param}.tool_calls", calls, fields.OBJECTS)
    if calls == []:
        raise _empty(f"{param}.tool_calls")
    for number, call in enumerate(calls or ()):
        _call(f"{param}.tool_calls[{number}]", call)
    if message["role"] == "tool":
        fields.call_id(f"{param}.tool_call_id", message.get("tool_call_id"))


def _call(param: str, call: Any) -> None:
    fields.required(param, call, fields.OBJECT)
    fields.call_id(f"{param}.id", call.get("id"))
    fields.one_of(f"{param}.type", call.get("type"), ("function",))
    function = call.get("function")
    if function is None:
        raise missing(f"{param}.function")
    fields.name(f"{param}.function.name", function.get("name"))
    fields.required(f"{param}.function.arguments", function.get("arguments"), fields.STRING)


def pairs(messages: list[Message]) -> list[tuple[Message, Message]]:
    """Each call with the tool message that answers it. They follow the message with the calls at
    once, in any order; ids may start again with the next such message."""
    found: list[tuple[Message, Message]] = []
    waiting: dict[str, Message] = {}
    asked: set[str] = set()
    for number, message in enumerate([*messages, {"role": "end"}]):
        if message["role"] != "tool":
            if waiting:
                raise ApiRefusal(UNANSWERED.format(ids=", ".join(waiting)), "messages")
            waiting = _asked(f"messages[{number}]", message)
            asked = set(waiting)
            continue
        call_id = message["tool_call_id"]
        if call_id not in waiting:
            raise _unasked(number, call_id, asked)
        found.append((waiting.pop(call_id), message))
    return found


def _asked(param: str, message: Message) -> dict[str, Message]:
    calls: list[Message] = message.get("tool_calls") or []
    asked = {call["id"]: call for call in calls}
    if len(asked) < len(calls):
        repeated = next(c["id"] for c in calls if sum(c["id"] == o["id"] for o in calls) > 1)
        words = f"Duplicate value for 'id' of '{repeated}' in {param}.tool_calls."
        raise ApiRefusal(f"Invalid parameter: {words}", f"{param}.tool_calls")
    return asked


def _unasked(number: int, call_id: str, asked: set[str]) -> ApiRefusal:
    param = f"messages.[{number}]"
    if call_id in asked:
        words = f"Duplicate value for 'tool_call_id' of '{call_id}' in message[{number}]."
        return ApiRefusal(f"Invalid parameter: {words}", f"{param}.tool_call_id")
    if asked:
        words = f"'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message."
        return ApiRefusal(f"Invalid parameter: {words}", f"{param}.tool_call_id")
    return ApiRefusal(UNASKED, f"{param}.role")
