"""Each order's facts stand where the answer speaks of that order, and nobody else's do."""

from collections.abc import Iterator

from evals.evaluators.seen import Seen, Wrong
from evals.reading import Fact, Meaning
from evals.truth import Money, Value


def facts(seen: Seen) -> Iterator[Wrong]:
    for order_id, fields in seen.turn.facts.items():
        if not seen.reading.of(order_id):
            yield Wrong(f"order {order_id} is not in the answer")
            continue
        for field in fields:
            yield from _present(seen, order_id, field)
    if not seen.message.strip():
        yield Wrong("the answer is empty")
    yield from _own(seen)


def _present(seen: Seen, order_id: str, field: str) -> Iterator[Wrong]:
    stated = [fact for part in seen.reading.of(order_id) for fact in part.facts]
    for place, value in enumerate(seen.truth.orders[order_id].values[field]):
        meaning = Meaning(order_id, field, place)
        found = [fact for fact in stated if meaning in fact.meanings]
        if not found:
            yield Wrong(f"order {order_id}: {field} ({_shown(value)}) is missing")
        elif shared := _others(seen, found[0], order_id, field):
            why = f"order {order_id} and {', '.join(shared)} have the same {field} in the shop"
            yield Wrong(why, "cannot tell")


def _others(seen: Seen, fact: Fact, order_id: str, field: str) -> list[str]:
    """Orders of the turn whose value this is as well: a mix-up of the two would not show."""
    same = {meaning.order_id for meaning in fact.meanings if meaning.field == field}
    return sorted(same & seen.turn.facts.keys() - {order_id})


def _own(seen: Seen) -> Iterator[Wrong]:
    expected = {*seen.turn.facts, *seen.turn.derived.order_ids}
    for part in seen.reading.parts:
        if part.order_id and part.order_id not in expected:
            if part.facts and part.order_id not in seen.turn.failures:
                yield Wrong(f"order {part.order_id} is in the answer and was not asked about")
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
