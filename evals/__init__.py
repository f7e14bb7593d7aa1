"""Evals: whether the agent may be released, decided by what its customers read.

case        a conversation, and what must be true afterwards; `cases/` holds them as data (YAML)
target      one case: a shop of its own, the real graph, one or several turns
faults      a shop that is slow, fails, or answers about another order
truth       each order's facts, from the case's database
reading     the facts that stand in an answer, and which order each part speaks of
evaluators  deterministic checks, each with the verdicts pass, fail and cannot tell
runner      all cases through `langsmith.aevaluate`, without a request leaving
report      what a person reads, what a program reads, the exit code
mutants     sabotaged agents, which prove that the evaluators stop them
"""
