"""What the shop's API (`tools/shop/http.py`) says of the demo shop, made without the product."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tools.shop.demo as demo

PAGE = 2  # orders on a page

STATES = {
    "pending": "AWAITING_PAYMENT",
    "confirmed": "PAID",
    "packed": "PACKED",
    "shipped": "SHIPPED",
    "in_transit": "IN_TRANSIT",
    "out_for_delivery": "WITH_COURIER",
    "delivered": "DELIVERED",
    "delayed": "LATE",
    "on_hold": "ON_HOLD",
    "returned": "RETURNED",
    "cancelled": "CANCELED",
}


def _read(name: str) -> list[dict[str, Any]]:
    content = json.loads((Path(demo.__path__[0]) / f"{name}.json").read_text(encoding="utf-8"))
    return list(content[name])


def _money(amount: str, currency: str) -> dict[str, Any]:
    digits = len(amount.partition(".")[2])
    return {
        "cent_amount": int(amount.replace(".", "")),
        "fraction_digits": digits,
        "currency": currency,
    }


def _customer(customer: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": customer["customer_id"],
        "full_name": customer["name"],
        "email": customer["email"],
        "language": customer["locale"],
        "loyalty_points": 120,
    }


def _order(place: int, order: dict[str, Any]) -> dict[str, Any]:
    """Late in the evening on the west coast: in UTC, all of it is tomorrow."""
    currency = order["currency"]
    return {
        "id": f"ord/{place * 7919:05x}",
        "number": f"# {order['order_id'].lower()}",
        "customer_id": order["customer_id"],
        "state": STATES[order["status"]],
        "created_at": f"{order['placed_on']}T21:30:00-08:00",
        "total": _money(order["total"], currency),
        "lines": [
            {
                "sku": item["sku"],
                "title": item["name"],
                "count": item["quantity"],
                "unit_price": _money(item["price"], currency),
            }
            for item in order["items"]
        ],
        "shipping_address": order["address"],
        "customer_note": order.get("note"),
    }


def _shipments(order: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{order['order_id']}-P{place}",
            "order_number": order["order_id"],
            "carrier": parcel["carrier"],
            "tracking_code": parcel["tracking_number"],
            "due_at": f"{parcel['promised_date']}T23:00:00-08:00",
            "transit_days": parcel["days"],
        }
        for place, parcel in enumerate(order["parcels"], 1)
    ]


CUSTOMERS = {customer["customer_id"]: _customer(customer) for customer in _read("customers")}
ORDERS = {order["order_id"]: _order(n, order) for n, order in enumerate(_read("orders"), 1)}
SHIPMENTS = {ORDERS[order["order_id"]]["id"]: _shipments(order) for order in _read("orders")}


def page_of(orders: Mapping[str, Any], customer_id: str, cursor: str) -> dict[str, Any]:
    """Newest first, as such lists are; the product wants them oldest first."""
    mine = [order for order in orders.values() if order["customer_id"] == customer_id]
    mine.sort(key=lambda order: str(order["created_at"]), reverse=True)
    start = int(cursor.removeprefix("at-")) if cursor.startswith("at-") else 0
    following = f"at-{start + PAGE}" if start + PAGE < len(mine) else None
    return {"orders": mine[start : start + PAGE], "next": following}
