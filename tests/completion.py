"""A turn with many calls, and what has to be true of it whatever the calls' order of completion.

What each call must give is worked out here from the demo shop's file, not by the product.
"""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage

from tests.scripted import Scripted, answering, calling
from tests.turns import (
    DEMO_CUSTOMER,
    DEMO_ORDERS,
    Watched,
    cards_of,
    failing,
    finishing,
    graph_of,
    told,
    watch,
)
from tools.database import Database
from tools.registry import TOOLS

OWN = [key for key, order in DEMO_ORDERS.items() if order["customer_id"] == DEMO_CUSTOMER]
UNKNOWN, FOREIGN = "Z-404", "00123"

CALLS: list[tuple[str, dict[str, Any]]] = [
    *(("get_delivery", {"order_id": order_id}) for order_id in OWN),
    *(("get_order", {"order_id": order_id}) for order_id in (*OWN, UNKNOWN, FOREIGN)),
    ("list_orders", {}),
    ("compare_orders", {"order_ids": ["A", "B"]}),
]

TEMPLATES = {
    "get_order": "{order_id} {status} {total}",
    "get_delivery": "{order_id} {parcels}",
    "list_orders": "{orders}",
    "compare_orders": "{order_ids} {totals}",
}


@dataclass(frozen=True)
class Call:
    call_id: str
    tool: str
    arguments: dict[str, Any]

    @property
    def same(self) -> str:
        """Equal for calls that are the same read."""
        return json.dumps([self.tool, self.arguments])


@dataclass(frozen=True)
class Run:
    """The calls of one response, and what becomes of them.

    finish: the order in which they end. broken: those whose service fails. spoken: the order in
    which the model speaks of them.
    """

    calls: Sequence[Call]
    finish: Sequence[str]
    broken: Collection[str] = ()
    spoken: Sequence[str] = ()


Told = Callable[[], list[tuple[str, dict[str, Any]]]]
Speak = Callable[[AIMessage, AIMessage], tuple[dict[str, Any], Told]]


def scripted(*lines: AIMessage) -> tuple[dict[str, Any], Told]:
    """A chat model that says the lines; what its last request told it."""
    model = Scripted(*lines)
    return {"model": model}, lambda: told(model.last)


async def holds(run: Run, database: Database, speak: Speak = scripted) -> None:
    """Runs the turn and checks every place in which a result could stand beside a wrong call.

    speak: makes options of the graph from the two responses, and a way to see what was told.
    """
    options, was_told = speak(
        calling(*((call.call_id, call.tool, call.arguments) for call in run.calls)),
        answering(*((id_, _template(run, id_)) for id_ in run.spoken)),
    )
    tools = finishing(failing(TOOLS, run.broken), run.finish)
    named = ", ".join(str(call.arguments.get("order_id", "all")) for call in run.calls)
    turn = await watch(
        graph_of(tools=tools, database=database, **options), f"What of {named}?", str(uuid4())
    )
    wanted = {call.call_id: _wanted(call, run) for call in run.calls}
    assert turn.named("call_finished") == list(run.finish)
    assert was_told() == [(c.call_id, wanted[c.call_id]) for c in run.calls]
    assert {key: _brief(result) for key, result in turn.state["results"].items()} == {
        f"1/{id_}": (id_, _status(output)) for id_, output in wanted.items()
    }
    _check_events(turn, run)
    _check_cards(turn, run)


def _template(run: Run, call_id: str) -> str:
    return next(TEMPLATES[call.tool] for call in run.calls if call.call_id == call_id)


def _status(output: dict[str, Any]) -> str:
    return str(output["error"]["kind"] if "error" in output else "ok")


def _brief(result: dict[str, Any]) -> tuple[str, str]:
    return result["call_id"], _status(result)


def _check_events(turn: Watched, run: Run) -> None:
    """Each event names its call, that call's tool and that call's order."""
    by_id = {call.call_id: call for call in run.calls}
    assert sorted(turn.named("call_started")) == sorted(by_id)
    for event in turn.events:
        call = by_id[event["call_id"]]
        assert event["tool"] == call.tool
        named = event["event"] == "call_named"  # before its arguments are known
        assert event["subject"] == ("" if named else call.arguments.get("order_id", ""))


def _check_cards(turn: Watched, run: Run) -> None:
    """One card for each read, the newest of equal ones, with its own order's values."""
    newest = {call.same: call for call in run.calls}
    cards = cards_of(turn.state)
    assert set(cards) == {call.call_id for call in newest.values()}
    assert turn.named("card") == list(cards)
    for call in newest.values():
        _check_card(cards[call.call_id], call, run)


def _check_card(card: dict[str, Any], call: Call, run: Run) -> None:
    order_id = call.arguments.get("order_id", "")
    assert (card["tool"], card["subject"]) == (call.tool, order_id)
    wanted = _wanted(call, run)
    if "error" in wanted:
        assert card["values"] == {}
        assert card["source"] == "default"
        assert order_id in card["text"]
        return
    data = wanted["data"]
    assert card["values"] == {name: data[name] for name in card["values"]}
    if call.call_id in run.spoken:
        assert card["source"] == "model"
        assert set(card["values"]) >= {"order_id"} & set(data)
    numbers = {
        id_: [parcel["tracking_number"] for parcel in DEMO_ORDERS[id_]["parcels"]] for id_ in OWN
    }
    if call.tool == "get_delivery":
        assert all(number in card["text"] for number in numbers[order_id])
    others = [number for id_ in OWN if id_ != order_id for number in numbers[id_]]
    assert not any(number in card["text"] for number in others)


def _wanted(call: Call, run: Run) -> dict[str, Any]:
    """What the model must be told of a call."""
    order_id = call.arguments.get("order_id")
    about = {"order_id": order_id} if order_id else {}
    if call.call_id in run.broken:
        error = {"kind": "service_error", "message": "The service failed."}
        return {"status": "error", **about, "error": error}
    if order_id in (UNKNOWN, FOREIGN):
        message = f"There is no order {order_id} among this customer's orders."
        return {"status": "error", **about, "error": {"kind": "not_found", "message": message}}
    return {"status": "ok", **about, "data": DATA[call.tool](call)}


def _order(call: Call) -> dict[str, Any]:
    order = DEMO_ORDERS[call.arguments["order_id"]]
    items = [{**item, "currency": order["currency"]} for item in order["items"]]
    kept = ("order_id", "status", "placed_on", "total", "currency", "address")
    return {name: order[name] for name in kept} | {
        "items": items,
        "note": order.get("note", ""),
        "refunded": "0",
    }


def _delivery(call: Call) -> dict[str, Any]:
    order = DEMO_ORDERS[call.arguments["order_id"]]
    parcels = order["parcels"]
    return {
        "order_id": order["order_id"],
        "status": order["status"],
        "promised_date": max((p["promised_date"] for p in parcels), default=None),
        "days": max((p["days"] for p in parcels), default=None),
        "parcels": parcels,
    }


def _list(call: Call) -> dict[str, Any]:
    kept = ("order_id", "status", "placed_on", "total", "currency")
    mine = sorted((DEMO_ORDERS[id_] for id_ in OWN), key=lambda order: str(order["placed_on"]))
    return {"orders": [{name: order[name] for name in kept} for order in mine]}


def _comparison(call: Call) -> dict[str, Any]:
    """Of A and B, the only ones that are compared here; both are in dollars, A arrives first."""
    ids = call.arguments["order_ids"]
    due = {id_: max(p["promised_date"] for p in DEMO_ORDERS[id_]["parcels"]) for id_ in ids}
    total = sum(Decimal(DEMO_ORDERS[id_]["total"]) for id_ in ids)
    return {
        "order_ids": ids,
        "totals": [{"total": str(total), "currency": "USD"}],
        "earliest_order_id": "A",
        "earliest_date": due["A"],
        "latest_order_id": "B",
        "latest_date": due["B"],
    }


DATA = {
    "get_order": _order,
    "get_delivery": _delivery,
    "list_orders": _list,
    "compare_orders": _comparison,
}
