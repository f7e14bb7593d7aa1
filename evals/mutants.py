"""Sabotaged agents: each makes one mistake that looks plausible. The evaluators must stop them all.

A mutant is built as the agent is, `mutant(**options)` for `build_graph(**options)`.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, cast
from unittest.mock import patch

from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite

from agent.answer.compose import Answer, Composer, Material
from agent.calls import ToolCall, ToolError, ToolResult, key_of
from agent.graph import Graph, build_graph
from agent.nodes import Nodes
from agent.state import State
from agent.turn import Turn
from evals.target import Build
from tools.shop.models import Customer, Order, Parcel
from tools.shop.protocol import Shop


class ZippedByArrival(Nodes):
    """Gives the calls of a round the results in the order in which they came."""

    in_own_name = False

    async def close_round(self, turn: Turn, config: RunnableConfig) -> None:
        results = turn.results
        arrived = sorted(
            (results[key_of(call)] for call in turn.sent_out), key=lambda r: r["finished_at"]
        )
        zipped = zip(turn.sent_out, arrived, strict=True)
        turn.results = results | {key_of(c): self._given(c, r) for c, r in zipped}
        turn.update["results"] = Overwrite(turn.results)
        await super().close_round(turn, config)

    def _given(self, call: ToolCall, result: ToolResult) -> ToolResult:
        given = cast(ToolResult, {**result, "call_id": call["call_id"], "tool": call["name"]})
        if self.in_own_name and isinstance(call["arguments"], dict):
            given["arguments"] = call["arguments"]
            _rename(given, str(call["arguments"].get("order_id", "")))
        return given


class ZippedInOwnName(ZippedByArrival):
    """The same, where results do not say themselves which order they are about."""

    in_own_name = True


class Telling(Composer):
    """Answers from results that somebody has tampered with; the calls themselves are right."""

    def compose(self, material: Material) -> Answer:
        results = deepcopy(material.results)
        self.tamper([results[key_of(c)] for c in material.calls if key_of(c) in results])
        return super().compose(replace(material, results=results))

    def tamper(self, results: list[ToolResult]) -> None:
        """Changes results, given in the order of their calls."""


class SwappedValues(Telling):
    """Shows the first order's data as the second's, and the other way round."""

    def tamper(self, results: list[ToolResult]) -> None:
        ok = _ok(results)
        if len(ok) > 1:
            first, second = ok[0], ok[1]
            first["data"], second["data"] = second["data"], first["data"]
            for result in (first, second):
                _rename(result, result["subject"])


class LastForAll(Telling):
    """Shows the last result for every order."""

    def tamper(self, results: list[ToolResult]) -> None:
        for result in _ok(results):
            result["data"] = deepcopy(_ok(results)[-1]["data"])
            _rename(result, result["subject"])


class InventedDate(Telling):
    """Promises a delivery two days before the shop does."""

    def tamper(self, results: list[ToolResult]) -> None:
        for parcel in (p for result in _ok(results) for p in result["data"].get("parcels", ())):
            day = date.fromisoformat(parcel["promised_date"]) - timedelta(days=2)
            parcel["promised_date"] = day.isoformat()


class InventedAmount(Telling):
    """Shows every amount without its cents."""

    def tamper(self, results: list[ToolResult]) -> None:
        for result in _ok(results):
            if "total" in result["data"]:
                result["data"]["total"] = result["data"]["total"].partition(".")[0]


class FilledGap(Telling):
    """Shows a neighbour's data for a call that failed."""

    def tamper(self, results: list[ToolResult]) -> None:
        for failed in (result for result in results if result["status"] == "error"):
            for good in _ok(results)[:1]:
                failed["status"], failed["data"] = "ok", deepcopy(good["data"])
                del failed["error"]
                _rename(failed, failed["subject"])


class UncheckedIsAbsent(Telling):
    """Says of an order that could not be checked that it does not exist."""

    def tamper(self, results: list[ToolResult]) -> None:
        for failed in (result for result in results if result["status"] == "error"):
            failed["error"] = ToolError(kind="not_found", message="There is no such order.")


class MissingCard(Composer):
    """Leaves the last card out of what the customer reads."""

    def compose(self, material: Material) -> Answer:
        answer = super().compose(material)
        if len(answer["cards"]) > 1:
            answer["message"] = answer["message"].replace(answer["cards"].pop()["text"], "")
        return answer


class AnotherLanguage(Composer):
    """Answers in Russian, whatever the language of the question."""

    def compose(self, material: Material) -> Answer:
        answer = super().compose(material)
        answer["message"] = "Привет! Вот что я знаю о ваших заказах. " * 9 + answer["message"]
        return answer


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


@dataclass(frozen=True)
class OpenShop:
    """A shop whose every order seems to belong to whoever asks."""

    shop: Shop
    customer_id: str

    async def customer(self, customer_id: str) -> Customer | None:
        return await self.shop.customer(customer_id)

    async def order(self, order_id: str) -> Order | None:
        order = await self.shop.order(order_id)
        return order and order.model_copy(update={"customer_id": self.customer_id})

    async def orders_of(self, customer_id: str) -> list[Order]:
        return await self.shop.orders_of(customer_id)

    async def parcels(self, order: Order) -> list[Parcel]:
        return await self.shop.parcels(order)


def without_owner_check(**options: Any) -> Graph:
    """Shows everybody's orders to anybody."""
    asking = options["identity"]({})
    return build_graph(**{**options, "shop": OpenShop(options["shop"], asking)})


def crashing(**options: Any) -> Graph:
    """Does not even start."""
    raise RuntimeError("this agent is broken")


def _nodes(sabotaged: type[Nodes]) -> Build:
    return _instead("Nodes", sabotaged)


def _composer(sabotaged: type[Composer]) -> Build:
    return _instead("Composer", sabotaged)


def _instead(name: str, sabotaged: Callable[..., Any]) -> Build:
    def build(**options: Any) -> Graph:
        with patch(f"agent.graph.{name}", sabotaged):
            return build_graph(**options)

    return build


MUTANTS: Mapping[str, Build] = {
    "zipped by arrival": _nodes(ZippedByArrival),
    "zipped by arrival, in the name of the call": _nodes(ZippedInOwnName),
    "forgotten call": _nodes(ForgottenCall),
    "swapped values": _composer(SwappedValues),
    "last result for all": _composer(LastForAll),
    "invented date": _composer(InventedDate),
    "invented amount": _composer(InventedAmount),
    "data for a failed call": _composer(FilledGap),
    "unchecked told as absent": _composer(UncheckedIsAbsent),
    "missing card": _composer(MissingCard),
    "another language": _composer(AnotherLanguage),
    "another customer's data": without_owner_check,
    "crash": crashing,
}


def _ok(results: list[ToolResult]) -> list[ToolResult]:
    return [result for result in results if result["status"] == "ok"]


def _rename(result: ToolResult, order_id: str) -> None:
    """Makes a result say that it is about an order."""
    result["subject"] = order_id
    if result["status"] == "ok" and "order_id" in result["data"]:
        result["data"] = {**result["data"], "order_id": order_id}
