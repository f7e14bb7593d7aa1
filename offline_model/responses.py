"""The Responses API: a request read into a conversation, a reply written in the API's shapes.

Source: `openai.types.responses` of the official SDK, for every object and event below.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from offline_model import checks
from offline_model.conversation import Call, Conversation, Step, Tool, Turn
from offline_model.planner import plan

Item = dict[str, Any]
Event = dict[str, Any]

# What a response repeats from its request, and the API's defaults where nothing was asked.
UNSET = "instructions max_output_tokens max_tool_calls previous_response_id prompt_cache_key user"
ECHOED: dict[str, Any] = (
    dict.fromkeys([*UNSET.split(), "safety_identifier"])
    | {"background": False, "parallel_tool_calls": True, "tools": [], "tool_choice": "auto"}
    | {"temperature": 1.0, "top_p": 1.0, "top_logprobs": 0, "metadata": {}}
    | {"service_tier": "default", "truncation": "disabled"}
    | {"reasoning": {"effort": None, "summary": None}}
    | {"text": {"format": {"type": "text"}, "verbosity": "medium"}}
)


def reply(sent: dict[str, Any]) -> "Reply":
    """The model's reply to a request; raises ApiRefusal where the API would refuse it."""
    checks.check(sent)
    return Reply(sent, plan(conversation(sent)))


def conversation(sent: dict[str, Any]) -> Conversation:
    """A checked request as the planner reads it."""
    alone = [{"role": "user", "content": sent["input"]}]
    items = sent["input"] if isinstance(sent["input"], list) else alone
    form = (sent.get("text") or {}).get("format") or {}
    system = [_text(item["content"]) for item in items if _role(item) in ("system", "developer")]
    return Conversation(
        instructions="\n\n".join(filter(None, [sent.get("instructions"), *system])),
        tools=tuple(
            Tool(tool["name"], tool.get("description") or "", tool.get("parameters") or {})
            for tool in sent.get("tools") or ()
        ),
        turns=tuple(_turns(items)),
        schema=form.get("schema") if form.get("type") == "json_schema" else None,
        choice=_choice(sent.get("tool_choice")),
        parallel=sent.get("parallel_tool_calls") is not False,
    )


def _role(item: Item) -> str:
    return str(item.get("role", ""))


def _text(content: str | list[Item]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content if part.get("text"))


def _choice(choice: Any) -> str:
    if isinstance(choice, dict):
        return str(choice.get("name") or choice.get("mode") or "auto")
    return choice or "auto"


def _turns(items: list[Item]) -> list[Turn]:
    turns = [Turn("")]
    calls: dict[int, Call] = {}
    for item in items:
        if _role(item) == "user":
            turns.append(Turn(_text(item["content"])))
        elif item.get("type") == "function_call":
            calls[id(item)] = Call(item["call_id"], item["name"], item["arguments"])
            turns[-1].calls.append(calls[id(item)])
    for called, output in checks.pairs(items):
        calls[id(called)].output = _text(output["output"])
    return turns if len(turns) == 1 else turns[1:]


def _new_id(prefix: str) -> str:
    return f"{prefix}_{uuid4().hex}"


@dataclass
class Reply:
    """One response of the model, to be sent whole or as events."""

    sent: dict[str, Any]
    step: Step
    response_id: str = field(default_factory=lambda: _new_id("resp"))
    created_at: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        self.output = [_call_item(*call) for call in self.step.calls] or [_message(self.step.text)]

    def whole(self) -> Item:
        """The response object, completed."""
        done = {"completed_at": int(time.time()), "output": self.output, "usage": self._usage()}
        return {**self._head("completed"), **done}

    def events(self, fragment: int) -> Iterator[Event]:
        """The stream of the response, its deltas `fragment` characters long."""
        for number, event in enumerate(self._events(fragment)):
            yield {**event, "sequence_number": number}

    def _events(self, fragment: int) -> Iterator[Event]:
        head = self._head("in_progress")
        yield {"type": "response.created", "response": head}
        yield {"type": "response.in_progress", "response": head}
        for index, item in enumerate(self.output):
            write = _call_events if item["type"] == "function_call" else _message_events
            for event in write(item, fragment):
                yield {**event, "output_index": index}
        yield {"type": "response.completed", "response": self.whole()}

    def _head(self, status: str) -> Item:
        given = {name: self.sent[name] for name in ECHOED if self.sent.get(name) is not None}
        empty = dict.fromkeys(("completed_at", "error", "incomplete_details", "usage"))
        about = {"id": self.response_id, "object": "response", "created_at": self.created_at}
        asked = {**ECHOED, **given, "model": self.sent["model"]}
        return {**about, **empty, **asked, "status": status, "output": []}

    def _usage(self) -> Item:
        """About four characters make a token."""
        read = len(json.dumps(self.sent, ensure_ascii=False)) // 4 + 1
        written = sum(len(_written(item)) // 4 + 1 for item in self.output)
        return {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + written,
        }


def _call_item(name: str, arguments: dict[str, Any]) -> Item:
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    named = {"id": _new_id("fc"), "call_id": f"call_{uuid4().hex[:24]}", "name": name}
    return {"type": "function_call", **named, "arguments": text, "status": "completed"}


def _message(text: str) -> Item:
    message = {"type": "message", "id": _new_id("msg"), "role": "assistant"}
    return {**message, "status": "completed", "content": [_part(text)]}


def _part(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _written(item: Item) -> str:
    if item["type"] == "function_call":
        return str(item["name"]) + str(item["arguments"])
    return str(item["content"][0]["text"])


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _call_events(item: Item, fragment: int) -> Iterator[Event]:
    about = {"item_id": item["id"]}
    started = {**item, "arguments": "", "status": "in_progress"}
    yield {"type": "response.output_item.added", "item": started}
    for piece in _pieces(item["arguments"], fragment):
        yield {"type": "response.function_call_arguments.delta", **about, "delta": piece}
    done = {"arguments": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", **about, **done}
    yield {"type": "response.output_item.done", "item": item}


def _message_events(item: Item, fragment: int) -> Iterator[Event]:
    about = {"item_id": item["id"], "content_index": 0}
    part = item["content"][0]
    started = {**item, "content": [], "status": "in_progress"}
    yield {"type": "response.output_item.added", "item": started}
    yield {"type": "response.content_part.added", **about, "part": _part("")}
    for piece in _pieces(part["text"], fragment):
        yield {"type": "response.output_text.delta", **about, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **about, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **about, "part": part}
    yield {"type": "response.output_item.done", "item": item}
