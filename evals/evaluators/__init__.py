"""The evaluators: what must be true of each turn of a case.

Each is a function that yields what is wrong with one turn, a sentence for a person. Nothing wrong
is a pass. None of them imports the code that renders answers, or it would find its own mistakes
right.
"""

from evals.evaluators.derived import derived
from evals.evaluators.facts import facts
from evals.evaluators.failures import failures
from evals.evaluators.forbidden import forbidden
from evals.evaluators.language import language
from evals.evaluators.policy import policy
from evals.evaluators.privacy import privacy
from evals.evaluators.protocol import protocol
from evals.evaluators.seen import Evaluator, Seen, Verdict, Wrong
from evals.evaluators.trajectory import trajectory

EVALUATORS: tuple[Evaluator, ...] = (
    protocol,
    trajectory,
    facts,
    derived,
    failures,
    privacy,
    language,
    policy,
    forbidden,
)

__all__ = ["EVALUATORS", "Evaluator", "Seen", "Verdict", "Wrong"]
