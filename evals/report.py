"""What came of a run: lines for a person, and the files for everybody else."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

from agent import pricing
from evals.baseline import Tested
from evals.evaluators.seen import ended
from evals.gate import Judgement, is_critical
from evals.outcomes import Finding, Outcome, Result
from tools.policy import instructions

MARKS = {"pass": "✓", "fail": "✗", "cannot tell": "?", "trouble": "!"}
FATES = {"fail": "failed", "cannot tell": "undecided", "trouble": "without an answer"}


@dataclass(frozen=True)
class Report:
    """A run that is over. release: the verdict on what is deployed.

    about: what each case says of itself. at: when it was over.
    """

    results: Sequence[Result]
    judgement: Judgement
    tested: Tested
    release: str
    seconds: float
    about: Mapping[str, str]
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def headline(self) -> str:
        kind = "code only" if self.tested.model == "offline" else self.tested.model
        return f"{self.judgement.answer.capitalize()} ({kind})"

    @property
    def heading(self) -> str:
        """What was tested, and when."""
        policy = f"policy {self.tested.policy} (instructions of {instructions().version})"
        return f"Model {self.tested.model}, {self.at:%Y-%m-%d %H:%M} UTC, {policy}."

    @property
    def summary(self) -> str:
        fates = [each.fate for each in self.results]
        rest = [f"{fates.count(fate)} {said}" for fate, said in FATES.items() if fate in fates]
        passed = f"{fates.count('pass')} of {len(fates)} cases passed"
        return f"{', '.join([passed, *rest])}, in {self.seconds:.0f} s{self._spent}."

    @property
    def _spent(self) -> str:
        """What was paid for all of it, also before a run was broken off; offline nothing was."""
        turns = [turn for each in self.plays for turn in each.turns]
        costs = [pricing.cost(self.tested.model, turn["report"]["usage"]) for turn in turns]
        total = sum(filter(None, costs))
        return f", for {total:.4f} USD" if total and None not in costs else ""

    @property
    def plays(self) -> list[Outcome]:
        return [outcome for each in self.results for outcome in each.outcomes]

    @property
    def figures(self) -> list[str]:
        return [*self.judgement.lines, f"Release: {self.release}."]

    @property
    def verdict(self) -> str:
        return ": ".join([self.headline, *filter(None, ["; ".join(self.judgement.why[:3])])])


def lines(results: Sequence[Result], *, whole: bool = False) -> Iterator[str]:
    """A line a case, and what is wrong with it, as `sentences` has it."""
    width = max(len(each.case) for each in results)
    for each in results:
        longest = max(outcome.seconds for outcome in each.outcomes)
        times = f"{each.passes} of {each.plays}"
        yield f"{MARKS[each.fate]} {each.case:{width}}  {times}  {longest:5.1f} s"
        yield from (f"    {sentence}" for sentence in sentences(each, whole=whole))


def sentences(result: Result, *, whole: bool = True) -> Iterator[str]:
    """What the evaluators found, one after the other; of each the first thing, if not whole."""
    by_evaluator: dict[str, list[Finding]] = {}
    for finding in dict.fromkeys(f for outcome in result.outcomes for f in outcome.findings):
        by_evaluator.setdefault(finding.evaluator, []).append(finding)
    for first, *rest in by_evaluator.values():
        if whole or not rest:
            yield from map(str, [first, *rest])
        else:
            yield f"{first}; and {len(rest)} more"


def conversation(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """All that was said and done, turn by turn."""
    for outcome in outcomes:
        yield f"{outcome.case}, {outcome.repeat}"
        for turn in outcome.turns:
            yield f"  customer  {turn['ask']}"
            yield from (f"  call      {_call(call)}" for call in turn["report"]["calls"])
            for asked in turn["asked"]:
                yield f"  asked     {asked['question']} → {asked['decision'] or 'left open'}"
            yield from (f"  agent     {line}" for line in turn["report"]["message"].splitlines())
    yield ""


def _call(call: dict[str, Any]) -> str:
    given = call["arguments"]
    stated = ", ".join(f"{k}={v}" for k, v in given.items()) if isinstance(given, dict) else given
    return f"{call['tool']}({stated}) → {ended(call)}"


def markdown(report: Report) -> str:
    """For a pull request: the verdict, then whatever did not pass."""
    table = [
        f"| {MARKS[each.fate]} {each.case} | {'yes' if is_critical(each.case) else ''} |"
        f" {each.passes} of {each.plays} | {'<br>'.join(_cell(s) for s in sentences(each))} |"
        for each in report.results
        if each.fate != "pass"
    ]
    head = ["", "| case | critical | passed | why |", "| --- | --- | --- | --- |"] if table else []
    why = [f"- **{_cell(reason)}**" for reason in report.judgement.why]
    title = [f"## Evals: {report.headline}", "", report.heading, "", report.summary, "", *why]
    return "\n".join([*title, *(f"- {line}" for line in report.figures), *head, *table]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def junit(report: Report) -> bytes:
    """JUnit's XML: a test case a play; what cannot be told is a failure, trouble an error."""
    suite = ElementTree.Element("testsuite", name="evals", time=f"{report.seconds:.3f}")
    for outcome in report.plays:
        folder, _, name = outcome.case.partition("/")
        about = {"classname": f"evals.{folder}", "name": f"{name} [{outcome.repeat}]"}
        case = ElementTree.SubElement(suite, "testcase", about, time=str(outcome.seconds))
        if outcome.verdict != "pass":
            kind = "error" if outcome.verdict == "trouble" else "failure"
            why = "\n".join(map(str, outcome.findings))
            why = "".join(c if c.isprintable() or c == "\n" else "�" for c in why)  # as XML asks
            ElementTree.SubElement(case, kind, message=outcome.verdict).text = why
    for kind, path in {"tests": "", "failures": "/failure", "errors": "/error"}.items():
        suite.set(kind, str(len(suite.findall(f"testcase{path}"))))
    told: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return told
