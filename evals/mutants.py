"""Sabotaged agents: each makes one mistake that looks plausible. The evaluators must stop them all.

A mutant is built as the agent is, `mutant(**options)` for `build_graph(**options)`.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack
from copy import deepcopy
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, cast
from unittest.mock import patch

from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite

from agent.answer.compose import Answer, Composer, Material
from agent.calls import ToolCall, ToolError, ToolResult, key_of
from agent.graph import Graph, build_graph
from agent.ledger_records import Outcome, Write
from agent.limits import Limits
from agent.nodes import Nodes
from agent.state import State
from agent.turn import Turn
from agent.write_tools import WriteTools
from agent.writing import Writer
from evals.faults import FaultyShop
from evals.target import Build
from tools.failures import ServiceError
from tools.shop.models import Order
from tools.tool import Tool

Results = list[ToolResult]
Kept = dict[str, Any]
"""What a mutant remembers of a conversation."""
RECEIPTS = {
    "cancel_order": ("order_id",),
    "change_address": ("order_id", "address"),
    "request_refund": ("order_id", "amount", "currency"),
}


def _with(**sabotaged: Callable[..., Any]) -> Build:
    """The graph, built of other parts than its own."""

    def build(**options: Any) -> Graph:
        with ExitStack() as patched:
            for name, part in sabotaged.items():
                patched.enter_context(patch(f"agent.graph.{name}", part))
            return build_graph(**options)

    return build


def _telling(tamper: Callable[[Results, Results, Kept], None]) -> Build:
    """Answers from results that were tampered with; the calls themselves are right.

    tamper: changes those that are ok and those that failed, each in the order of the calls.
    """

    class Telling(Composer):
        def compose(self, material: Material) -> Answer:
            results = deepcopy(material.results)
            told = [results[key_of(call)] for call in material.calls if key_of(call) in results]
            failed = [result for result in told if result["status"] == "error"]
            kept = self.__dict__.setdefault("kept", {})
            tamper([result for result in told if result["status"] == "ok"], failed, kept)
            return super().compose(replace(material, results=results))

    return _with(Composer=Telling)


def _show(result: ToolResult, data: Any) -> None:
    """Gives a result these data, in the name of its own order."""
    result["status"], result["data"] = "ok", deepcopy(data)
    result.pop("error", None)
    if "order_id" in data:
        result["data"]["order_id"] = result["subject"]


def swapped(ok: Results, failed: Results, kept: Kept) -> None:
    """Shows the first order's data as the second's, and the other way round."""
    for one, data in zip(ok, [each["data"] for each in ok[1::-1]], strict=False):
        _show(one, data)


def last_for_all(ok: Results, failed: Results, kept: Kept) -> None:
    """Shows the last result for every order."""
    for result in ok:
        _show(result, ok[-1]["data"])


def by_name(ok: Results, failed: Results, kept: Kept) -> None:
    """Keeps one result a tool, so that the last one stands for all calls of that tool."""
    last = {result["tool"]: result["data"] for result in ok}
    for result in ok:
        result["data"] = deepcopy(last[result["tool"]])


def stale(ok: Results, failed: Results, kept: Kept) -> None:
    """Shows what the first turn found out in every later one."""
    for result in ok:
        _show(result, kept.setdefault(result["tool"], result["data"]))


def another_date(ok: Results, failed: Results, kept: Kept) -> None:
    """Promises a delivery two days before the shop does."""
    for parcel in (parcel for result in ok for parcel in result["data"].get("parcels", ())):
        day = date.fromisoformat(parcel["promised_date"]) - timedelta(days=2)
        parcel["promised_date"] = day.isoformat()


def another_amount(ok: Results, failed: Results, kept: Kept) -> None:
    """Shows every amount without its cents."""
    for data in (result["data"] for result in ok if "total" in result["data"]):
        data["total"] = data["total"].partition(".")[0]


def filled_gap(ok: Results, failed: Results, kept: Kept) -> None:
    """Shows a neighbour's data for a call that failed."""
    for result in failed if ok else ():
        _show(result, ok[0]["data"])


def unchecked_is_absent(ok: Results, failed: Results, kept: Kept) -> None:
    """Says of an order that could not be checked that it does not exist."""
    for result in failed:
        result["error"] = ToolError(kind="not_found", message="There is no such order.")


def told_as_done(ok: Results, failed: Results, kept: Kept) -> None:
    """Tells every change as made, whatever became of it."""
    for result in (each for each in failed if each["tool"] in RECEIPTS):
        _show(result, _receipt(result["tool"], result["arguments"]))


def _receipt(tool: str, given: Any) -> dict[str, Any]:
    return {"state": "done", "repeated": False, **{name: given[name] for name in RECEIPTS[tool]}}


def _saying(change: Callable[[Answer], str]) -> Build:
    """Lets the customer read something else than was composed."""

    class Saying(Composer):
        def compose(self, material: Material) -> Answer:
            answer = super().compose(material)
            answer["message"] = change(answer)
            return answer

    return _with(Composer=Saying)


def missing_card(answer: Answer) -> str:
    """Leaves the last card out."""
    cards, message = answer["cards"], answer["message"]
    return message.replace(cards.pop()["text"], "") if len(cards) > 1 else message


def another_language(answer: Answer) -> str:
    """Answers in Russian, whatever the language of the question."""
    return "Привет! Вот что я знаю о ваших заказах. " * 9 + answer["message"]


def invented_order(answer: Answer) -> str:
    """Speaks of an order that nobody asked about."""
    return answer["message"] + "\nOrder Q-77 was delivered as well." * bool(answer["cards"])


class ZippedByArrival(Nodes):
    """Gives the calls of a round the results in the order in which they came."""

    async def close_round(self, turn: Turn, config: RunnableConfig) -> None:
        own = [turn.results[key_of(call)] for call in turn.sent_out]
        arrived = zip(turn.sent_out, sorted(own, key=lambda r: r["finished_at"]), strict=True)
        turn.results = turn.results | {key_of(call): self._given(call, r) for call, r in arrived}
        turn.update["results"] = Overwrite(turn.results)
        await super().close_round(turn, config)

    def _given(self, call: ToolCall, result: ToolResult) -> ToolResult:
        return cast(ToolResult, {**result, "call_id": call["call_id"], "tool": call["name"]})


class ZippedInOwnName(ZippedByArrival):
    """The same, where results do not say themselves which order they are about."""

    def _given(self, call: ToolCall, result: ToolResult) -> ToolResult:
        given = super()._given(call, result)
        if isinstance(call["arguments"], dict):
            given["arguments"] = call["arguments"]
            given["subject"] = str(call["arguments"].get("order_id", ""))
            if given["status"] == "ok":
                _show(given, given["data"])
        return given


class ForgottenCall(Nodes):
    """Makes all calls of a response but the last."""

    async def model(self, state: State, config: RunnableConfig) -> Any:
        command = await super().model(state, config)
        if isinstance(command.goto, list) and len(command.goto) > 1:
            gone = command.goto.pop().arg["calls"][0]["call_id"]
            update = cast(dict[str, Any], command.update)
            update["calls"] = [c for c in update["calls"] if c["call_id"] != gone]
            asking = update["messages"][-1]
            asking.tool_calls = [c for c in asking.tool_calls if c["id"] != gone]
            if isinstance(asking.content, list):
                asking.content = [b for b in asking.content if b.get("call_id") != gone]
        return command


class OneByOne(Limits):
    """Makes the calls of a response one after the other."""

    def of(self, tool: Tool) -> AbstractAsyncContextManager[Any]:
        return super().of(replace(tool, limit=1))


class Twice(WriteTools):
    """Makes every refund a second time, under a key of its own."""

    async def receipt(self, write: Write, key: str, db: Any = None) -> dict[str, Any]:
        if write.tool.name == "request_refund":
            await super().receipt(write, f"{key}-again", db)
        return await super().receipt(write, key, db)


class Claimed(WriteTools):
    """Says that a refund was made, and makes none."""

    async def receipt(self, write: Write, key: str, db: Any = None) -> dict[str, Any]:
        if write.tool.name == "request_refund":
            return _receipt(write.tool.name, write.plain)
        return await super().receipt(write, key, db)


class TriedAgain(WriteTools):
    """Tries again, as a new change, what it got no answer about."""

    async def receipt(self, write: Write, key: str, db: Any = None) -> dict[str, Any]:
        try:
            return await super().receipt(write, key, db)
        except ServiceError:
            return await super().receipt(write, f"{key}-again", db)


class Unasked(Writer):
    """Makes a change without asking for the customer's yes."""

    async def _confirmed(self, write: Write, *_: Any) -> Outcome:
        return await self._begin(replace(write, confirmed=True))


class AskedAfterwards(Writer):
    """Asks the customer when the change is made already."""

    async def _confirmed(self, write: Write, *about: Any) -> Outcome:
        await self._begin(replace(write, confirmed=True))
        return await super()._confirmed(write, *about)


class NoMeansYes(Writer):
    """Asks the customer, and makes the change whatever they say."""

    async def _confirmed(self, write: Write, *about: Any) -> Outcome:
        await super()._confirmed(write, *about)
        return await self._begin(replace(write, confirmed=True))


def without_owner_check(**options: Any) -> Graph:
    """Shows everybody's orders to anybody, as if they belonged to whoever asks."""
    shop, asking = options["shop"], options["identity"]({})

    class OpenShop(FaultyShop):
        async def order(self, order_id: str) -> Order | None:
            order = await super().order(order_id)
            return order and order.model_copy(update={"customer_id": asking})

    return build_graph(**{**options, "shop": OpenShop(shop.database, shop.faults)})


def crashing(**options: Any) -> Graph:
    """Does not even start."""
    raise RuntimeError("this agent is broken")


MUTANTS: Mapping[str, Build] = {
    "zipped by arrival": _with(Nodes=ZippedByArrival),
    "zipped by arrival, in the name of the call": _with(Nodes=ZippedInOwnName),
    "forgotten call": _with(Nodes=ForgottenCall),
    "kept by name": _telling(by_name),
    "swapped values": _telling(swapped),
    "last result for all": _telling(last_for_all),
    "result of an earlier turn": _telling(stale),
    "invented order": _saying(invented_order),
    "invented date": _telling(another_date),
    "invented amount": _telling(another_amount),
    "data for a failed call": _telling(filled_gap),
    "unchecked told as absent": _telling(unchecked_is_absent),
    "missing card": _saying(missing_card),
    "another language": _saying(another_language),
    "another customer's data": without_owner_check,
    "one after the other": _with(Limits=OneByOne),
    "refunded twice": _with(WriteTools=Twice),
    "refund claimed and not made": _with(WriteTools=Claimed),
    "change tried again": _with(WriteTools=TriedAgain),
    "confirmation skipped": _with(Writer=Unasked),
    "confirmed afterwards": _with(Writer=AskedAfterwards),
    "no taken for yes": _with(Writer=NoMeansYes),
    "told as done": _telling(told_as_done),
    "crash": crashing,
}
