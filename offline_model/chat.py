"""Chat Completions: a request read into a conversation, a reply written in the API's shapes.

Source: `openai.types.chat` of the official SDK, for every object and chunk below.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from offline_model import chat_checks, sse
from offline_model.chat_checks import Message
from offline_model.conversation import Asked, Call, Conversation, Step, Think, Tool, Turn
from offline_model.store import ResponseStore
from offline_model.wording import fragments, new_id, text_of, tokens_of, written

Chunk = dict[str, Any]


def reply(sent: dict[str, Any], store: ResponseStore, think: Think) -> "Reply":
    """The model's reply to a request; raises ApiRefusal where the API would refuse it.

    Nothing is kept: no request of this protocol goes on from an earlier one.
    """
    chat_checks.check(sent)
    return Reply(sent, think(conversation(sent)))


def conversation(sent: dict[str, Any]) -> Conversation:
    """A checked request as the planner reads it."""
    messages, form = sent["messages"], sent.get("response_format") or {}
    system = [text_of(m["content"]) for m in messages if m["role"] in ("system", "developer")]
    return Conversation(
        instructions="\n\n".join(system),
        tools=tuple(Tool.of(tool["function"]) for tool in sent.get("tools") or ()),
        turns=tuple(_turns(messages)),
        schema=form["json_schema"].get("schema") if form.get("type") == "json_schema" else None,
        choice=_choice(sent.get("tool_choice")),
        parallel=sent.get("parallel_tool_calls") is not False,
    )


def _choice(choice: Any) -> str:
    if isinstance(choice, dict):
        return str((choice.get("function") or {}).get("name") or "auto")
    return choice or "auto"


def _turns(messages: list[Message]) -> list[Turn]:
    turns = [Turn("")]
    calls: dict[int, Call] = {}
    for message in messages:
        if message["role"] == "user":
            turns.append(Turn(text_of(message["content"])))
        for asked in message.get("tool_calls") or ():
            told = asked["function"]
            calls[id(asked)] = Call(asked["id"], told["name"], told["arguments"])
            turns[-1].calls.append(calls[id(asked)])
    for asked, answer in chat_checks.pairs(messages):
        calls[id(asked)].output = text_of(answer["content"])
    return turns if len(turns) == 1 else turns[1:]


@dataclass
class Reply:
    """One completion, to be sent whole or as chunks."""

    sent: dict[str, Any]
    step: Step
    completion_id: str = field(default_factory=lambda: new_id("chatcmpl", 29).replace("_", "-"))
    created: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        self._calls = [_call(call) for call in self.step.calls]
        self._text = None if self._calls else self.step.text
        self._end = "tool_calls" if self._calls else "stop"

    def whole(self) -> dict[str, Any]:
        """The completion object."""
        message: Message = {"role": "assistant", "content": self._text, "refusal": None}
        message |= {"tool_calls": self._calls} if self._calls else {}
        choice = {"index": 0, "message": {**message, "annotations": []}, "logprobs": None}
        told = {"choices": [{**choice, "finish_reason": self._end}], "usage": self._usage()}
        return {**self._head("chat.completion"), **told}

    def frames(self, fragment: int) -> Iterator[bytes]:
        """The body of a streamed completion, its deltas `fragment` characters long."""
        yield from map(sse.frame, self.chunks(fragment))
        yield sse.DONE

    def chunks(self, fragment: int) -> Iterator[Chunk]:
        """The chunks; the usage is in the last one, without a choice, where it was asked for."""
        with_usage = bool((self.sent.get("stream_options") or {}).get("include_usage"))
        head = self._head("chat.completion.chunk") | ({"usage": None} if with_usage else {})
        for delta in self._deltas(fragment):
            yield {**head, "choices": [_choice_of(delta, None)]}
        yield {**head, "choices": [_choice_of({}, self._end)]}
        if with_usage:
            yield {**head, "choices": [], "usage": self._usage()}

    def _deltas(self, fragment: int) -> Iterator[Message]:
        empty = None if self._calls else ""
        yield {"role": "assistant", "content": empty, "refusal": None}
        for index, call in enumerate(self._calls):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            named = {**call, "function": {"name": name, "arguments": ""}}
            yield {"tool_calls": [{"index": index, **named}]}
            for piece in fragments(arguments, fragment):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
        for piece in fragments(self._text or "", fragment):
            yield {"content": piece}

    def _head(self, kind: str) -> dict[str, Any]:
        about = {"id": self.completion_id, "object": kind, "created": self.created}
        served = {"service_tier": "default", "system_fingerprint": None}
        return {**about, "model": self.sent["model"], **served}

    def _usage(self) -> dict[str, Any]:
        read = tokens_of(self.sent)
        said = tokens_of(self._text or "") + sum(tokens_of(c["function"]) for c in self._calls)
        predicted = {"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}
        return {
            "prompt_tokens": read,
            "completion_tokens": said,
            "total_tokens": read + said,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0, **predicted},
        }


def _call(call: Asked) -> Message:
    told = {"name": call.name, "arguments": written(call.arguments)}
    return {"id": call.call_id or new_id("call", 24), "type": "function", "function": told}


def _choice_of(delta: Message, end: str | None) -> Chunk:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": end}
