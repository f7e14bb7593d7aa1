"""Evals: whether the agent may be released, decided by what its customers read.

case        a conversation, and what must be true afterwards; `cases/` holds them as data (YAML)
target      one case: a shop of its own, the real graph, one or several turns, what is confirmed
faults      a shop that is slow, fails, or answers about another order; a model that breaks off
truth       each order's facts, from the case's database
reading     the facts that stand in an answer, and which order each part speaks of
evaluators  deterministic checks, each with the verdicts pass, fail and cannot tell
runner      all cases through `langsmith.aevaluate`, without a request leaving
upload      the same as an experiment at LangSmith, over a data set kept in step
gate        yes, no or inconclusive, as `gate.toml` asks
baseline    what was tested, and how it did before
report      what a person reads; `page` is the HTML one, `folder` where all of it is kept
tone        a model's opinion of how the answers sound, which decides nothing
session     one run of the command
mutants     sabotaged agents, which prove that the gate stops them
"""
