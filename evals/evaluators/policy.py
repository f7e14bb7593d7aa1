"""The shop's policy is quoted word for word."""

from collections.abc import Iterator

from evals.evaluators.seen import Seen, Wrong


def policy(seen: Seen) -> Iterator[Wrong]:
    for line in seen.policy_text:
        if line not in seen.reading.text:
            yield Wrong(f"“{line}” of the policy {seen.turn.policy} is not quoted")
