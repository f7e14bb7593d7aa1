"""Each order's facts stand where the answer speaks of that order, and nobody else's do.

What follows from several orders is computed here from the database, and found in the answer. A
call that failed is said to have failed, in the right way, without anybody's data for it.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Literal

from evals.evaluators.seen import Seen, Wrong, ended, orders_of
from evals.reading import MENTION, Fact, Meaning
from evals.words import words

CLAUSE = re.compile(r"[;:\n.。;,,()()]| and | и | y |和")


def facts(seen: Seen) -> Iterator[Wrong]:
    for order_id, fields in seen.turn.facts.items():
        if parts := seen.reading.of(order_id):
            stated = [fact for part in parts for fact in part.facts]
            for field in fields:
                yield from _present(seen, order_id, field, stated)
        else:
            yield Wrong(f"order {order_id} is not in the answer")
    if not seen.message.strip() and not seen.turn.escalated:
        yield Wrong("the answer is empty")
    yield from _own(seen)


def _present(seen: Seen, order_id: str, field: str, stated: list[Fact]) -> Iterator[Wrong]:
    for place, value in enumerate(seen.truth.orders[order_id].values[field]):
        meaning = Meaning(order_id, field, place)
        found = [fact for fact in stated if meaning in fact.meanings]
        if not found:
            yield Wrong(f"order {order_id}: {field} ({value}) is missing")
            continue
        # Orders of the turn whose value this is as well: a mix-up of the two would not show.
        same = {meaning.order_id for meaning in found[0].meanings if meaning.field == field}
        if shared := sorted(same & seen.turn.facts.keys() - {order_id}):
            why = f"order {order_id} and {', '.join(shared)} have the same {field} in the shop"
            yield Wrong(why, "cannot tell")


def _own(seen: Seen) -> Iterator[Wrong]:
    expected = {*seen.turn.facts, *seen.turn.deeds, *chain(*seen.turn.derived.values())}
    hedges = words(seen.case.language).hedges
    for part in seen.reading.parts:
        if part.facts and (hedge := hedges.search(part.text)):
            yield Wrong(f"“{hedge[0]}” weakens what is said of {part.order_id}", "cannot tell")
        about = f"order {part.order_id}" if part.order_id else "no order"
        if part.order_id and part.order_id not in expected:
            if part.facts and part.order_id not in seen.turn.failures:
                yield Wrong(f"{about} is in the answer, but not among the case's facts")
            continue
        for fact in part.facts:
            if part.order_id not in fact.owners:
                yield Wrong(f"“{fact.text}” stands beside {about}, {_whose(seen, fact)}")


def _whose(seen: Seen, fact: Fact) -> str:
    """Whose value it is, those of the turn first: they are the likely mix-up."""
    owners = sorted(fact.owners, key=lambda owner: (owner not in seen.turn.order_ids, owner))
    if not owners:
        return "and is no order's"
    fields = sorted({m.field for m in fact.meanings if m.order_id == owners[0]})
    return f"and is the {fields[0]} of order {owners[0]}"


def derived(seen: Seen) -> Iterator[Wrong]:
    for money in seen.sums:
        if not seen.states(money, seen.message):
            yield Wrong(f"the sum, {money}, is missing")
    for which in ("first", "last"):
        if order_ids := seen.turn.derived.get(which):
            by_date = sorted(order_ids, key=lambda order_id: seen.truth.orders[order_id].due)
            yield from _named(seen, which, by_date)


def _named(seen: Seen, which: Literal["first", "last"], by_date: list[str]) -> Iterator[Wrong]:
    """The clause that says "first" (or "last"), or the one after it, names the right order."""
    right = by_date[0 if which == "first" else -1]
    word = getattr(words(seen.case.language), which)
    clauses = CLAUSE.split(seen.reading.text)
    for place in (place for place, clause in enumerate(clauses) if word.search(clause)):
        for near in clauses[place : place + 2]:
            named = [o for o in by_date if re.search(MENTION.format(re.escape(o)), near)]
            if len(named) == 1:
                if named != [right]:
                    yield Wrong(f"{named[0]} is said to come {which}, and {right} does")
                return
    yield Wrong(f"no clause says which order comes {which}", "cannot tell")


def failures(seen: Seen) -> Iterator[Wrong]:
    for order_id, kind in seen.turn.failures.items():
        yield from _said(seen, order_id, kind)
    for call in seen.calls:
        found, order_ids = ended(call), orders_of(call["arguments"])
        about = f"{call['tool']} about {', '.join(order_ids) or 'no order'}"
        for expected in (seen.turn.failures[id_] for id_ in order_ids if id_ in seen.turn.failures):
            if found != expected:
                yield Wrong(f"{about} ended as {found}, not as {expected}")
        if call["error"] and not {*seen.turn.failures, *seen.turn.deeds} & set(order_ids):
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
    if bool(absent) == bool(unchecked):
        why = f"whether {order_id} does not exist or was not checked is unclear"
        yield Wrong(why, "cannot tell")
    elif bool(absent) != (kind == "not_found"):
        told = "not to exist" if absent else "to be unchecked"
        yield Wrong(f"{order_id} is said {told}, and its call ended as {kind}")
