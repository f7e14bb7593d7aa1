"""What the demo shop's files say, read without the product."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import tools.shop.demo as demo

ORDERS: dict[str, Any] = {
    order["order_id"]: order
    for order in json.loads((Path(demo.__path__[0]) / "orders.json").read_text())["orders"]
}


def promised(order_id: str) -> list[str]:
    """The promised dates of an order's parcels, as an English answer writes them."""
    days = [date.fromisoformat(parcel["promised_date"]) for parcel in ORDERS[order_id]["parcels"]]
    return [f"{day:%B} {day.day}, {day.year}" for day in days]


def tracking(order_id: str) -> set[str]:
    return {parcel["tracking_number"] for parcel in ORDERS[order_id]["parcels"]}


def check_only(message: str, *order_ids: str) -> None:
    """Asserts that a text speaks of these orders' parcels, each of them, and of nobody else's."""
    wanted = {number for order_id in order_ids for number in tracking(order_id)}
    every = {number for order_id in ORDERS for number in tracking(order_id)}
    assert {number for number in every if number in message} == wanted, message
    for order_id in order_ids:
        for day in promised(order_id):
            assert day in message, message
