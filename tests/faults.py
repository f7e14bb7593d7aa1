"""What can go wrong between the model and the agent, and what then has to be true of a turn.

Each row is a turn about orders A-17 and B-21, on any of the three protocols, streamed or not. The
table of `docs/faults.md` is made from these rows.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.fault_server import (
    Behaviour,
    End,
    Exchange,
    Told,
    changed,
    delivery,
    finishing,
    page,
    reset_at_once,
    says,
    silent,
    status,
    whole,
)
from tests.streams import Call, Event

SORRY = (
    "Something went wrong on the way and I could not finish my answer. Nothing was changed."
    " Please ask again."
)
UNAVAILABLE = (
    "I cannot answer at the moment. Nothing was changed. Please try again in a few minutes."
)
LIMIT = (
    "I stopped here, because this took too many steps. What I found is above; please ask again"
    " for what is missing."
)
MALFORMED = "I could not check {}: my own request was not well formed."
ONE_THING = "one of the things you asked about"
OF_A17 = "the delivery of order A-17"

A17, B21 = delivery("call_a", "A-17"), delivery("call_b", "B-21")
TWO = says(A17, B21)

Change = Callable[[str, Told], Told]


@dataclass(frozen=True)
class Row:
    """A fault and what becomes of the turn.

    first: how the server answers; behind it the model works, or it answers like `for_good` until
    the end of the turn. on: the protocols, streamed or not, that have this fault.
    ran: the orders that a tool was run for. told: what the turn's last request held, in order:
    (call id, "ok" or the error's kind). orders: whose data the person reads; says: in which
    sentences besides. outcome: the error of the turn; "" for an answer. shop: what happens to the
    calls about an order. long: the short suite has it on one protocol alone.
    """

    fault: str
    first: Sequence[Behaviour] = ()
    for_good: Behaviour | None = None
    on: Callable[[str, bool], bool] = lambda name, streamed: True
    ran: Sequence[str] = ()
    told: Sequence[tuple[str, str]] = ()
    orders: Sequence[str] = ()
    says: Sequence[str] = ()
    outcome: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    shop: dict[str, str] = field(default_factory=dict)
    long: bool = False


BOTH: dict[str, Any] = {
    "ran": ("A-17", "B-21"),
    "told": (("call_a", "ok"), ("call_b", "ok")),
    "orders": ("A-17", "B-21"),
}


def _streamed(name: str, streamed: bool) -> bool:
    return streamed


def _text(name: str, streamed: bool) -> bool:
    """Where arguments go over the wire as text; a body of Messages holds an object."""
    return streamed or name != "messages"


# Whole responses, in whatever shape they come.

FIVE = ("A", "B", "A-17", "A-18", "B-21")
TWENTY = [delivery(f"call_{n}", FIVE[n % 5]) for n in range(20)]
TALKING = says(A17, B21, text="One moment. A-17 arrives tomorrow, for 9 dollars.")

ONE_BY_ONE, OPENED_FIRST = [0, 1] * 9, [0, 1, 1, 1, 1, 1, 1, 1]

SHAPES = [
    Row("none", [whole(TWO)], **BOTH),
    Row(
        "the pieces of two calls interleave",
        [whole(says(A17, B21, mixed=ONE_BY_ONE))],
        on=_streamed,
        **BOTH,
    ),
    Row(
        "both calls are opened before the first piece",
        [whole(says(A17, B21, mixed=OPENED_FIRST))],
        on=_streamed,
        **BOTH,
    ),
    Row("three bytes at a time", [whole(TWO, size=3)], **BOTH),
    Row(
        "twenty calls at once",
        [whole(says(*TWENTY, mixed=list(range(20)) * 9))],
        ran=[FIVE[n % 5] for n in range(20)],
        told=[(call.call_id, "ok") for call in TWENTY],
        orders=FIVE,
    ),
    Row("calls with words beside them", [whole(TALKING)], **BOTH),
    Row(
        "an id that comes again in the next round",
        [whole(says(delivery("call_0", order))) for order in ("A-17", "B-21")],
        ran=("A-17", "B-21"),
        told=(("call_0", "ok"), ("call_*", "ok")),
        orders=("A-17", "B-21"),
    ),
]


# Responses that are not whole. In each, a lenient reader finds order A of an A-17.

CUT = Call("call_a", "get_delivery", ('{"order_id":"A',))
PARTLY = says(B21, CUT)
ERROR = {"code": "server_error", "message": "The server had an error."}
WORDS = {
    "length": {"responses": "incomplete", "chat": "length", "messages": "max_tokens"},
    "failed": {"responses": "failed", "chat": "content_filter", "messages": "refusal"},
}


def ended(how: str) -> Change:
    """The response ends as the protocol's own word says."""

    def change(name: str, told: Told) -> Told:
        return CHANGES[name](told, WORDS[how][name])

    return change


def _responses_ended(told: Told, end: str) -> Told:
    output = [{**item, "status": "incomplete"} for item in told.body["output"]]
    more = {"error": ERROR} if end == "failed" else {}
    details = {"incomplete_details": {"reason": "max_output_tokens"}} if not more else {}
    body = {**told.body, "status": end, "output": output, **details, **more}
    return replace(told, body=body, stream=[*told.stream[:-1], _last(end, body)])


def _last(end: str, response: Event) -> Event:
    return {"type": f"response.{end}", "response": response}


def _chat_ended(told: Told, end: str) -> Told:
    *before, last, usage = told.stream
    choices = [{**last["choices"][0], "finish_reason": end}]
    body = {**told.body, "choices": [{**told.body["choices"][0], "finish_reason": end}]}
    return replace(told, body=body, stream=[*before, {**last, "choices": choices}, usage])


def _messages_ended(told: Told, end: str) -> Told:
    *before, last, stop = told.stream
    delta = {**last["delta"], "stop_reason": end}
    body = {**told.body, "stop_reason": end}
    return replace(told, body=body, stream=[*before, {**last, "delta": delta}, stop])


CHANGES: dict[str, Callable[[Told, str], Told]] = {
    "responses": _responses_ended,
    "chat": _chat_ended,
    "messages": _messages_ended,
}


def an_error(name: str, told: Told) -> Told:
    """An error instead of the end."""
    if name == "responses":
        event: Event = {"type": "error", **ERROR, "param": None, "sequence_number": 99}
        body = {**told.body, "status": "failed", "error": ERROR, "output": []}
        return replace(told, body=body, stream=[*told.stream[:-1], event])
    about = {"type": "overloaded_error", "message": "Overloaded"}
    body = {"type": "error", "error": about} if name == "messages" else {"error": ERROR}
    return replace(told, body=body, stream=[*told.stream[:-2], body])


def contradicting(name: str, told: Told) -> Told:
    """A call that ends as another than its pieces say; in Chat, under another name."""
    if name == "chat":
        told.stream[3]["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] = "get_order"
        return told
    if name == "messages":
        told.stream[1]["content_block"]["input"] = {"order_id": "A"}
        return told
    ends = [json.loads(json.dumps(event).replace("A-17", "A")) for event in told.stream]
    deltas = [event["type"].endswith(".delta") for event in told.stream]
    kept = zip(told.stream, ends, deltas, strict=True)
    return replace(told, stream=[own if delta else end for own, end, delta in kept])


def _interrupted(fault: str, broken: Behaviour, **more: Any) -> Row:
    about = {"says": [SORRY], "outcome": "stream_interrupted", **more}
    return Row(fault, for_good=broken, **about)


def _cut(end: End) -> Behaviour:
    return whole(says(B21, A17), until="-17", end=end)


def _final(**how: Any) -> Behaviour:
    """The last message, without its second half."""

    def tell(exchange: Exchange) -> None:
        told = finishing(exchange.asked)(exchange.asked)
        half = told.stream[: len(told.stream) // 2]
        exchange.tell(replace(told, stream=half, until="closing", **how))

    return tell


def _final_by_length(exchange: Exchange) -> None:
    changed(finishing(exchange.asked), ended("length"))(exchange)


TWICE = says(A17, replace(B21, call_id="call_a"))
NAMELESS = says(A17, replace(B21, call_id=""))
LAST: dict[str, Any] = {"first": [whole(TWO)], **BOTH}
SOON = {"stall_timeout": 0.3}

BROKEN = [
    _interrupted("cut within a call by FIN", _cut("closed")),
    _interrupted("cut within a call by FIN within a chunk", _cut("torn"), long=True),
    _interrupted("cut within a call by RST", _cut("reset")),
    _interrupted("a clean end within a call", _cut("whole")),
    _interrupted("cut within a call by the limit of tokens", changed(PARTLY, ended("length"))),
    _interrupted("ended by the vendor (failed, filtered, refused)", changed(TWO, ended("failed"))),
    _interrupted("an error event", changed(TWO, an_error)),
    _interrupted("a call that contradicts its pieces", changed(TWO, contradicting), on=_streamed),
    _interrupted("no byte comes any more", _cut("silent"), settings=SOON, long=True),
    _interrupted("an id for two calls", whole(TWICE), outcome="ambiguous_calls", long=True),
    _interrupted("a call without an id", whole(NAMELESS), outcome="ambiguous_calls", long=True),
    _interrupted("a page (HTML, status 200)", page, long=True),
    _interrupted("the last message cut by FIN", _final(end="closed"), **LAST, long=True),
    _interrupted("the last message cut by RST", _final(end="reset"), **LAST, long=True),
    _interrupted("a clean end in the last message", _final(), **LAST),
    _interrupted(
        "the last message cut by the limit of tokens",
        _final_by_length,
        **LAST,
    ),
]


# Answers that are errors, or none.


def _unavailable(fault: str, answer: Behaviour, **more: Any) -> Row:
    return Row(fault, for_good=answer, says=[UNAVAILABLE], outcome="model_unavailable", **more)


REFUSED = [
    _unavailable("status 429 with Retry-After", status(429, retry_after="1")),
    _unavailable("status 500", status(500)),
    _unavailable("status 529, overloaded", status(529), long=True),
    _unavailable("status 400", status(400), long=True),
    _unavailable("RST before the first byte", reset_at_once, long=True),
    _unavailable("no first byte", silent, settings=SOON, long=True),
]


# Calls that are whole and wrong, each beside a good one.


def _beside(text: str) -> Behaviour:
    return whole(says(Call("call_a", "get_delivery", tuple(text)), B21))


def _malformed(fault: str, text: str, what: str = ONE_THING, **more: Any) -> Row:
    return Row(
        fault,
        [_beside(text)],
        ran=["B-21"],
        told=[("call_a", "invalid_arguments"), ("call_b", "ok")],
        orders=["B-21"],
        says=[MALFORMED.format(what)],
        **more,
    )


NO_JSON = Call("call_a", "get_delivery", ('{"order_id":"A', ","))
UNKNOWN = Call("call_a", "get_weather", ('{"order_id":', '"A-17"}'))

WRONG = [
    Row(
        "arguments that are no JSON, in the only call",
        [whole(says(NO_JSON))],
        on=_text,
        told=[("call_a", "invalid_arguments")],
        says=[MALFORMED.format(ONE_THING)],
    ),
    _malformed("arguments that are no JSON", '{"order_id":"A', on=_text),
    _malformed("two objects in one", '{"order_id":"A"}{"order_id":"A-17"}', on=_text, long=True),
    _malformed("a field named twice", '{"order_id":"A","order_id":"A-17"}', on=_text),
    _malformed("no arguments", ""),
    Row(
        "no arguments, for a tool that needs none",
        [whole(says(Call("call_a", "list_orders", ()), B21))],
        ran=["list_orders", "B-21"],
        told=[("call_a", "ok"), ("call_b", "ok")],
        orders=["B-21"],
    ),
    _malformed("a number for an id", '{"order_id":17}', long=True),
    _malformed("a field that is missing", "{}", long=True),
    _malformed("null for an id", '{"order_id":null}', long=True),
    _malformed("a field too many", '{"order_id":"A-17","customer_id":"C-1002"}', OF_A17),
    _malformed("a list for an id", '{"order_id":["A-17"]}', long=True),
    _malformed("a list for the arguments", '["A-17"]'),
    _malformed("null for the arguments", "null"),
    Row(
        "a tool that does not exist",
        [whole(says(UNKNOWN, B21))],
        ran=["B-21"],
        told=[("call_a", "unknown_tool"), ("call_b", "ok")],
        orders=["B-21"],
        says=[f"I could not check {ONE_THING}: I have no way to do that."],
    ),
    Row(
        "a call that the model corrects",
        [whole(says(NO_JSON)), whole(says(delivery("call_c", "A-17")))],
        on=_text,
        ran=["A-17"],
        told=[("call_a", "invalid_arguments"), ("call_c", "ok")],
        orders=["A-17"],
    ),
    Row(
        "calls without end",
        for_good=whole(lambda asked: says(delivery(f"call_{len(asked.batches)}", "A-17"))(asked)),
        settings={"max_rounds": 3},
        ran=["A-17", "A-17", "A-17"],
        told=[("call_0", "ok"), ("call_1", "ok")],
        orders=["A-17"],
        says=[LIMIT],
    ),
]


# The shop's own faults: the other call is answered.


def _of_the_shop(fault: str, kind: str, words: str) -> Row:
    return Row(
        fault,
        [whole(TWO)],
        ran=["A-17", "B-21"],
        told=[("call_a", kind), ("call_b", "ok")],
        orders=["B-21"],
        says=[f"I could not check {OF_A17}: {words}"],
        shop={"A-17": kind},
        settings={"tool_timeout": 0.3},
    )


SHOP = [
    _of_the_shop("the shop fails for one order", "service_error", "the service failed."),
    _of_the_shop(
        "the shop is silent on one order", "timeout", "the service did not answer in time."
    ),
]

ROWS = [*SHAPES, *BROKEN, *REFUSED, *WRONG, *SHOP]


# Usage: ten tokens in, four of them cached, and two out, one of them a thought.

USAGE: dict[str, Event] = {
    "responses": {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 12,
    },
    "chat": {
        "prompt_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens": 2,
        "completion_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 12,
    },
    "messages": {
        "input_tokens": 6,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 0,
        "output_tokens": 2,
    },
}


def counting(told: str) -> Change:
    """The usage is told once, twice, or in every event that can hold it."""

    def change(name: str, response: Told) -> Told:
        used = USAGE[name]
        *before, end = [_counted(event, used) for event in response.stream]
        if told != "once" and name == "responses":
            begun = {"type": "response.in_progress", "response": {**end["response"], "output": []}}
            before = [{**begun, "type": "response.created"}, begun, *before[1:]]
        elif told == "in every event" and name == "chat":
            before = [{**event, "usage": used} for event in before]
        elif told != "once":
            before = [*before, end if name == "chat" else before[-1]]
        body = {**response.body, "usage": used}
        return replace(response, body=body, stream=[*before, end])

    return change


def _counted(event: Event, used: Event) -> Event:
    """The event; what it tells of usage is this."""
    for name in ("response", "message"):
        if event.get(name, {}).get("usage"):
            return {**event, name: {**event[name], "usage": used}}
    return {**event, "usage": used} if event.get("usage") else event


def table() -> str:
    """The rows in Markdown, as `docs/faults.md` holds them."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "| fault | what ran | what the person reads | outcome |"
    yield "|---|---|---|---|"
    for row in ROWS:
        told = [kind for _, kind in row.told if kind != "ok"]
        outcome = row.outcome or ", ".join(told) or "answered"
        reads = [*([f"the data of {_and(row.orders)}"] if row.orders else []), *_quoted(row.says)]
        yield f"| {row.fault} | {_runs(row)} | {'; '.join(reads)} | `{outcome}` |"


def _runs(row: Row) -> str:
    return "nothing" if not row.ran else f"{len(row.ran)}: {_and(dict.fromkeys(row.ran))}"


def _and(names: Any) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else str(last)


def _quoted(sentences: Sequence[str]) -> list[str]:
    """The first sentence of each."""
    return [f"“{said.partition('. ')[0].rstrip('.')} …”" for said in sentences]
