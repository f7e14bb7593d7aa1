"""What follows from several orders: computed here from the database, found in the answer."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date

from evals.evaluators.seen import Seen, Wrong
from evals.reading import MENTION
from evals.words import words

Best = Callable[..., str]
CLAUSE = re.compile(r"[;:\n.。;,,()()]| and | и | y |和")


def derived(seen: Seen) -> Iterator[Wrong]:
    for money in seen.sums:
        if not seen.states(money, seen.message):
            yield Wrong(f"the sum, {money.amount} {money.currency}, is missing")
    said, of = words(seen.case.language), seen.turn.derived
    yield from _named(seen, said.first, of.first, "first", min)
    yield from _named(seen, said.last, of.last, "last", max)


def _due(seen: Seen, order_id: str) -> date:
    """When the last parcel of an order is due."""
    promised = seen.truth.orders[order_id].values["promised_date"]
    return max((day for day in promised if isinstance(day, date)), default=date.max)


def _named(
    seen: Seen, word: re.Pattern[str], order_ids: Sequence[str], which: str, best: Best
) -> Iterator[Wrong]:
    """The clause that says "first" (or "last"), or the one after it, names the right order."""
    if not order_ids:
        return
    right = best(order_ids, key=lambda order_id: _due(seen, order_id))
    clauses = CLAUSE.split(seen.reading.text)
    for place in (place for place, clause in enumerate(clauses) if word.search(clause)):
        for near in clauses[place : place + 2]:
            named = [o for o in order_ids if re.search(MENTION.format(re.escape(o)), near)]
            if len(named) == 1:
                if named != [right]:
                    yield Wrong(f"{named[0]} is said to come {which}, and {right} does")
                return
    yield Wrong(f"no clause says which order comes {which}", "cannot tell")
