"""What follows from several orders: computed here from the database, found in the answer."""

import re
from collections.abc import Iterator
from datetime import date

from evals.evaluators.seen import Seen, Wrong
from evals.forms import forms
from evals.reading import MENTION
from evals.words import any_of, words

CLAUSE = re.compile(r"[;:\n.。;,,()()]| and | и | y |和")


def derived(seen: Seen) -> Iterator[Wrong]:
    for money in seen.sums:
        if not any_of(forms(money, seen.case.language)).search(seen.reading.text):
            yield Wrong(f"the sum, {money.amount} {money.currency}, is missing")
    said = words(seen.case.language)
    if first := seen.turn.derived.first:
        due = _due(seen, first)
        yield from _named(seen, said.first, min(due, key=due.__getitem__), "first", set(first))
    if last := seen.turn.derived.last:
        due = _due(seen, last)
        yield from _named(seen, said.last, max(due, key=due.__getitem__), "last", set(last))


def _due(seen: Seen, order_ids: tuple[str, ...]) -> dict[str, date]:
    """When the last parcel of each order is due."""
    promised = {
        order_id: [
            value
            for value in seen.truth.orders[order_id].values["promised_date"]
            if isinstance(value, date)
        ]
        for order_id in order_ids
    }
    return {order_id: max(days) for order_id, days in promised.items() if days}


def _named(
    seen: Seen, word: re.Pattern[str], right: str, which: str, order_ids: set[str]
) -> Iterator[Wrong]:
    """The clause that says "first" (or "last"), or the one after it, names the right order."""
    clauses = CLAUSE.split(seen.reading.text)
    for place, clause in enumerate(clauses):
        if not word.search(clause):
            continue
        for near in (clause, *clauses[place + 1 : place + 2]):
            named = [o for o in order_ids if re.search(MENTION.format(re.escape(o)), near)]
            if len(named) == 1:
                if named != [right]:
                    yield Wrong(f"{named[0]} is said to come {which}, and {right} does")
                return
    yield Wrong(f"no clause says which order comes {which}", "cannot tell")
