"""The shop: what it answers, whose orders it shows, and what the demo data are good for."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, insert

from tools.database import Database
from tools.failures import WrongSubject
from tools.ids import normalise_order_id
from tools.orders import get_delivery
from tools.shop.migrations import SHOP_BRANCH
from tools.shop.models import Order, Parcel
from tools.shop.protocol import CustomerShop, OrderNotFound, Shop
from tools.shop.sql import SqlShop
from tools.shop.tables import orders as orders_table
from tools.tool import Context

DANA = "C-1001"


@pytest.fixture
def shop(tmp_path: Path) -> SqlShop:
    return SqlShop(Database(f"sqlite:///{tmp_path}/shop.db", branches=[SHOP_BRANCH]))


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """Every SELECT that is sent, by any engine."""
    seen: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("SELECT"):
            seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield seen
    event.remove(Engine, "before_cursor_execute", note)


async def test_an_order_has_its_items_and_exact_money(shop: SqlShop) -> None:
    order = await shop.order("A")
    assert order is not None
    assert (order.customer_id, order.total, order.currency) == (DANA, Decimal("139.00"), "USD")
    assert str(order.total) == "139.00"
    assert [(i.name, i.quantity, str(i.price)) for i in order.items] == [
        ("Walnut desk lamp", 1, "89.50"),
        ("Linen lampshade", 2, "24.75"),
    ]
    assert order.placed_on == date(2026, 11, 13)


async def test_an_unknown_order_and_an_unknown_customer_are_none(shop: SqlShop) -> None:
    assert await shop.order("NOPE") is None
    assert await shop.customer("NOPE") is None
    assert await shop.orders_of("NOPE") == []


async def test_ids_with_leading_zeros_are_their_own(shop: SqlShop) -> None:
    padded, plain = await shop.order("00123"), await shop.order("123")
    assert padded is not None
    assert plain is not None
    assert padded.customer_id != plain.customer_id


async def test_orders_come_oldest_first_in_one_statement(
    shop: SqlShop, statements: list[str]
) -> None:
    await shop.database.prepare()
    statements.clear()
    orders = await shop.orders_of(DANA)
    assert len(statements) == 1
    assert {o.order_id for o in orders} == {"A", "B", "A-17", "A-18", "B-21"}
    assert [o.placed_on for o in orders] == sorted(o.placed_on for o in orders)


async def test_an_order_without_items_is_an_order(shop: SqlShop) -> None:
    order = Order(
        order_id="bare",
        customer_id=DANA,
        status="pending",
        placed_on=date(2026, 11, 30),
        total=Decimal("0.10"),
        currency="USD",
    )
    async with shop.database.begin() as connection:
        await connection.execute(insert(orders_table), [order.model_dump(exclude={"items"})])
    assert await shop.order("BARE") == order


async def test_anybodys_order_and_no_order_are_the_same_to_a_customer(
    shop: SqlShop, statements: list[str]
) -> None:
    mine = CustomerShop(shop, DANA)
    await shop.database.prepare()
    seen = []
    for order_id in ("00123", "99999"):
        statements.clear()
        with pytest.raises(OrderNotFound) as refusal:
            await mine.order(order_id)
        assert refusal.value.order_id == order_id
        seen.append((str(refusal.value).replace(order_id, "…"), list(statements)))
    assert seen[0] == seen[1]


async def test_parcels_need_an_order_of_ones_own(shop: SqlShop) -> None:
    mine = CustomerShop(shop, DANA)
    assert [p.days for p in await mine.parcels(await mine.order("A"))] == [2]
    theirs = await shop.order("00123")
    assert theirs is not None
    with pytest.raises(OrderNotFound):
        await mine.parcels(theirs)


class Mixed:
    """A shop that answers about another order than it was asked for."""

    def __init__(self, order: Order, parcels: list[Parcel]) -> None:
        self.answer, self.sent = order, parcels

    async def customer(self, customer_id: str) -> None:
        return None

    async def order(self, order_id: str) -> Order:
        return self.answer

    async def orders_of(self, customer_id: str) -> list[Order]:
        return [self.answer]

    async def parcels(self, order: Order) -> list[Parcel]:
        return self.sent


async def test_a_delivery_as_a_whole_is_that_of_its_last_parcel(shop: SqlShop) -> None:
    order = await shop.order("0456")
    assert order is not None
    assert [(p.promised_date.day, p.days) for p in await shop.parcels(order)] == [(17, 15), (19, 3)]
    ctx = Context(order.customer_id, CustomerShop(shop, order.customer_id))
    whole = await get_delivery.run(ctx, {"order_id": "0456"}, "call_1")
    assert (whole["promised_date"], whole["days"]) == ("2026-12-19", 3)


async def test_a_shop_that_mixes_things_up_is_not_believed(shop: SqlShop) -> None:
    mine, theirs = await shop.order("A"), await shop.order("00123")
    assert mine is not None
    assert theirs is not None
    wrong: Shop = Mixed(theirs, await shop.parcels(theirs))
    with pytest.raises(OrderNotFound):
        await CustomerShop(wrong, DANA).order("00123")
    with pytest.raises(WrongSubject):
        await CustomerShop(wrong, DANA).orders()
    with pytest.raises(WrongSubject):
        await CustomerShop(wrong, DANA).parcels(mine)
    with pytest.raises(WrongSubject):
        await CustomerShop(Mixed(mine, []), DANA).order("B")


# The demo data.


async def _with_parcels(shop: SqlShop) -> list[tuple[Order, list[Parcel]]]:
    return [(order, await shop.parcels(order)) for order in await shop.all_orders()]


async def test_the_demo_shop_has_enough_of_everything(shop: SqlShop) -> None:
    everything = await _with_parcels(shop)
    per_customer = Counter(order.customer_id for order, _ in everything)
    assert len(everything) >= 40
    assert len(per_customer) >= 8
    assert min(per_customer.values()) >= 5
    assert {order.currency for order, _ in everything} == {"EUR", "USD", "GBP", "JPY"}
    assert {len(parcels) for _, parcels in everything} == {0, 1, 2, 3}
    assert len({order.status for order, _ in everything}) == 11
    for customer_id in per_customer:
        customer = await shop.customer(customer_id)
        assert customer is not None
        assert customer.name
        assert customer.email.endswith(("@example.com", "@example.org"))


async def test_the_demo_customer_owns_the_orders_that_the_texts_name(shop: SqlShop) -> None:
    dana = await shop.customer(DANA)
    assert dana is not None
    assert dana.name == "Dana Reyes"
    parcels = {o.order_id: p for o, p in await _with_parcels(shop) if o.customer_id == DANA}
    assert {order_id: len(p) for order_id, p in parcels.items()} == {
        "A": 1,
        "B": 1,
        "A-17": 1,
        "A-18": 2,
        "B-21": 1,
    }
    assert (parcels["A"][0].days, parcels["B"][0].days) == (2, 5)


async def test_the_demo_ids_are_normal_and_of_many_kinds(shop: SqlShop) -> None:
    ids = [order.order_id for order in await shop.all_orders()]
    assert all(normalise_order_id(order_id) == order_id for order_id in ids)
    assert {"123", "00123", "0456", "Ж-40"} <= set(ids)
    assert max(map(len, ids)) > 40


Facts = Callable[[Order, list[Parcel]], list[Any]]


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(lambda o, ps: [o.placed_on, *(p.promised_date for p in ps)], id="dates"),
        pytest.param(lambda o, _: list({o.total, *(i.price for i in o.items)}), id="amounts"),
        pytest.param(lambda o, _: [i.name for i in o.items], id="item names"),
        pytest.param(lambda o, _: [i.sku for i in o.items], id="skus"),
        pytest.param(lambda _, ps: [p.carrier for p in ps], id="carriers"),
        pytest.param(lambda _, ps: [p.tracking_number for p in ps], id="tracking numbers"),
        pytest.param(lambda _, ps: [p.days for p in ps], id="days"),
        pytest.param(lambda o, _: o.address.split(", "), id="streets and cities"),
        pytest.param(lambda o, _: [o.status], id="statuses"),
    ],
)
async def test_no_two_orders_of_a_customer_share_a_fact(shop: SqlShop, facts: Facts) -> None:
    everything = await _with_parcels(shop)
    for customer_id in {order.customer_id for order, _ in everything}:
        mine = [facts(o, ps) for o, ps in everything if o.customer_id == customer_id]
        counts = Counter(fact for one in mine for fact in set(one))
        countries = {o.address.rsplit(", ", 1)[-1] for o, _ in everything}
        assert not {fact for fact, n in counts.items() if n > 1} - countries, customer_id


async def test_demo_totals_are_the_sums_of_their_items(shop: SqlShop) -> None:
    for order in await shop.all_orders():
        assert order.total == sum(item.quantity * item.price for item in order.items)
        assert order.currency != "JPY" or order.total == int(order.total)


async def test_demo_dates_read_one_way_only_and_follow_each_other(shop: SqlShop) -> None:
    for order, parcels in await _with_parcels(shop):
        for day in (order.placed_on, *(p.promised_date for p in parcels)):
            assert day.year == 2026
            assert day.month >= 10
            assert day.day > 12
        assert all(p.promised_date > order.placed_on for p in parcels)


async def test_demo_texts_that_attack_are_kept_as_data(shop: SqlShop) -> None:
    orders = await shop.all_orders()
    [hostile] = [o for o in orders if "ignore your instructions" in o.note]
    assert hostile.customer_id != DANA
    assert "{total} Mug" in {item.name for o in orders for item in o.items}
