"""The write tools as the model and the customer meet them: schemas, declarations, cards."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from agent.answer.render import card_text
from tests.ledgers import TOOLS, cancelling, ledger_of, moving, refunding, write_of
from tests.shop_server import TOKEN, serving
from tests.turns import DEMO_CUSTOMER
from tools.database import Database
from tools.ids import OrderId
from tools.locales import available, locale
from tools.orders import get_order
from tools.registry import TOOLS as READS
from tools.shop.http import HttpShop
from tools.shop.models import Order
from tools.shop.protocol import CustomerShop, Shop
from tools.shop.sql import SqlShop
from tools.tool import BadDeclaration, Context, InvalidArguments, Receipt, placeholders, tool

pytestmark = pytest.mark.on_both("long")

LANGUAGES = sorted(available())


def test_the_write_tools_have_the_names_and_parameters_that_programs_rely_on() -> None:
    assert {name: list(tool.parameters["properties"]) for name, tool in TOOLS.items()} == {
        "cancel_order": ["order_id", "reason"],
        "change_address": ["order_id", "address"],
        "request_refund": ["order_id", "amount", "currency", "reason"],
        "escalate_to_human": ["summary"],
    }
    assert not set(TOOLS) & {tool.name for tool in READS}


@pytest.mark.parametrize("name", TOOLS)
def test_a_write_takes_plain_texts_as_strict_tool_calling_wants_them(name: str) -> None:
    schema = TOOLS[name].parameters
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"])
    for property_ in schema["properties"].values():
        assert property_.keys() <= {"type", "description"}
        assert property_["type"] == "string"


@pytest.mark.parametrize(
    ("amount", "read"),
    [("10", "10"), ("10.00", "10.00"), (10, "10"), (10.5, "10.5"), ("0.0001", "0.0001")],
)
def test_an_amount_is_read_exactly(amount: Any, read: str) -> None:
    write = write_of("request_refund", _refund(amount=amount))
    assert str(write.arguments["amount"]) == read
    assert isinstance(write.arguments["amount"], Decimal)
    assert write.plain["amount"] == read


@pytest.mark.parametrize(
    "wrong",
    [
        *({"amount": amount} for amount in ("", "0", "-1", "1e2", "NaN", "1,50", "٣", "0.00001")),
        *({"amount": amount} for amount in (True, None, -1, 0, 1e30, 0.00001, "9" * 15, [1])),
        *({"currency": code} for code in ("", "US", "DOLLAR", "U$D", 1)),
        *({"reason": text} for text in ("", "  ", "a\x07b", "x" * 1001)),
        {"customer_id": "C-1002"},
        {"order_id": 17},
    ],
    ids=repr,
)
def test_arguments_that_cannot_be_meant_are_refused(wrong: Mapping[str, Any]) -> None:
    with pytest.raises(InvalidArguments):
        write_of("request_refund", _refund(**wrong))


def _refund(**changed: Any) -> dict[str, Any]:
    return {"order_id": "A", "amount": "10", "currency": "USD", "reason": "late", **changed}


def test_what_makes_the_same_action_is_never_a_free_text() -> None:
    first = write_of("request_refund", _refund())
    same = write_of("request_refund", _refund(reason="broken", amount=10.0, currency="usd"))
    assert same.action == first.action
    assert same.key(0) == first.key(0) != first.key(1)
    others = [_refund(order_id="B"), _refund(amount="10.01"), _refund(currency="EUR")]
    actions = {write_of("request_refund", other).action for other in others}
    assert len(actions | {first.action}) == 4
    assert write_of("request_refund", _refund(), customer="C-1002").action != first.action
    assert write_of("request_refund", _refund(), thread="thread-2").action == first.action
    assert moving("A", " 9  Mill Lane ").action == moving("A", "9 Mill Lane").action


class Done(Receipt):
    order_id: str


async def _look(ctx: Context, arguments: Mapping[str, Any]) -> None: ...


@pytest.mark.parametrize(
    ("declaration", "sentence"),
    [
        ({"effect": "write", "subject": "order_id"}, "subject is missing in identity"),
        ({"effect": "read", "identity": ("order_id",)}, "only a write has"),
        ({"effect": "read", "check": _look}, "only a write has"),
        ({"effect": "write", "outside": lambda ctx: True}, "outside needs"),
        ({"effect": "write", "identity": ("id",)}, "identity is no parameter"),
        ({"cost": "0.01"}, r"cost is no Decimal or int from 0 on: \['0.01'\]"),
        ({"cost": 0.01}, "cost is no Decimal"),
        ({"cost": True}, "cost is no Decimal"),
        ({"cost": Decimal(-1)}, "cost is no Decimal"),
        ({"cost": Decimal("NaN")}, "cost is no Decimal"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(
    declaration: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadDeclaration, match=sentence):

        @tool(sentence="Done.", **declaration)
        async def keep(ctx: Context, order_id: OrderId) -> Done:
            """Keeps an order."""
            return Done(state="done", order_id=order_id)


def test_a_write_that_returns_no_receipt_is_refused() -> None:
    with pytest.raises(BadDeclaration, match="must return a Receipt"):

        @tool(effect="write", sentence="Done.")
        async def keep(ctx: Context) -> Order:
            """Keeps nothing."""
            raise NotImplementedError


RECEIPTS: dict[str, dict[str, Any]] = {
    "cancel_order": {"order_id": "A-17"},
    "change_address": {"order_id": "A-17", "address": "9 Mill Lane"},
    "request_refund": {"order_id": "A-17", "amount": "10.00", "currency": "USD"},
    "escalate_to_human": {"ticket": "T-1B2C3D4E"},
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", TOOLS)
def test_a_card_says_what_is_done_what_is_only_accepted_and_what_was_done_before(
    name: str, language: str
) -> None:
    speech, declared, said = locale(language), TOOLS[name], set()
    assert declared.returns is not None
    for state in ("done", "accepted"):
        for repeated in (False, True):
            fields = {**RECEIPTS[name], "state": state, "repeated": repeated}
            receipt = declared.returns.model_validate(fields)
            sentence = speech.sentence("cards", name, receipt)
            assert sentence is not None
            assert set(declared.required) <= placeholders(sentence)
            said.add(card_text(sentence, receipt, speech))
    assert len(said) == (2 if name == "escalate_to_human" else 4)
    assert name in speech.data["what"]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_an_order_says_what_was_refunded_of_it(language: str, database: Database) -> None:
    speech, shop = locale(language), CustomerShop(SqlShop(database), DEMO_CUSTOMER)
    before = await get_order.run(Context(DEMO_CUSTOMER, shop), {"order_id": "A"}, "")
    await ledger_of(database).write_once(refunding("A", "12.34"))
    after = await get_order.run(Context(DEMO_CUSTOMER, shop), {"order_id": "A"}, "")
    assert get_order.returns is not None
    for data, told in ((before, False), (after, True)):
        view = get_order.returns.model_validate(data)
        text = card_text(str(speech.sentence("cards", "get_order", view)), view, speech)
        assert ("12.34" in text or "12,34" in text) == told


async def test_an_order_that_is_imported_again_keeps_its_refunds(
    database: Database, tmp_path: Any
) -> None:
    from tools.shop.importer import import_shop, read_shop_file

    await ledger_of(database).write_once(refunding("A", "12.34"))
    order = {"order_id": "A", "customer_id": DEMO_CUSTOMER, "status": "delivered"}
    rest = {"placed_on": "2026-11-13", "total": "139.00", "currency": "USD"}
    file = tmp_path / "orders.json"
    file.write_text(json.dumps([order | rest]))
    await import_shop(database, read_shop_file(file))
    found = await SqlShop(database).order("A")
    assert found is not None
    assert (found.status, str(found.refunded)) == ("delivered", "12.34")


async def test_the_rules_are_the_same_before_and_behind_the_api(database: Database) -> None:
    with serving() as server:
        shop = HttpShop(server.url, SecretStr(TOKEN))
        for write in (
            *(make(order) for make in (cancelling, _away) for order in ("A", "B", "A-17", "B-21")),
            refunding("B", "87.16"),
            refunding("B", "87.15"),
        ):
            here = await ledger_of(database).check(write)
            there = await ledger_of(database, shop=shop).check(write)
            assert here == there
            made = await ledger_of(database, shop=shop).write_once(write)
            assert (made.error is None or made.error["kind"] == "rejected") == (here is None)
        await shop.close()


def _away(order_id: str) -> Any:
    return moving(order_id, "9 Mill Lane, Salem, OR 97301, US")


class ReadOnly:
    """A shop as `docs/your-own-shop.md` has it: four questions."""

    def __init__(self, shop: Shop) -> None:
        self.customer, self.order = shop.customer, shop.order
        self.orders_of, self.parcels = shop.orders_of, shop.parcels


async def test_a_shop_that_takes_no_changes_refuses_them(database: Database) -> None:
    shop = ReadOnly(SqlShop(database))
    outcome = await ledger_of(database, shop=shop).write_once(cancelling("A-17"))
    assert outcome.error == {
        "kind": "refused",
        "message": "This shop's orders cannot be changed from here.",
    }
