"""A shop's own orders: read from JSON or CSV, all or nothing, every bad row named."""

import json
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.database import Database
from tools.shop.importer import (
    LARGEST,
    ImportProblem,
    ImportReport,
    ShopFile,
    import_shop,
    read_shop_file,
)
from tools.shop.migrations import SHOP_BRANCH
from tools.shop.sql import SqlShop

ORDER: dict[str, Any] = {
    "order_id": " n-1 ",
    "customer_id": "N-9",
    "status": "shipped",
    "placed_on": "2026-11-14",
    "total": "20.50",
    "currency": "EUR",
    "items": [{"sku": "S", "name": "Cup", "quantity": 2, "price": "10.25"}],
    "parcels": [
        {
            "carrier": "Kestrel Post",
            "tracking_number": "KP1",
            "promised_date": "2026-11-20",
            "days": 3,
        }
    ],
}

HEADER = (
    "order_id,customer_id,customer_name,customer_email,status,placed_on,total,currency,"
    "sku,item,quantity,price,carrier,tracking_number,promised_date,days,note,address\n"
)
CSV = HEADER + (
    "0042,N-9,Nia,nia@example.com,shipped,2026-11-14,32.00,EUR,"
    'S-1,Cup,2,10.25,Kestrel Post,KP1,2026-11-20,3,"Two lines\nof note","1 High St, York"\n'
    "0042,N-9,,,,,,,S-2,Saucer,1,11.50,Kestrel Post,KP1,2026-11-20,3,,\n"
    "0042,N-9,,,,,,,,,,,Harborline,HL2,2026-11-25,8,,\n"
    "\n"
    "N-2,N-9,Nia,,pending,2026-11-15,5,EUR,,,,,,,,,,\n"
)

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: object, name: str = "orders.json") -> Path:
        file = tmp_path / name
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            text = content if isinstance(content, str) else json.dumps(content)
            file.write_text(text, encoding="utf-8", newline="")
        return file

    return write


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(f"sqlite:///{tmp_path}/shop.db", branches=[SHOP_BRANCH])


def _problems(file: Path) -> list[str]:
    with pytest.raises(ImportProblem) as problem:
        read_shop_file(file)
    first, *rest = str(problem.value).split("\n  ")
    assert first == f"{file.name} was not imported, and nothing was written:"
    return rest


async def _load(database: Database, file: Path, empty: bool = True) -> ImportReport:
    shop_file: ShopFile = read_shop_file(file)
    return await import_shop(database, shop_file, empty=empty)


async def test_json_is_loaded_as_it_was_written(database: Database, write: Write) -> None:
    customers = [{"customer_id": "N-9", "name": "Nia", "email": "n@example.com", "locale": "de-DE"}]
    report = await _load(database, write({"customers": customers, "orders": [ORDER]}))
    assert report == ImportReport(1, 1, 1, 1, 0, ())
    shop = SqlShop(database)
    [order] = await shop.all_orders()
    assert (order.order_id, order.total) == ("N-1", Decimal("20.50"))
    assert [item.model_dump() for item in order.items] == [
        {"sku": "S", "name": "Cup", "quantity": 2, "price": Decimal("10.25")}
    ]
    [parcel] = await shop.parcels(order)
    assert (parcel.parcel_id, parcel.tracking_number, parcel.days) == ("N-1-P1", "KP1", 3)
    customer = await shop.customer("N-9")
    assert customer is not None
    assert (customer.name, customer.locale) == ("Nia", "de-DE")


async def test_a_list_of_orders_is_enough_and_names_its_customers(
    database: Database, write: Write
) -> None:
    await _load(database, write([ORDER]))
    customer = await SqlShop(database).customer("N-9")
    assert customer is not None
    assert (customer.name, customer.email, customer.locale) == ("", "", "en")


async def test_csv_rows_of_one_order_add_items_and_parcels(
    database: Database, write: Write
) -> None:
    report = await _load(database, write(CSV, "orders.csv"))
    assert report == ImportReport(1, 2, 2, 2, 0, ())
    shop = SqlShop(database)
    order = await shop.order("0042")
    assert order is not None
    assert [(item.name, item.quantity) for item in order.items] == [("Cup", 2), ("Saucer", 1)]
    assert (order.note, order.address) == ("Two lines\nof note", "1 High St, York")
    assert [p.tracking_number for p in await shop.parcels(order)] == ["KP1", "HL2"]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_csv_as_spreadsheets_write_it(write: Write, ending: str, encoding: str) -> None:
    head = "Order_ID,customer_id,status,placed_on,total,currency"
    text = ending.join([head, "ж-1,N-9,pending,2026-11-14,5.00,EUR", ",,,,,", ""])
    shop_file = read_shop_file(write(text.encode(encoding), "orders.csv"))
    assert [order.order_id for order in shop_file.orders] == ["Ж-1"]


def test_numbers_in_json_are_exact(write: Write) -> None:
    text = json.dumps([{**ORDER, "order_id": 7}]).replace('"20.50"', "20.10")
    [order] = read_shop_file(write(text)).orders
    assert (order.order_id, str(order.total)) == ("7", "20.10")


def test_what_nobody_documented_is_reported_and_passed_over(write: Write) -> None:
    item = {**ORDER["items"][0], "colour": "red"}
    content = {"orders": [{**ORDER, "gift": True, "_why": "x", "items": [item]}], "shop": "S"}
    assert read_shop_file(write(content)).unknown == ("shop", "gift", "colour")
    csv = HEADER.strip() + ",gift,\n" + "1,N,,,pending,2026-11-14,5,EUR" + "," * 11 + "red,\n"
    assert read_shop_file(write(csv, "o.csv")).unknown == ("gift",)


@pytest.mark.parametrize(
    ("content", "name"),
    [("id,customer_id,status,sum\n1,2,3,4\n", "o.csv"), ([{"id": 1, "status": "x"}], "o.json")],
)
def test_missing_columns_are_one_problem_that_lists_the_documented_ones(
    write: Write, content: object, name: str
) -> None:
    [problem] = _problems(write(content, name))
    assert problem.startswith("It has no order_id, ")
    assert "Needed are order_id, customer_id, status, placed_on, total, currency" in problem
    assert "address" in problem


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("order_id", "#", "none is there"),
        ("order_id", ["N"], "should be a valid string"),
        ("customer_id", "  ", "must not be blank"),
        ("customer_id", None, "is missing"),
        ("status", "lost", "Input should be 'pending'"),
        ("placed_on", "14.11.2026", "like 2026-11-30 (it is '14.11.2026')"),
        ("placed_on", "2026-11-31", "like 2026-11-30"),
        ("placed_on", 45975, "like 2026-11-30"),
        ("placed_on", "1763078400", "like 2026-11-30"),
        ("total", "12,50", "valid decimal (it is '12,50')"),
        ("total", "-1", "greater than or equal to 0"),
        ("total", float("nan"), "finite"),
        ("total", "1.005", "1.005 has more decimals than the currency EUR"),
        ("total", "1_000", "written like 1250.50"),
        ("total", "\u0663\u0664", "written like 1250.50"),
        ("total", "1e999999999", "18 digits"),
        ("total", [], "Decimal"),
        ("currency", "euro", "ISO 4217"),
        ("currency", "eur", "ISO 4217"),
        ("currency", "XXX", "'XXX' is no currency (ISO 4217) on 2026-11-14"),
        ("currency", "DEM", "'DEM' is no currency (ISO 4217) on 2026-11-14"),
        ("currency", "JPY", "20.50 has more decimals than the currency JPY"),
        ("customer_id", "C-1\u200b", "hidden ones (it is 'C-1\\u200b')"),
        ("customer_id", "C\u202e9", "hidden ones (it is 'C\\u202e9')"),
        ("note", "\x1b[2J", "control characters"),
        ("note", "x" * 2001, "at most 2000"),
        ("items", "cup", "must be a list"),
        ("items", ["cup"], "items[0]: must be an object"),
        ("items", [{"name": "Cup", "quantity": 0, "price": "1"}], "items[0], quantity"),
        ("items", [{"name": "Cup", "quantity": 1.5, "price": "1"}], "items[0], quantity"),
        ("items", [{"name": "Cup", "quantity": "1_0", "price": "1"}], "items[0], quantity"),
        ("items", [{"quantity": 1, "price": "1"}], "items[0], name: is missing"),
        ("parcels", [{"carrier": "K", "tracking_number": "1", "days": 1}], "promised_date: is"),
    ],
)
def test_a_bad_value_is_named_with_its_place(
    write: Write, field: str, value: object, said: str
) -> None:
    [problem] = _problems(write([ORDER | {"order_id": "N-2"}, {**ORDER, field: value}]))
    assert problem.startswith("orders[1] (")
    assert field in problem or "parcel" in problem or "more decimals" in problem
    assert said in problem


def test_csv_problems_are_named_by_line_all_together(write: Write) -> None:
    bad = CSV + (
        "0042,N-8,,,shipped,,,,S-2,Saucer,1,11.50,,,,,,\n"
        "N-3,N-9,Mia,,pending,2026-11-15,5,EUR,,,two,1,,,,,,\n"
        "N-4,N-9\n"
        ",N-9,,,pending,2026-11-15,5,EUR,,,,,,,,,,\n"
    )
    problems = _problems(write(bad, "orders.csv"))
    assert problems == [
        "line 8: repeats an item; put the number of pieces in quantity",
        "line 8, customer_id: the same order has something else on line 3",
        "line 10: it has more or fewer cells than the header",
        "line 9, item, name: is missing",
        "line 9, item, quantity: Input should be a valid integer, unable to parse string as an "
        "integer (it is 'two')",
        "line 11, order_id: is missing",
    ]


def test_many_problems_are_bounded(write: Write) -> None:
    orders = [{**ORDER, "order_id": f"N-{n}", "status": "lost"} for n in range(50)]
    problems = _problems(write(orders))
    assert len(problems) == 21
    assert problems[-1] == "and 30 more"


def test_ids_that_become_the_same_are_one_order_twice(write: Write) -> None:
    same = {**ORDER, "order_id": "#N\u20111"}
    problems = _problems(write([ORDER, same, {**same, "status": "lost"}]))
    assert problems[0] == "orders[1] ('#N\u20111'): order N-1 is in the file already"
    assert "orders[2] ('#N\u20111'), status" in problems[1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "It is empty."),
        (b" \n\xef\xbb\xbf", "It is empty."),
        ("[]", "It holds no orders."),
        ('{"orders": []}', "It holds no orders."),
        ("{}", "It holds no orders."),
        ('{"orders": {}}', "It must be a list of orders, or an object"),
        ('[\n  {"order_id": }]', "line 2, column 16"),
        ("[" * 100_000, "nested too deeply"),
        (HEADER.replace(",", ";") + "1;2", "Its columns stand between ';', not commas."),
        (HEADER.replace(",", "\t"), "Its columns stand between '\\t', not commas."),
        ('[{"order_id": "N-1", "total": 1, "total": 2}]', "'total' stands twice in one object ('N"),
        ('{"orders": [], "orders": []}', "'orders' stands twice in one object."),
        ("order_id,order_id," + HEADER, "A column stands twice: order_id."),
        (HEADER + '"A', "It is not valid CSV after line 1"),
        (HEADER, "It holds no orders."),
        ("a customer's letter", "It has no order_id"),
        ("Bücher".encode("latin-1"), "It is not UTF-8 text (byte 2); save it as UTF-8."),
        ("order_id".encode("utf-16"), "It is not UTF-8 text (byte 1)"),
        (b"\x00\x01\x02", "It has no order_id"),
    ],
)
def test_a_file_that_is_no_shops_file_gets_one_sentence(
    write: Write, content: object, said: str
) -> None:
    if content == b" \n\xef\xbb\xbf":
        content = b"\xef\xbb\xbf \n"
    [problem] = _problems(write(content, "orders"))
    assert said in problem


def test_what_is_no_file_or_too_large_gets_a_sentence(tmp_path: Path) -> None:
    missing = _problems(tmp_path / "none.csv")
    assert missing == ["It cannot be read: no such file or directory."]
    os.mkfifo(tmp_path / "pipe.csv")
    for no_file in (tmp_path, tmp_path / "pipe.csv", Path("/dev/zero")):
        assert _problems(no_file) == ["It is no file but a directory, a pipe or a device."]
    with (tmp_path / "large.csv").open("wb") as large:
        large.truncate(LARGEST + 1)
    assert _problems(tmp_path / "large.csv") == ["It is larger than 50 MB; load it in parts."]


def test_money_is_what_its_currency_was_on_the_day(write: Write) -> None:
    paid = [("1999-06-01", "DEM", "9.99"), ("2026-11-14", "JPY", "1200.00")]
    paid += [("2026-11-14", "KWD", "1.005"), ("2025-03-01", "BGN", "1.50")]
    orders = [
        {**ORDER, "order_id": n, "placed_on": day, "currency": code, "total": total, "items": []}
        for n, (day, code, total) in enumerate(paid)
    ]
    read = read_shop_file(write(orders)).orders
    assert [(str(o.placed_on), o.currency, str(o.total)) for o in read] == paid


def test_what_cannot_be_told_apart_by_eye_alone_is_still_a_customer(write: Write) -> None:
    people = ["C-1", "\u0421-1", "Jos\u00e9"]
    orders = [{**ORDER, "order_id": n, "customer_id": c} for n, c in enumerate(people)]
    assert [order.customer_id for order in read_shop_file(write(orders)).orders] == people


def test_an_order_of_very_many_items_is_read_by_looking_at_each_once(write: Write) -> None:
    rows = "".join(f"1,N,,,pending,2026-11-14,5,EUR,,I{n},1,1,,,,,,\n" for n in range(20_000))
    [order] = read_shop_file(write(HEADER + rows, "orders.csv")).orders
    assert len(order.items) == 20_000


async def test_an_order_comes_again_and_replaces_the_old_one(
    database: Database, write: Write
) -> None:
    await _load(database, write([ORDER, {**ORDER, "order_id": "N-2"}]))
    newer = {**ORDER, "status": "delivered", "items": [], "customer_email": "n@example.com"}
    report = await _load(database, write([newer]), empty=False)
    assert (report.orders, report.replaced) == (1, 1)
    shop = SqlShop(database)
    order = await shop.order("N-1")
    assert order is not None
    assert (order.status, order.items) == ("delivered", ())
    assert len(await shop.parcels(order)) == 1
    assert len(await shop.all_orders()) == 2
    customer = await shop.customer("N-9")
    assert customer is not None
    assert customer.email == "n@example.com"


async def test_an_order_of_somebody_else_stops_the_whole_import(
    database: Database, write: Write
) -> None:
    file = write([{**ORDER, "order_id": "N-7"}, {**ORDER, "order_id": "a-17"}])
    with pytest.raises(ImportProblem, match="order A-17 belongs to another customer"):
        await _load(database, file, empty=False)
    shop = SqlShop(database)
    assert await shop.order("N-7") is None
    assert await shop.customer("N-9") is None


async def test_beginning_empty_is_refused_where_orders_are(
    database: Database, write: Write
) -> None:
    assert await SqlShop(database).all_orders()
    with pytest.raises(ImportProblem, match="has orders already"):
        await _load(database, write([ORDER]), empty=True)
    assert await SqlShop(database).order("N-1") is None


async def test_an_empty_shop_has_no_orders(database: Database) -> None:
    await database.prepare(demo=False)
    assert await SqlShop(database).all_orders() == []


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*ORDER, "customers", "orders", "name"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


def _read_or_refuse(file: Path) -> None:
    try:
        read_shop_file(file)
    except ImportProblem as problem:
        str(problem).encode()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JUNK)
def test_any_json_is_read_or_refused_with_a_sentence(write: Write, junk: object) -> None:
    _read_or_refuse(write({"orders": junk, "customers": [ORDER]}))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
def test_any_csv_is_read_or_refused_with_a_sentence(write: Write, text: str) -> None:
    _read_or_refuse(write(HEADER + text, "orders.csv"))
