"""Requests as the vendors read them, and refused in their words where they would refuse them.

Sources: the official SDKs' types, and the errors that the vendors document. A request that breaks a
rule is the agent's fault, so the server keeps it, and the test fails.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

KEY = "sk-test-0a1b2c3d"
PATHS = {"responses": "/responses", "chat": "/chat/completions", "messages": "/messages"}
SHORT = re.compile(r".{1,64}", re.DOTALL)
ANTHROPIC = re.compile(r"[a-zA-Z0-9_-]{1,64}")

Body = dict[str, Any]


class Refused(Exception):
    """What the vendor says to a request that it does not take."""


@dataclass(frozen=True)
class Batch:
    """The calls of one response, {id: (tool, arguments)}, and their results as they came."""

    calls: dict[str, tuple[str, Any]] = field(default_factory=dict)
    results: list[tuple[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    """A request. told: its texts and batches of calls, in order; a customer's text is a string."""

    name: str
    body: Body
    told: list[str | Batch]

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def batches(self) -> list[Batch]:
        return [each for each in self.told if isinstance(each, Batch)]

    @property
    def results(self) -> list[tuple[str, Any]]:
        """Those of the newest turn: (id, output)."""
        last = max(n for n, each in enumerate(self.told) if isinstance(each, str))
        newest = [each for each in self.told[last:] if isinstance(each, Batch)]
        return [result for batch in newest for result in batch.results]

    @property
    def question(self) -> str:
        return next(each for each in reversed(self.told) if isinstance(each, str))


def read(path: str, headers: Mapping[str, str], body: Body) -> Asked:
    """The request. Raises Refused."""
    name = next(name for name, end in PATHS.items() if path.endswith(end))
    _must(body.get("model"), "you must provide a model parameter")
    _must(body.get("tools"), "the tools are missing")
    key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    _must(key == KEY, "Incorrect API key provided")
    told = READ[name](body)
    _must(told and isinstance(told[0], str), "the conversation does not begin with the user")
    for batch in told:
        if isinstance(batch, Batch):
            _pairs(name, batch)
    return Asked(name, body, told)


def _pairs(name: str, batch: Batch) -> None:
    answered = [id_ for id_, _ in batch.results]
    fits, limit = (ANTHROPIC, "^[a-zA-Z0-9_-]+$") if name == "messages" else (SHORT, "64")
    for id_ in batch.calls:
        _must(fits.fullmatch(id_), f"Invalid 'call_id': {id_!r} does not fit {limit}")
        _must(id_ in answered, f"No tool output found for function call {id_}.")
    for id_ in answered:
        _must(id_ in batch.calls, f"No tool call found for function call output {id_}.")
    _must(len(set(answered)) == len(answered), "a call has more than one result")


def _responses(body: Body) -> list[str | Batch]:
    _must(body.get("instructions"), "the instructions are missing")
    told: list[str | Batch] = []
    for item in body["input"]:
        match item.get("type", "message"):
            case "message" if item["role"] == "user":
                told.append(_text(item["content"]))
            case "function_call":
                _must(item.get("id", "fc_").startswith("fc_"), "Expected an ID that begins 'fc'.")
                _must(isinstance(item["arguments"], str), "arguments must be a string")
                called = (item["name"], json.loads(item["arguments"]))
                _call(told, item["call_id"], called)
            case "function_call_output":
                _result(told, item["call_id"], item["output"])
    return told


def _chat(body: Body) -> list[str | Batch]:
    first, *rest = body["messages"]
    _must(first["role"] == "system" and first["content"], "the instructions are missing")
    told: list[str | Batch] = []
    for message in rest:
        if message["role"] == "user":
            told.append(_text(message["content"]))
        elif message["role"] == "tool":
            _result(told, message["tool_call_id"], message["content"])
        for call in message.get("tool_calls") or ():
            _must(call["type"] == "function", "Missing required parameter: 'tool_calls[0].type'.")
            function = call["function"]
            _call(told, call["id"], (function["name"], json.loads(function["arguments"])))
    return told


def _messages(body: Body) -> list[str | Batch]:
    _must(body.get("system"), "the instructions are missing")
    _must(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
    told: list[str | Batch] = []
    for message, before in zip(body["messages"], [None, *body["messages"]], strict=False):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        _must(blocks, "all messages must have non-empty content")
        if message["role"] == "user":
            _answers(blocks, before)
        for block in blocks:
            _block(told, message["role"], block)
    ids = [id_ for batch in told if isinstance(batch, Batch) for id_ in batch.calls]
    _must(len(set(ids)) == len(ids), "messages: `tool_use` ids must be unique")
    return told


def _answers(blocks: list[Body], before: Body | None) -> None:
    """All results of a response stand first, in the one user message behind it."""
    used = [str(b["id"]) for b in _blocks(before) if b["type"] == "tool_use"]
    first = [str(b["tool_use_id"]) for b in blocks[: len(used)] if b["type"] == "tool_result"]
    _must(
        sorted(used) == sorted(first),
        "`tool_use` ids were found without `tool_result` blocks immediately after",
    )


def _blocks(message: Body | None) -> list[Body]:
    return [b for b in (message or {}).get("content", ()) if isinstance(b, dict)]


def _block(told: list[str | Batch], role: str, block: Body) -> None:
    match block["type"]:
        case "text":
            _must(block["text"].strip(), "text content blocks must be non-empty")
            if role == "user":
                told.append(block["text"])
        case "tool_use":
            _must(isinstance(block["input"], dict), "input: Input should be a valid dictionary")
            _call(told, block["id"], (block["name"], block["input"]))
        case "tool_result":
            _result(told, block["tool_use_id"], _text(block["content"]))


READ: dict[str, Callable[[Body], list[str | Batch]]] = {
    "responses": _responses,
    "chat": _chat,
    "messages": _messages,
}


def _call(told: list[str | Batch], id_: str, call: tuple[str, Any]) -> None:
    """A call; one that stands behind results belongs to the next response."""
    if not told or isinstance(told[-1], str) or told[-1].results:
        told.append(Batch())
    batch = told[-1]
    assert isinstance(batch, Batch)
    _must(id_ not in batch.calls, f"Duplicate item found with id {id_}.")
    batch.calls[id_] = call


def _result(told: list[str | Batch], id_: str, output: str) -> None:
    batch = told[-1] if told else ""
    if not isinstance(batch, Batch):
        raise Refused(f"No tool call found for function call output with call_id {id_}.")
    batch.results.append((id_, json.loads(output)))


def _text(content: str | Iterable[Body]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _must(holds: object, words: str) -> None:
    if not holds:
        raise Refused(words)
