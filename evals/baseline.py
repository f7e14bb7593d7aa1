"""What was tested, and how it did before: a stored run that new ones are compared with.

`cases/shop/baseline.json` holds the last offline run and the last one on a real model that
somebody chose to keep. Results are comparable where case and evaluators are the same to the byte.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from glob import escape
from hashlib import sha256
from math import comb
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from agent.problems import Problem
from evals.case import Case, Model
from evals.outcomes import Result

Kind = Literal["offline", "model"]

ROOT = Path(__file__).parent.parent
FILE = ROOT / "evals" / "cases" / "shop" / "baseline.json"
CODE = [f"{part}/**/*.py" for part in ("agent", "tools", "offline_model")]
POLICY = ["tools/policy/*", "tools/*.py"]  # a tool's description is an instruction as well
JUDGES = ["evals/evaluators/*.py", "evals/words/*.*", "evals/*.toml"]
JUDGES += [f"evals/{name}.py" for name in ("reading", "forms", "truth", "target", "faults")]
DEMO = "tools/shop/demo/*.json"


class Tested(Model):
    """What a run is about, in digests; `cases` by their names."""

    model: str
    policy: str
    code: str
    evaluators: str
    cases: dict[str, str]

    @property
    def digest(self) -> str:
        """Of all that a result depends on."""
        return sha256(self.model_dump_json().encode()).hexdigest()


class Stored(Model):
    """A run that was kept. passed: whether each case that got an answer passed each time."""

    at: datetime
    answer: str
    tested: Tested
    passed: dict[str, bool]


Runs = dict[Kind, Stored]
"""The stored runs by their kind."""
RUNS = TypeAdapter(Runs)


def tested(cases: Iterable[Case], model: str) -> Tested:
    return Tested(
        model=model,
        policy=_digest(POLICY),
        code=_digest(CODE),
        evaluators=_digest(JUDGES),
        cases={case.name: _of_case(case) for case in cases},
    )


def _of_case(case: Case) -> str:
    """The digest of a case and of the shop that it is played in."""
    own = f"evals/cases/{escape(case.name.partition('/')[0])}/shop.*"
    return _digest([own if any(ROOT.glob(own)) else DEMO], case.model_dump_json().encode())


def _digest(patterns: Iterable[str], start: bytes = b"") -> str:
    found = sha256(start)
    for path in sorted({p for pattern in patterns for p in ROOT.glob(pattern) if p.is_file()}):
        found.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


@dataclass(frozen=True)
class Comparison:
    """regressed, fixed: cases that passed each time before and do not now, and the other way round.

    new, gone: cases that only this run, or only the stored one, has in this wording. problem: why
    nothing can be compared.
    """

    regressed: list[str] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    problem: str = ""

    def alarms(self, chance: float) -> list[str]:
        worse, better = len(self.regressed), len(self.fixed)
        told = f"{worse} cases are worse than in the baseline, {better} better"
        return [told] if worse > better and self.probability <= chance else []

    @property
    def probability(self) -> float:
        """Exact sign test: how likely chance alone parts the changed cases so unevenly."""
        changed, fewer = len(self.regressed + self.fixed), min(len(self.regressed), len(self.fixed))
        return min(1.0, float(2 * sum(comb(changed, n) for n in range(fewer + 1)) / 2**changed))

    def lines(self) -> list[str]:
        if self.problem:
            return [f"baseline: {self.problem}"]
        changed = {"regressed": self.regressed, "fixed": self.fixed}
        every = {**changed, "new": self.new, "gone": self.gone}
        counts = ", ".join(f"{len(names)} {kind}" for kind, names in every.items())
        named = [f"{kind}: {', '.join(names)}" for kind, names in changed.items() if names]
        chance = f" (chance {self.probability:.2g})" if named else ""
        return [f"baseline: {counts}{chance}", *named]


def compare(
    results: Sequence[Result], now: Tested, stored: Stored | None, *, whole: bool = True
) -> Comparison:
    """whole: whether all cases were to be played; else none is gone that was left out."""
    if stored is None:
        return Comparison(problem="no run of this kind is stored; --update-baseline stores one")
    before, had = stored.tested, stored.passed
    if before.evaluators != now.evaluators:
        return Comparison(problem="the stored run was judged by other evaluators")
    same = {name for name in had if now.cases.get(name, "") == before.cases.get(name)}
    passed = _passed(results)
    both = [case for case in passed if case in same]
    return Comparison(
        regressed=[case for case in both if had[case] and not passed[case]],
        fixed=[case for case in both if passed[case] and not had[case]],
        new=sorted(passed.keys() - same),
        gone=sorted(had.keys() - same) if whole else [],
    )


def _passed(results: Sequence[Result]) -> dict[str, bool]:
    """Whether each case passed each time, without those that got no answer."""
    return {each.case: each.fate == "pass" for each in results if each.fate != "trouble"}


def release(now: Tested, stored: Stored | None, deployed: str) -> str:
    """The release verdict beside an offline run: what the last one on a real model still proves.

    deployed: the model that the environment names; "offline" where it names none.
    """
    if stored is None:
        how = "--model NAME --update-baseline stores one"
        return f"inconclusive: no run on a real model is stored ({how})"
    before = stored.tested
    parts = ("policy", "evaluators")
    changed = [part for part in parts if getattr(before, part) != getattr(now, part)]
    changed += ["cases"] * (not now.cases.items() <= before.cases.items())
    changed += ["model"] * (deployed not in ("offline", before.model))
    on = f"{before.model} on {stored.at:%Y-%m-%d}"
    if changed:
        return f"inconclusive: {' and '.join(changed)} changed since the run on {on}"
    return f"{stored.answer}: nothing changed since the run on {on}"


def load() -> Runs:
    """Raises Problem for a file that is damaged."""
    try:
        return RUNS.validate_json(FILE.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise Problem(f"{FILE} is damaged or cannot be read. No case was run.") from None


def store(kind: Kind, results: Sequence[Result], now: Tested, answer: str) -> None:
    at = datetime.now(UTC).replace(microsecond=0)
    run = Stored(at=at, answer=answer, tested=now, passed=_passed(results))
    try:
        FILE.write_bytes(RUNS.dump_json({**load(), kind: run}, indent=1) + b"\n")
    except OSError as error:
        raise Problem(f"{FILE} cannot be written ({error.strerror}).") from None
