"""Words that may not stand in an answer."""

from collections.abc import Iterator

from evals.evaluators.seen import Seen, Wrong
from evals.words import any_of


def forbidden(seen: Seen) -> Iterator[Wrong]:
    for phrase in seen.turn.forbidden:
        if found := any_of([phrase]).search(seen.reading.words):
            yield Wrong(f"“{found[0]}” stands in the answer")
