"""A call that failed is said to have failed, in the right way, without anybody's data for it."""

from collections.abc import Iterator

from evals.evaluators.seen import Seen, Wrong, orders_of
from evals.words import words


def failures(seen: Seen) -> Iterator[Wrong]:
    for order_id, kind in seen.turn.failures.items():
        yield from _calls(seen, order_id, kind)
        yield from _said(seen, order_id, kind)
    for call in seen.calls:
        order_ids = orders_of(call["arguments"])
        if call["error"] and not seen.turn.failures.keys() & set(order_ids):
            about = ", ".join(order_ids) or "no order"
            yield Wrong(f"{call['tool']} about {about} failed ({call['error']['kind']})")


def _calls(seen: Seen, order_id: str, kind: str) -> Iterator[Wrong]:
    for call in seen.calls:
        found = (call["error"] or {}).get("kind", "ok")
        if order_id in orders_of(call["arguments"]) and found != kind:
            yield Wrong(f"{call['tool']} about {order_id} ended as {found}, not as {kind}")


def _said(seen: Seen, order_id: str, kind: str) -> Iterator[Wrong]:
    parts = seen.reading.of(order_id)
    if not parts:
        yield Wrong(f"the answer does not say that {order_id} failed")
        return
    for fact in (fact for part in parts for fact in part.facts):
        yield Wrong(f"“{fact.text}” is shown for {order_id}, of which nothing is known")
    said, text = words(seen.case.language), " ".join(part.text for part in parts)
    absent, unchecked = said.not_found.search(text), said.unchecked.search(text)
    if (absent and unchecked) or not (absent or unchecked):
        yield Wrong(
            f"whether {order_id} does not exist or was not checked is unclear", "cannot tell"
        )
    elif bool(absent) != (kind == "not_found"):
        told = "not to exist" if absent else "to be unchecked"
        yield Wrong(f"{order_id} is said {told}, and its call ended as {kind}")
