"""Each order's facts stand where the answer speaks of that order, and nobody else's do.

A call that failed is said to have failed, in the right way, without anybody's data for it.
"""

from collections.abc import Iterator

from evals.evaluators.seen import Seen, Wrong, orders_of
from evals.reading import Fact, Meaning
from evals.truth import Money, Value
from evals.words import words


def facts(seen: Seen) -> Iterator[Wrong]:
    for order_id, fields in seen.turn.facts.items():
        if not seen.reading.of(order_id):
            yield Wrong(f"order {order_id} is not in the answer")
            continue
        for field in fields:
            yield from _present(seen, order_id, field)
    if not seen.message.strip() and not seen.turn.escalated:
        yield Wrong("the answer is empty")
    yield from _own(seen)


def _present(seen: Seen, order_id: str, field: str) -> Iterator[Wrong]:
    stated = [fact for part in seen.reading.of(order_id) for fact in part.facts]
    for place, value in enumerate(seen.truth.orders[order_id].values[field]):
        meaning = Meaning(order_id, field, place)
        found = [fact for fact in stated if meaning in fact.meanings]
        if not found:
            yield Wrong(f"order {order_id}: {field} ({_shown(value)}) is missing")
            continue
        # Orders of the turn whose value this is as well: a mix-up of the two would not show.
        same = {meaning.order_id for meaning in found[0].meanings if meaning.field == field}
        if shared := sorted(same & seen.turn.facts.keys() - {order_id}):
            why = f"order {order_id} and {', '.join(shared)} have the same {field} in the shop"
            yield Wrong(why, "cannot tell")


def _own(seen: Seen) -> Iterator[Wrong]:
    expected = {*seen.turn.facts, *seen.turn.deeds, *seen.turn.derived.order_ids}
    hedges = words(seen.case.language).hedges
    for part in seen.reading.parts:
        if part.facts and (hedge := hedges.search(part.text)):
            yield Wrong(f"“{hedge[0]}” weakens what is said of {part.order_id}", "cannot tell")
        if part.order_id and part.order_id not in expected:
            if part.facts and part.order_id not in seen.turn.failures:
                why = f"order {part.order_id} is in the answer, but not among the case's facts"
                yield Wrong(why)
            continue
        for fact in part.facts:
            if part.order_id in fact.owners:
                continue
            where = f"beside order {part.order_id}" if part.order_id else "beside no order"
            yield Wrong(f"“{fact.text}” stands {where}, {_whose(seen, fact)}")


def _whose(seen: Seen, fact: Fact) -> str:
    """Whose value it is, those of the turn first: they are the likely mix-up."""
    owners = sorted(fact.owners, key=lambda owner: (owner not in seen.turn.order_ids, owner))
    if not owners:
        return "and is no order's"
    fields = sorted({m.field for m in fact.meanings if m.order_id == owners[0]})
    return f"and is the {fields[0]} of order {owners[0]}"


def _shown(value: Value) -> str:
    return f"{value.amount} {value.currency}" if isinstance(value, Money) else str(value)


def failures(seen: Seen) -> Iterator[Wrong]:
    for order_id, kind in seen.turn.failures.items():
        yield from _said(seen, order_id, kind)
    for call in seen.calls:
        found, order_ids = (call["error"] or {}).get("kind", "ok"), orders_of(call["arguments"])
        about = f"{call['tool']} about {', '.join(order_ids) or 'no order'}"
        for expected in (seen.turn.failures[id_] for id_ in order_ids if id_ in seen.turn.failures):
            if found != expected:
                yield Wrong(f"{about} ended as {found}, not as {expected}")
        if found != "ok" and not {*seen.turn.failures, *seen.turn.deeds} & set(order_ids):
            yield Wrong(f"{about} failed ({found})")


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
