"""What a turn has cost so far, and what its trace is told of that."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from langchain_core.runnables import RunnableConfig

from agent import tracing, usage
from agent.answer.compose import Answer
from agent.journal import Account
from agent.state import Results
from agent.traces_shape import Number, id_or_none
from agent.turn import Turn
from agent.usage import Spent
from tools.tool import Tool

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Accounts:
    """tools: whose calls may cost something. budget: US dollars that a turn may cost; None: any."""

    tools: Mapping[str, Tool]
    budget: Decimal | None

    def is_over_budget(self, turn: Turn) -> bool:
        """Also where the cost is not known: a budget that cannot be watched is no budget."""
        if self.budget is None:
            return False
        cost = usage.cost(turn.spent, turn.results, self.tools)
        return cost is None or cost >= self.budget

    def left(self, turn: Turn) -> Account:
        """Of the turn before, which was broken off."""
        return self._account(turn.left_spent, turn.left_results)

    def waiting(self, turn: Turn) -> Account:
        """Of a turn that may pause, and never go on."""
        account = self._of(turn)
        _note_turn(turn, account, status="awaiting_confirmation")
        return account

    def ended(self, turn: Turn, answer: Answer) -> Account:
        account = self._of(turn)
        turn.update["cost_usd"] = account["cost_usd"]
        tracing.note(step="answer", status=answer["status"], cards=len(answer["cards"]))
        failed = {"error_kind": answer["error"]["kind"]} if answer["error"] else {}
        _note_turn(turn, account, status=answer["status"], locale=answer["locale"], **failed)
        _log(turn, account, answer["status"])
        return account

    def _of(self, turn: Turn) -> Account:
        trace, account = tracing.trace_id(), self._account(turn.spent, turn.results)
        return {**account, "trace_id": trace} if trace else account

    def _account(self, spent: Sequence[Spent], results: Results) -> Account:
        cost = usage.cost(spent, results, self.tools)
        return Account(spent=[*spent], cost_usd=None if cost is None else usage.plain(cost))


def within(turn: Turn, config: RunnableConfig) -> RunnableConfig:
    """The config under which the model is asked: its runs say of which turn and round they are."""
    place = {"turn": Number(turn.number), "round": Number(turn.round)}
    return {**config, "metadata": {**config.get("metadata", {}), **place}}


def note_round(turn: Turn, response_id: str = "") -> None:
    """Tells the step's run which responses it asked for."""
    spent = [
        {name: each[name] for name in ("ended", "usage", "cost_usd")}
        for each in turn.spent
        if each["round"] == turn.round
    ]
    place = {"turn": turn.number, "round": turn.round, "response_id": id_or_none(response_id)}
    tracing.note(**place, spent=spent)


def _log(turn: Turn, account: Account, status: str) -> None:
    tokens, cost = usage.total(turn.spent), account["cost_usd"] or "unknown"
    log.info(
        "turn %d: %s; rounds: %d, calls: %d, input tokens: %d, output tokens: %d, USD: %s",
        *(turn.number, status, turn.round, len(turn.calls)),
        *(tokens["input_tokens"], tokens["output_tokens"], cost),
    )


def _note_turn(turn: Turn, account: Account, **more: object) -> None:
    used = {**usage.total(turn.spent), "cost_usd": account["cost_usd"]}
    tracing.note_turn(turn.customer, turn=turn.number, rounds=turn.round, **used, **more)
