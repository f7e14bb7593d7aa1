"""How the shop's API (`tools/shop/http.py`) takes changes, made without the product.

As strict as such an API: a key is needed and belongs to one request for good, a body holds the
fields of its kind and no other, an amount fits its currency. The first answer under a key is given
again to whoever sends the same request.
"""

import copy
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tests.shop_api import ORDERS

Answer = tuple[int, Any]
LEAVING = ("AWAITING_PAYMENT", "PAID", "PACKED", "ON_HOLD")
FIELDS = {
    ("POST", "cancellations"): {"reason"},
    ("PUT", "shipping-address"): {"address"},
    ("POST", "refunds"): {"amount", "reason"},
}


@dataclass
class Changes:
    """The orders as they are now, and by key what was asked and what became of it."""

    orders: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(ORDERS))
    operations: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: list[tuple[str, str]] = field(default_factory=list)
    _first: dict[str, tuple[Any, Answer]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, key: str, method: str, path: list[str], body: bytes) -> Answer:
        with self._lock:
            request = (method, path, body)
            if not _is_key(key):
                return 400, {"error": "KEY_NEEDED"}
            if key in self._first:
                first, answer = self._first[key]
                return answer if first == request else (422, {"error": "KEY_TAKEN"})
            status, content = self._made(key, method, path, body)
            if status < 300:
                self._first[key] = (request, (status, copy.deepcopy(content)))
            return status, content

    def finish(self, reason: str = "") -> None:
        """The shop ends the cancellations that it has accepted: done, or FAILED with a reason."""
        for operation in self.operations.values():
            if operation["state"] == "PENDING":
                operation["state"] = "FAILED" if reason else "SUCCEEDED"
                operation["reason"] = reason or None
                if not reason:
                    self._order(operation["order_id"])["state"] = "CANCELED"

    def _made(self, key: str, method: str, path: list[str], body: bytes) -> Answer:
        match path:
            case ["orders", order_id, what] if (method, what) in FIELDS:
                content = json.loads(body)
                if set(content) != FIELDS[method, what]:
                    return 400, {"error": "FIELDS"}
                return self._kept(key, self._order(order_id), what, content)
        return 404, {"error": "NOT_FOUND"}

    def _kept(self, key: str, order: Any, what: str, content: Any) -> Answer:
        make: dict[str, Callable[[Any, Any], str]] = {
            "cancellations": _cancel,
            "shipping-address": _readdress,
            "refunds": _refund,
        }
        if order is None:
            return 404, {"error": "NOT_FOUND"}
        if refused := make[what](order, content):
            return (400 if refused == "AMOUNT" else 409), {"error": refused}
        later = what == "cancellations"
        operation = {
            "key": key,
            "order_id": order["id"],
            "order_number": order["number"],
            "kind": what,
            "state": "PENDING" if later else "SUCCEEDED",
            "reason": None,
        }
        self.operations[key] = operation
        self.made.append((order["number"], what))
        return (202 if later else 201), operation

    def _order(self, internal_id: str) -> Any:
        return next((o for o in self.orders.values() if o["id"] == internal_id), None)


def _is_key(key: str) -> bool:
    try:
        return str(UUID(key)) == key
    except ValueError:
        return False


def _cancel(order: Any, content: Any) -> str:
    if order["state"] == "CANCELED":
        return "ORDER_CANCELED"
    return "" if order["state"] in LEAVING else "ORDER_LEFT"


def _readdress(order: Any, content: Any) -> str:
    if refused := _cancel(order, content):
        return refused
    order["shipping_address"] = content["address"]
    return ""


def _refund(order: Any, content: Any) -> str:
    total, amount = order["total"], content["amount"]
    before = order.get("refunded") or {**total, "cent_amount": 0}
    if set(amount) != set(total) or amount["currency"] != total["currency"]:
        return "AMOUNT"
    if amount["fraction_digits"] > total["fraction_digits"] or amount["cent_amount"] <= 0:
        return "AMOUNT"
    more = amount["cent_amount"] * 10 ** (total["fraction_digits"] - amount["fraction_digits"])
    if order["state"] == "AWAITING_PAYMENT":
        return "NOT_PAID"
    if before["cent_amount"] + more > total["cent_amount"]:
        return "TOO_MUCH"
    order["refunded"] = {**before, "cent_amount": before["cent_amount"] + more}
    return ""
