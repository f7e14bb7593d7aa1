"""What a case file says that cannot be: of orders, tools and policies that the shop does not have,
or that contradicts itself.
"""

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import chain
from typing import get_args

from jsonschema import Draft202012Validator

from evals.case import Case, Turn
from evals.truth import Truth
from tools.registry import TOOLS, WRITES
from tools.shop.models import OrderStatus

Place = Sequence[str | int]
Wrong = tuple[Place, str]

POLICIES = {each.name for each in files("tools.policy").iterdir()}
PARAMETERS = {tool.name: tool.parameters for tool in (*TOOLS, *WRITES)}
UNTOLD = {"reason", "summary"}  # free words of the model, which a case does not ask for
AMOUNT = re.compile(r"[0-9]+([.][0-9]+)?")
CHANGING = ("done", "unknown_outcome")
# What has to be wrong with an order for a call about it to fail like this.
CAUSES = {
    "timeout": {"timeout"},
    "service_error": {"error", "malformed"},
    "wrong_subject": {"wrong_subject"},
}


def impossible(case: Case, truth: Truth) -> Iterator[Wrong]:
    """Each with its place in the file and a sentence."""
    if case.customer not in truth.customers:
        yield ["customer"], f"the shop has no customer {case.customer!r}"
    yield from _faults(case, truth)
    own = {id_ for id_, order in truth.orders.items() if order.owner == case.customer}
    for number, turn in enumerate(case.turns):
        for part in (_facts, _derived, _failures, _calls, _deeds):
            for where, what in part(case, turn, truth, own):
                yield ["turns", number, *where], what
    changed = {id_ for t in case.turns for id_, deed in t.deeds.items() if deed in CHANGING}
    for order_id in sorted(case.writes.keys() - changed):
        yield ["writes", order_id], f"no turn makes a change of {order_id!r}"
    for order_id, change in case.writes.items():
        for status in set(change.get("status", ())) - {*get_args(OrderStatus)}:
            yield ["writes", order_id, "status"], f"an order is never {status!r}"
    for order_id in sorted(changed - case.writes.keys()):
        yield ["turns"], f"a change of {order_id!r} is made, and `writes` does not hold it"


def _faults(case: Case, truth: Truth) -> Iterator[Wrong]:
    for order_id, fault in case.faults.items():
        for named in {order_id, fault.wrong_subject or order_id} - truth.orders.keys():
            yield ["faults", order_id], f"the shop has no order {named!r}"
        if fault.wrong_subject == order_id:
            yield ["faults", order_id], "to answer about this order is no fault"
        if not any(order_id in turn.called | turn.order_ids for turn in case.turns):
            yield ["faults", order_id], f"no turn is about {order_id!r}"


def _facts(case: Case, turn: Turn, truth: Truth, own: set[str]) -> Iterator[Wrong]:
    for order_id, fields in turn.facts.items():
        if order_id not in own:
            yield ["facts", order_id], f"{case.customer} has no order {order_id!r}"
            return
        for field in fields:
            if field != "refunds" and not truth.orders[order_id].values[field]:
                yield ["facts", order_id], f"the order has no {field} in the shop"


def _derived(case: Case, turn: Turn, truth: Truth, own: set[str]) -> Iterator[Wrong]:
    for order_id in sorted({*chain(*turn.derived.values())} - own):
        yield ["derived"], f"{case.customer} has no order {order_id!r}"
        return
    for which, order_ids in turn.derived.items():
        due = sorted(truth.orders[order_id].due for order_id in order_ids)
        if which != "sum" and due.count(due[0 if which == "first" else -1]) != 1:
            yield ["derived", which], f"no single one of these orders comes {which}"


def _failures(case: Case, turn: Turn, truth: Truth, own: set[str]) -> Iterator[Wrong]:
    for order_id, kind in turn.failures.items():
        fault = case.faults.get(order_id)
        is_wrong = fault and (fault.kind or ("wrong_subject" if fault.wrong_subject else None))
        absent = (order_id in own) == (kind == "not_found")
        if absent or (kind in CAUSES and is_wrong not in CAUSES[kind]):
            why = f"{kind} cannot be true of {order_id!r} for {case.customer}"
            yield ["failures", order_id], why


def _calls(case: Case, turn: Turn, truth: Truth, own: set[str]) -> Iterator[Wrong]:
    for place, [(name, arguments)] in enumerate(call.items() for call in turn.calls):
        if name not in PARAMETERS:
            yield ["calls", place], f"there is no tool {name!r}"
            continue
        asked = set(PARAMETERS[name]["required"])
        schema = {**PARAMETERS[name], "required": sorted(asked - UNTOLD)}
        for problem in Draft202012Validator(schema).iter_errors(arguments):
            yield ["calls", place, name, *problem.absolute_path], problem.message
        if not AMOUNT.fullmatch(str(arguments.get("amount", 0))):
            yield ["calls", place, name, "amount"], 'this is no amount, such as "12.50"'
    told = own | turn.failures.keys() | turn.deeds.keys()
    for order_id in sorted(turn.called - told):
        yield ["calls"], f"{case.customer} has no order {order_id!r}, and no failure says so"
    if turn.rounds and turn.rounds > max(len(turn.calls), 1):
        yield ["rounds"], "there are fewer calls than that"
    if turn.policy and f"{turn.policy}.md" not in POLICIES:
        yield ["policy"], f"the shop has no policy {turn.policy!r}"
    if turn.fails and not case.breaks:
        yield ["fails"], "nothing breaks off: there are no `breaks`"


def _deeds(case: Case, turn: Turn, truth: Truth, own: set[str]) -> Iterator[Wrong]:
    for order_id in turn.decide.keys() - turn.deeds.keys():
        yield ["decide", order_id], f"`deeds` does not say what becomes of {order_id!r}"
    for order_id, deed in turn.deeds.items():
        if (order_id in own) == (deed == "not_found"):
            yield ["deeds", order_id], f"{deed} cannot be true of {order_id!r} for {case.customer}"
        if deed == "rejected" and turn.decide.get(order_id) != "reject":
            yield ["deeds", order_id], f"nobody rejects the change of {order_id!r}"
