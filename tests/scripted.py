"""A chat model that says what a test wrote, and remembers what it was asked."""

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.json import parse_partial_json
from pydantic import PrivateAttr

Line = AIMessage | Exception | Callable[[Sequence[BaseMessage]], AIMessage]


class Scripted(BaseChatModel):
    """Says one line a request, in order. A line may be an exception or a function of the request.

    `requests` are the messages of each request, the system message left out; `last` the newest.
    """

    _lines: list[Line] = PrivateAttr()
    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    def __init__(self, *lines: Line) -> None:
        super().__init__()
        self._lines = list(lines)

    @property
    def requests(self) -> list[list[AnyMessage]]:
        sent = cast(list[list[AnyMessage]], self._requests)
        return [[m for m in request if m.type != "system"] for request in sent]

    @property
    def last(self) -> list[AnyMessage]:
        return self.requests[-1]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self._requests.append(list(messages))
        if not self._lines:
            raise AssertionError("The script has no line left for this request.")
        line = self._lines.pop(0)
        if isinstance(line, Exception):
            raise line
        message = line if isinstance(line, AIMessage) else line(messages)
        return ChatResult(generations=[ChatGeneration(message=message)])


def calling(*calls: tuple[str, str, dict[str, Any]], **metadata: Any) -> AIMessage:
    """A response with calls, each (call id, tool, arguments)."""
    return AIMessage(
        content="",
        tool_calls=[
            {"type": "tool_call", "id": id_, "name": name, "args": arguments}
            for id_, name, arguments in calls
        ],
        response_metadata=metadata,
    )


def answering(
    *cards: tuple[str, str], opening: str = "", closing: str = "", locale: str = "en"
) -> AIMessage:
    """A last message: a draft with cards, each (call id, text)."""
    draft = {
        "locale": locale,
        "opening": opening,
        "cards": [{"call_id": id_, "text": text} for id_, text in cards],
        "closing": closing,
    }
    return AIMessage(content=json.dumps(draft))


def responses(*calls: tuple[str, str, str], status: str | None = "completed") -> AIMessage:
    """A response as langchain-openai gives it on the Responses API: the raw text of each call's

    arguments in the content, and what LangChain's lenient parser makes of them in `tool_calls`.
    """
    blocks = [
        {"type": "function_call", "id": f"fc_{id_}", "call_id": id_, "name": name, "arguments": raw}
        for id_, name, raw in calls
    ]
    return AIMessage(
        content=list(blocks), response_metadata=_ended("status", status), **_lenient(calls)
    )


def chat(*calls: tuple[str, str, str], finish: str | None = "tool_calls") -> AIMessage:
    """The same as Chat Completions give it: the raw text stands in `additional_kwargs`."""
    raw_calls = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": raw}}
        for id_, name, raw in calls
    ]
    return AIMessage(
        content="",
        additional_kwargs={"tool_calls": raw_calls},
        response_metadata=_ended("finish_reason", finish),
        **_lenient(calls),
    )


def _ended(name: str, end: str | None) -> dict[str, Any]:
    return {"model_provider": "openai"} | ({name: end} if end else {})


def _lenient(calls: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """`tool_calls` and `invalid_tool_calls` as LangChain's parser for streams fills them."""
    valid: list[dict[str, Any]] = []
    invalid: list[dict[str, Any]] = []
    for id_, name, raw in calls:
        arguments = _leniently_parsed(raw)
        call = {"id": id_, "name": name}
        if isinstance(arguments, dict):
            valid.append({"type": "tool_call", "args": arguments, **call})
        else:
            invalid.append({"type": "invalid_tool_call", "args": raw, "error": None, **call})
    return {"tool_calls": valid, "invalid_tool_calls": invalid}


def _leniently_parsed(raw: str) -> Any:
    try:
        return parse_partial_json(raw or "{}")
    except (ValueError, RecursionError):
        return None
