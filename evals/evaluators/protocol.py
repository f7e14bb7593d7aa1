"""Each call has exactly one output, under its own id, in the order of the calls."""

from collections.abc import Iterator

from evals.evaluators.seen import Seen, Wrong, orders_of


def protocol(seen: Seen) -> Iterator[Wrong]:
    if seen.report["status"] != "answered":
        said = (seen.report["error"] or {}).get("message", "")
        yield Wrong(f"the turn is {seen.report['status']}: {said}".strip())
    yield from _history(seen)
    yield from _outputs(seen)


def _history(seen: Seen) -> Iterator[Wrong]:
    open_calls: list[str] = []
    for message in seen.history:
        if "told" in message:
            if open_calls[:1] != [message["told"]]:
                yield Wrong(f"an output stands under {message['told']!r}, out of order or twice")
            open_calls = [call_id for call_id in open_calls if call_id != message["told"]]
            continue
        if open_calls:
            yield Wrong(f"the model was asked again without an output for {open_calls}")
        open_calls = list(message.get("asks", ()))
    if open_calls or not seen.history or seen.history[-1].get("says") != seen.message:
        yield Wrong("the last message of the thread is not what the customer reads")


def _outputs(seen: Seen) -> Iterator[Wrong]:
    told = [message["output"] for message in seen.history if "told" in message]
    if told != [call["output"] for call in seen.calls]:
        yield Wrong("the outputs in the thread are not those of the calls")
    for call in seen.calls:
        asked, output = orders_of(call["arguments"]), call["output"] or {}
        answered = [output.get("order_id"), (output.get("data") or {}).get("order_id")]
        for order_id in answered:
            if len(asked) == 1 and order_id is not None and order_id != asked[0]:
                yield Wrong(f"the call about {asked[0]} has an output about {order_id}")
