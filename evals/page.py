"""`report.html`: one file, opens offline, no script. Each case with its conversation and its calls.

A call is a bar on a lane, from its start to its end, so that what ran side by side is seen.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from typing import Any

from evals.evaluators.seen import ended
from evals.outcomes import Finding, Outcome, Result
from evals.report import MARKS, Report

STYLE = files("evals") / "page.css"


def page(report: Report) -> str:
    passed = [each for each in report.results if each.fate == "pass"]
    others = [each for each in report.results if each.fate != "pass"]
    return "\n".join(
        [
            '<!doctype html><html lang="en"><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>Evals: {_text(report.headline)}</title>",
            f"<style>{STYLE.read_text(encoding='utf-8')}</style>",
            f'<h1 class="{report.judgement.answer}">{_text(report.headline)}</h1>',
            f"<p>{_text(report.heading)}</p><p>{_text(report.summary)}</p><ul>",
            *(f"<li><b>{_text(why)}</b>" for why in report.judgement.why),
            *(f"<li>{_text(line)}" for line in report.figures),
            "</ul>",
            *_cases("Not passed", others, report),
            *_cases("Passed", passed, report),
        ]
    )


def _cases(title: str, results: Sequence[Result], report: Report) -> Iterator[str]:
    if results:
        yield f"<h2>{title}: {len(results)}</h2>"
    for each in results:
        kind, is_open = each.fate.replace(" ", "-"), "" if each.fate == "pass" else " open"
        counted = f"<small>{each.passes} of {each.plays}</small>"
        yield f'<details class="{kind}"{is_open}>'
        yield f"<summary>{MARKS[each.fate]} {_text(each.case)} {counted}</summary>"
        yield f"<p>{_text(report.about.get(each.case, ''))}</p>"
        shown = [play for play in each.outcomes if play.verdict != "pass"] or each.outcomes[:1]
        for play in shown:
            yield f"<h3>Play {play.repeat} of {each.plays}: {play.verdict}</h3>" * (each.plays > 1)
            yield from _outcome(play)
        yield "</details>"


def _outcome(outcome: Outcome) -> Iterator[str]:
    for place, turn in enumerate(outcome.turns, 1):
        message, asked = turn["report"]["message"], turn["asked"]
        yield f'<div class="turn"><div><p class="customer">{_text(turn["ask"])}</p>'
        yield from _lanes(turn["report"]["calls"])
        for each in asked:
            decided = f"<small>→ {each['decision'] or 'left open'}</small>"
            yield f'<p class="agent">{_text(each["question"])} {decided}</p>'
        if message != "\n".join(each["question"] for each in asked if not each["decision"]):
            yield f'<p class="agent">{_text(message)}</p>'
        yield from (_finding(each) for each in outcome.findings if each.turn == place)
        yield f"</div><div><small>expected</small><pre>{_text(turn['expected'])}</pre></div></div>"
    yield from (_finding(each) for each in outcome.findings if not each.turn)


def _finding(finding: Finding) -> str:
    unsure = "cannot tell, " if finding.verdict == "cannot tell" else ""
    return f'<p class="why"><b>{_text(finding.evaluator)}</b> {unsure}{_text(finding.why)}</p>'


def _lanes(calls: list[dict[str, Any]]) -> Iterator[str]:
    times = [_times(call) for call in calls]
    ran = [span for span in times if span]
    first, last = min((s for s, _ in ran), default=0), max((e for _, e in ran), default=0)
    whole = max(last - first, 1e-6)
    for call, span in zip(calls, times, strict=True):
        left, right = span or (last, last)
        bar = f"left:{(left - first) / whole:.1%};width:{max((right - left) / whole, 0.004):.1%}"
        took = f" · {(right - left) * 1000:.0f} ms" if span else ""
        label = f"{call['tool']} {call['subject']} · {ended(call)}{took}"
        shape = f'<i class="{_text(call["status"])}" style="{bar}"></i>'
        yield f'<div class="lane">{shape}<span>{_text(label)}</span></div>'


def _times(call: dict[str, Any]) -> tuple[float, float] | None:
    """When a call began and ended, in seconds; None for one that never ran."""
    if not call["finished_at"]:
        return None
    begun, ended = (datetime.fromisoformat(call[name]) for name in ("started_at", "finished_at"))
    return begun.timestamp(), ended.timestamp()


def _text(value: object) -> str:
    return escape(str(value))
