"""Questions worded by someone who has not read the offline model: data/wordings.yaml."""

import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

import tools
from agent.settings import Settings
from tests.turns import DEMO_CUSTOMER, DEMO_ORDERS, ask, decide, graph_of, pending
from tools.database import Database
from tools.ids import normalise_order_id

CONVERSATIONS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "data" / "wordings.yaml").read_text(encoding="utf-8")
)

# How a status reads.
STATUS: dict[str, str] = tomllib.loads(
    (Path(tools.__file__).parent / "locales" / "en.toml").read_text(encoding="utf-8")
)["enums"]["status"]

Calls = Counter[str]


@pytest.mark.parametrize(
    "conversation", CONVERSATIONS, ids=[c["ask"][0]["say"][:60] for c in CONVERSATIONS]
)
async def test_a_wording_is_read_as_a_sensible_agent_reads_it(
    conversation: dict[str, Any], database: Database
) -> None:
    customer = conversation.get("customer", DEMO_CUSTOMER)
    graph = graph_of(database=database, settings=Settings(model="offline"), customer=customer)
    mentioned = ""
    wrong = []
    for turn in conversation["ask"]:
        mentioned += turn["say"] + "\n"
        state = await ask(graph, turn["say"])
        if pauses := await pending(graph):  # here it only counts what the model asks for
            state = await decide(graph, **dict.fromkeys(pauses, "reject"))
        made, answer = calls_of(state["messages"]), state["answer"]
        found = [
            *misread(turn, made),
            *unsaid(turn, answer["message"]),
            *misplaced(answer),
            *unasked(turn, made, customer, mentioned, answer["message"]),
        ]
        if found:
            wrong.append("\n".join([f"customer: {turn['say']}", *found, answer["message"]]))
    assert not wrong, "\n\n".join(wrong)


def misread(turn: Mapping[str, Any], made: Calls) -> list[str]:
    if any(fits(made, wanted) for wanted in alternatives(turn["expect"])):
        return []
    return [f"- made {', '.join(sorted(made.elements())) or 'no call'}, not {turn['expect']}"]


def calls_of(messages: Iterable[BaseMessage]) -> Calls:
    """The calls since the customer's last message."""
    turn: list[BaseMessage] = []
    for message in messages:
        turn = [] if isinstance(message, HumanMessage) else [*turn, message]
    return Counter(
        written(call["name"], call["args"])
        for message in turn
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    )


def written(name: str, arguments: Mapping[str, Any]) -> str:
    ids = arguments.get("order_ids") or [
        arguments[key] for key in ("order_id",) if key in arguments
    ]
    return call(name, ids)


def call(name: str, ids: Iterable[str]) -> str:
    return f"{name}({', '.join(sorted(map(normalise_order_id, ids)))})"


def alternatives(expect: Any) -> Iterator[Calls]:
    """Each set of calls that is right, with `either(X)` written out."""
    for wanted in [expect] if expect == "none" else expect:
        options = [] if wanted == "none" else [list(written_out(each)) for each in wanted]
        for chosen in itertools.product(*options):
            yield Counter(itertools.chain.from_iterable(chosen))


def written_out(text: str) -> Iterator[list[str]]:
    name, ids = text.rstrip(")").split("(")
    both = [
        call(each, ids.split(", ") if ids else [])
        for each in (["get_order", "get_delivery"] if name == "either" else [name])
    ]
    yield from ([each] for each in both)
    if len(both) > 1:
        yield both


def fits(made: Calls, wanted: Calls) -> bool:
    """list_orders changes nothing and may be needed to know what is meant, so it may be extra."""
    extra = made - wanted
    return not wanted - made and set(extra) <= {"list_orders()"} and (made or not wanted) != {}


def unsaid(turn: Mapping[str, Any], message: str) -> list[str]:
    missing = [f"- not said: {v}" for v in turn.get("says", ()) if not shows(message, v)]
    return missing + [f"- said: {v}" for v in turn.get("omits", ()) if shows(message, v)]


def misplaced(answer: Mapping[str, Any]) -> list[str]:
    """Cards without a value of their own order, or with one of another order."""
    wrong = []
    for card in answer["cards"]:
        if card["tool"] not in {"get_order", "get_delivery"} or not card["values"]:
            continue
        text, order = card["text"], DEMO_ORDERS[card["subject"]]
        if text not in answer["message"]:
            wrong.append(f"- card not in the message: {text}")
        if not any(shows(text, value) for value in values_of(order)):
            wrong.append(f"- nothing of {card['subject']} in: {text}")
        wrong += [f"- {v} of another order in: {text}" for v in secrets([order], text)]
    return wrong


def unasked(
    turn: Mapping[str, Any], made: Calls, customer: str, mentioned: str, message: str
) -> list[str]:
    """Values and ids of orders that nobody asked about."""
    asked = {o for o in DEMO_ORDERS if any(re.search(rf"[(, ]{re.escape(o)}[,)]", c) for c in made)}
    if any("list_orders()" in wanted for wanted in turn["expect"]):
        asked |= {o for o, order in DEMO_ORDERS.items() if order["customer_id"] == customer}
    spoken = [f"- {v} was not asked" for v in secrets([DEMO_ORDERS[o] for o in asked], message)]
    for order_id in DEMO_ORDERS.keys() - asked:
        named = order_id if len(order_id) > 1 else f"order {order_id}"
        if shows(message, named) and not shows(mentioned, order_id):
            spoken.append(f"- {order_id} was not asked")
    return spoken


def secrets(allowed: list[dict[str, Any]], text: str) -> list[str]:
    """Tracking numbers, totals and days that the text shows of other orders than the allowed."""
    own = {value for order in allowed for value in values_of(order)}
    others = {
        value
        for order in DEMO_ORDERS.values()
        for value in (
            order["total"],
            order["placed_on"],
            *(p[key] for p in order["parcels"] for key in ("tracking_number", "promised_date")),
        )
    }
    return [value for value in sorted(others - own) if shows(text, value)]


def values_of(order: Mapping[str, Any]) -> list[Any]:
    values = [order[key] for key in ("total", "address", "placed_on", "note") if key in order]
    values.append(STATUS[order["status"]])
    values += [item[key] for item in order["items"] for key in ("name", "price")]
    for parcel in order["parcels"]:
        values += [parcel[key] for key in ("tracking_number", "carrier", "promised_date")]
        values.append(f"{parcel['days']} days")
    return values


def shows(text: str, value: Any) -> bool:
    """Whether a value stands in a text by itself, a day or an amount in any usual wording."""
    return any(
        re.search(rf"(?<![\w.,-]){re.escape(form)}(?![\w-]|[.,]\d)", text, re.IGNORECASE)
        for form in forms(value)
    )


def forms(value: Any) -> list[str]:
    if isinstance(value, date) or re.fullmatch(r"\d{4}-\d\d-\d\d", str(value)):
        day = date.fromisoformat(str(value))
        return [
            day.isoformat(),
            *(f"{day:{month}} {day.day}" for month in ("%B", "%b")),
            *(f"{day.day} {day:{month}}" for month in ("%B", "%b")),
        ]
    if isinstance(value, float):
        return [f"{value:.2f}", f"{value:,.2f}"]
    text = str(value)
    if re.fullmatch(r"[1-9]\d{3,}", text):
        return [text, f"{int(text):,}"]
    return [text]
