"""The Responses API: a request read into a conversation, a reply written in the API's shapes.

Source: `openai.types.responses` of the official SDK, for every object and event below.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from offline_model import checks, reasoning, sse
from offline_model.conversation import Asked, Call, Conversation, Step, Think, Tool, Turn
from offline_model.store import Item, ResponseStore
from offline_model.wording import fragments, new_id, text_of, tokens_of, written

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


def reply(sent: dict[str, Any], store: ResponseStore, think: Think) -> "Reply":
    """The model's reply to a request; raises ApiRefusal where the API would refuse it.

    It is kept unless the request says otherwise: `store` is true where nothing is said.
    """
    checks.check(sent)
    kept = store.conversation(sent.get("previous_response_id"))
    items = [*kept, *_items(sent["input"])]
    checks.check_items(sent, items, store)
    answered = Reply(sent, items, think(conversation(sent, items)))
    if sent.get("store") is not False:
        store.keep(answered.response_id, [*items, *answered.output])
    return answered


def conversation(sent: dict[str, Any], items: list[Item]) -> Conversation:
    """A checked request as the planner reads it, with all the items that it stands for."""
    form = (sent.get("text") or {}).get("format") or {}
    system = [text_of(i["content"]) for i in items if i.get("role") in ("system", "developer")]
    return Conversation(
        instructions="\n\n".join(filter(None, [sent.get("instructions"), *system])),
        tools=tuple(map(Tool.of, sent.get("tools") or ())),
        turns=tuple(_turns(items)),
        schema=form.get("schema") if form.get("type") == "json_schema" else None,
        choice=_choice(sent.get("tool_choice")),
        parallel=sent.get("parallel_tool_calls") is not False,
    )


def _items(given: str | list[Item]) -> list[Item]:
    return given if isinstance(given, list) else [{"role": "user", "content": given}]


def _choice(choice: Any) -> str:
    if isinstance(choice, dict):
        return str(choice.get("name") or choice.get("mode") or "auto")
    return choice or "auto"


def _turns(items: list[Item]) -> list[Turn]:
    turns = [Turn("")]
    calls: dict[int, Call] = {}
    for item in items:
        if item.get("role") == "user":
            turns.append(Turn(text_of(item["content"])))
        elif item.get("type") == "function_call":
            calls[id(item)] = Call(item["call_id"], item["name"], item["arguments"])
            turns[-1].calls.append(calls[id(item)])
    for called, output in checks.pairs(items):
        calls[id(called)].output = text_of(output["output"])
    return turns if len(turns) == 1 else turns[1:]


@dataclass
class Reply:
    """One response of the model, to be sent whole or as events."""

    sent: dict[str, Any]
    read: list[Item]
    step: Step
    response_id: str = field(default_factory=lambda: new_id("resp"))
    created_at: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        thought = reasoning.thought(self.sent)
        calls = [_call_item(call, thought) for call in self.step.calls]
        said = calls or [_message(self.step.text, thought)]
        self.output = [thought, *said] if thought else said

    def whole(self) -> Item:
        """The response object, completed."""
        done = {"completed_at": int(time.time()), "output": self.output, "usage": self._usage()}
        return {**self._head("completed"), **done}

    def frames(self, fragment: int) -> Iterator[bytes]:
        """The body of a streamed response."""
        return map(sse.frame, self.events(fragment))

    def events(self, fragment: int) -> Iterator[Event]:
        """The stream of the response, its deltas `fragment` characters long."""
        for number, event in enumerate(self._events(fragment)):
            yield {**event, "sequence_number": number}

    def _events(self, fragment: int) -> Iterator[Event]:
        head = self._head("in_progress")
        yield {"type": "response.created", "response": head}
        yield {"type": "response.in_progress", "response": head}
        for index, item in enumerate(self.output):
            for event in EVENTS[item["type"]](item, fragment):
                yield {**event, "output_index": index}
        yield {"type": "response.completed", "response": self.whole()}

    def _head(self, status: str) -> Item:
        given = {name: self.sent[name] for name in ECHOED if self.sent.get(name) is not None}
        empty = dict.fromkeys(("completed_at", "error", "incomplete_details", "usage"))
        about = {"id": self.response_id, "object": "response", "created_at": self.created_at}
        asked = {**ECHOED, **given, "model": self.sent["model"]}
        return {**about, **empty, **asked, "status": status, "output": []}

    def _usage(self) -> Item:
        read = tokens_of({**self.sent, "input": self.read})
        thought = sum(reasoning.TOKENS for item in self.output if item["type"] == "reasoning")
        said = thought + sum(tokens_of(_said(item)) for item in self.output)
        return {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": said,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": read + said,
        }


def _call_item(call: Asked, thought: Item | None) -> Item:
    ids = {"id": reasoning.item_id("fc", thought), "call_id": call.call_id or new_id("call", 24)}
    about = {"name": call.name, "arguments": written(call.arguments), "status": "completed"}
    return {"type": "function_call", **ids, **about}


def _message(text: str, thought: Item | None) -> Item:
    message = {"type": "message", "id": reasoning.item_id("msg", thought), "role": "assistant"}
    return {**message, "status": "completed", "content": [_part(text)]}


def _part(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _said(item: Item) -> str:
    if item["type"] == "function_call":
        return str(item["name"]) + str(item["arguments"])
    return str(item["content"][0]["text"]) if item["type"] == "message" else ""


def _thought_events(item: Item, fragment: int) -> Iterator[Event]:
    yield {"type": "response.output_item.added", "item": item}
    yield {"type": "response.output_item.done", "item": item}


def _call_events(item: Item, fragment: int) -> Iterator[Event]:
    about = {"item_id": item["id"]}
    started = {**item, "arguments": "", "status": "in_progress"}
    yield {"type": "response.output_item.added", "item": started}
    for piece in fragments(item["arguments"], fragment):
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
    for piece in fragments(part["text"], fragment):
        yield {"type": "response.output_text.delta", **about, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **about, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **about, "part": part}
    yield {"type": "response.output_item.done", "item": item}


EVENTS = {
    "reasoning": _thought_events,
    "function_call": _call_events,
    "message": _message_events,
}
