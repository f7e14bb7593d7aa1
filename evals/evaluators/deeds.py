"""What was changed, what the customer was asked first, and what they are told became of it."""

from collections.abc import Iterator
from typing import Any

from evals.evaluators.seen import Seen, Wrong, ended, orders_of
from evals.truth import Money, changes
from evals.words import words

# How an answer says each end of a change: the one that it must hold, and what else it may.
SAID = {
    "done": ({"done"}, set()),
    "repeated": ({"repeated"}, {"done"}),
    "refused": ({"not_done"}, set()),
    "rejected": ({"not_done"}, set()),
    "withdrawn": ({"not_done"}, set()),
    "not_found": ({"not_done"}, set()),
    "awaiting_approval": ({"with_staff"}, {"not_done"}),
    "unknown_outcome": ({"unknown"}, set()),
}  # fmt: skip
# What hides a shorter phrase within it: "not done" says nothing of "done".
ORDER = ("repeated", "unknown", "with_staff", "not_done", "done")


def deeds(seen: Seen) -> Iterator[Wrong]:
    yield from _asked(seen)
    for order_id, deed in seen.turn.deeds.items():
        yield from _call(seen, order_id, deed)
        yield from _told(seen, order_id, deed)
    yield from _untrue(seen)
    if seen.is_last:
        yield from _shop(seen)
    if bool(seen.truth.tickets) != seen.turn.escalated:
        what = "was not handed" if seen.turn.escalated else "was handed"
        yield Wrong(f"the conversation {what} to a person")


def _asked(seen: Seen) -> Iterator[Wrong]:
    """Whoever is to decide was asked, by name and value, before anything was done."""
    waiting = {order_id for order_id, deed in seen.turn.deeds.items() if deed == "asked"}
    expected = {*seen.turn.decide, *waiting}
    for order_id in sorted(expected - {each["subject"] for each in seen.asked}):
        yield Wrong(f"the customer was not asked to confirm the change of order {order_id}")
    for each in seen.asked:
        subject, question = each["subject"], each["question"]
        if subject not in expected:
            yield Wrong(f"the customer was asked to confirm a change of order {subject or 'none'}")
        if subject in each["changed_already"]:
            yield Wrong(f"order {subject} was changed before the customer had confirmed it")
        for value in _wishes(seen, subject):
            if not seen.states(value, question):
                yield Wrong(f"“{question}” does not say {value}")


def _wishes(seen: Seen, order_id: str) -> tuple[Any, ...]:
    order = seen.known.orders.get(order_id)
    return (order_id, *order.values.get("wish", ())) if order else ()


def _call(seen: Seen, order_id: str, deed: str) -> Iterator[Wrong]:
    expected = {"done": "ok", "repeated": "ok", "asked": "pending"}.get(deed, deed)
    for call in (call for call in seen.calls if order_id in orders_of(call["arguments"])):
        if (found := ended(call)) not in (expected, "ok"):
            yield Wrong(f"{call['tool']} about {order_id} ended as {found}, not as {expected}")


def _told(seen: Seen, order_id: str, deed: str) -> Iterator[Wrong]:
    text = "\n".join(part.text for part in seen.reading.of(order_id))
    if not text:
        yield Wrong(f"the answer does not say what became of the change of order {order_id}")
    if not text or deed == "asked":
        return
    said, (needed, allowed) = _said(seen, text), SAID[deed]
    if wrong := said - needed - allowed:
        told = " and ".join(sorted(each.replace("_", " ") for each in wrong))
        yield Wrong(f"the change of order {order_id} is said to be {told}, and is {deed}")
    elif not needed <= said:
        yield Wrong(f"what became of the change of order {order_id} is unclear", "cannot tell")
    for value in _wishes(seen, order_id)[1:] if deed == "done" else ():
        if not seen.states(value, text):
            kind = "amount" if isinstance(value, Money) else "address"
            yield Wrong(f"the change of order {order_id} is told without its {kind}")


def _said(seen: Seen, text: str) -> set[str]:
    said = set()
    for deed in ORDER:
        text, times = words(seen.case.language).deeds[deed].subn(" ", text)
        if times:
            said.add(deed)
    return said


def _untrue(seen: Seen) -> Iterator[Wrong]:
    """Nothing is said to be done with an order that nothing was to be done with."""
    for part in (part for part in seen.reading.parts if part.order_id not in seen.turn.deeds):
        order = seen.truth.orders.get(part.order_id or "")
        was = order and (order.values["refunds"] or "cancelled" in order.values["status"])
        if part.order_id and not was and "done" in _said(seen, part.text):
            yield Wrong(f"order {part.order_id} is said to have been changed, and was not to be")


def _shop(seen: Seen) -> Iterator[Wrong]:
    """At the end of the case, the shop holds what was to be changed, and nothing else."""
    found, writes = changes(seen.before, seen.truth), seen.case.writes
    for order_id in sorted({*found, *writes}):
        is_so, should = found.get(order_id, {}), writes.get(order_id, {})
        for field in sorted({*is_so, *should}):
            now, then = (sorted(each.get(field, ())) for each in (is_so, should))
            if now != then:
                told = "; should be ".join(", ".join(each) or "as before" for each in (now, then))
                yield Wrong(f"in the shop, the {field} of order {order_id}: {told}")
