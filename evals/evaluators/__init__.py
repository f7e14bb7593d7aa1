"""The evaluators: what must be true of each turn of a case.

Each is a function that yields what is wrong with one turn, a sentence for a person. Nothing wrong
is a pass. None of them imports the code that renders answers, or it would find its own mistakes
right.
"""

from evals.evaluators.deeds import deeds
from evals.evaluators.facts import derived, facts, failures
from evals.evaluators.protocol import cost, latency, protocol, trajectory
from evals.evaluators.seen import Evaluator, Seen, Wrong
from evals.evaluators.wording import forbidden, language, policy, privacy

EVALUATORS: tuple[Evaluator, ...] = (protocol, trajectory, facts, derived, failures, deeds)
EVALUATORS += (privacy, language, policy, forbidden, cost, latency)

__all__ = ["EVALUATORS", "Evaluator", "Seen", "Wrong"]
