"""What holds for any chat model holds through a real `langgraph dev`, on each protocol."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph_sdk.client import LangGraphClient

from tests import dev_server, responses_server
from tests.dev_server import client_of, said, step, thread_of
from tests.responses_server import ResponsesServer
from tests.scripted import answering, calling
from tests.turns import cards_of, results_of

WAYS = {
    "whole": {},
    "chained": {"SUPPORT_STORE_RESPONSES": "true"},
    "chat": {"SUPPORT_OPENAI_API": "chat"},
}
ORDERS = ("A", "B", "A-17", "A-18", "B-21")


@dataclass(frozen=True)
class Deployed:
    """A dev server whose model says what a test wrote."""

    client: LangGraphClient
    vendor: ResponsesServer

    async def ask(self, thread: str, text: str, *lines: AIMessage) -> Any:
        if lines:
            self.vendor.script(*map(step, lines))
        return await self.client.runs.wait(thread, "support_agent", input=said(text))


LATER = [pytest.param(way, marks=pytest.mark.long) for way in ("chained", "chat")]


@pytest.fixture(scope="module", params=["whole", *LATER])
def deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, ResponsesServer]]:
    folder: Path = tmp_path_factory.mktemp("server")
    with (
        responses_server.serving() as vendor,
        dev_server.serving(folder, **vendor.variables(**WAYS[request.param])) as url,
    ):
        yield url, vendor


@pytest.fixture
async def deployed(deployment: tuple[str, ResponsesServer]) -> AsyncIterator[Deployed]:
    url, vendor = deployment
    async with client_of(url) as client:
        yield Deployed(client, vendor)


def _calls(order_ids: Sequence[str]) -> AIMessage:
    named = ((f"call_{n}", "get_order", {"order_id": id_}) for n, id_ in enumerate(order_ids))
    return calling(*named)


def _told(body: Any) -> list[Any]:
    """The results in a request, whichever protocol it is of."""
    items = [i for i in body.get("input", []) if i.get("type") == "function_call_output"]
    told = [m for m in body.get("messages", []) if m["role"] == "tool"]
    return items or [{"output": m["content"]} for m in told]


async def test_each_order_has_its_own_data_and_the_next_turn_may_use_the_same_ids(
    deployed: Deployed,
) -> None:
    thread = await thread_of(deployed.client)
    for order_ids in (ORDERS, ORDERS[::-1]):
        draft = answering(
            *((f"call_{n}", "{order_id} {status} {total}") for n in range(len(ORDERS)))
        )
        state = await deployed.ask(thread, f"And {order_ids}?", _calls(order_ids), draft)
        cards = cards_of(state)
        for number, order_id in enumerate(order_ids):
            assert cards[f"call_{number}"]["subject"] == order_id
            assert cards[f"call_{number}"]["source"] == "model"
        outputs = [item["output"] for item in _told(deployed.vendor.bodies[-1])]
        assert [json.loads(o)["order_id"] for o in outputs[-len(ORDERS) :]] == list(order_ids)


async def test_nothing_runs_of_calls_that_share_an_id(deployed: Deployed) -> None:
    thread = await thread_of(deployed.client)
    twice = calling(
        ("call_0", "get_order", {"order_id": "A"}), ("call_0", "get_order", {"order_id": "B"})
    )
    state = await deployed.ask(thread, "A and B?", *[twice] * 3)
    assert (state["answer"]["status"], state["answer"]["cards"]) == ("failed", [])
    assert "Nothing was changed" in state["answer"]["message"]
    draft = answering(("call_0", "{order_id} {status} {total}"))
    after = await deployed.ask(thread, "Only A?", _calls(["A"]), draft)
    assert cards_of(after)["call_0"]["subject"] == "A"


async def test_a_call_corrected_in_the_next_round_leaves_one_card(deployed: Deployed) -> None:
    state = await deployed.ask(
        await thread_of(deployed.client),
        "And A-17?",
        calling(("call_0", "get_order", {"order": "A-17"})),
        calling(("call_0", "get_order", {"order_id": "A-17"})),
        answering(("call_0", "{order_id} {status} {total}")),
    )
    assert results_of(state)["1/call_0"][1] == "invalid_arguments"
    assert results_of(state)["2/call_0"] == ("A-17", "ok")
    assert len(state["answer"]["cards"]) == 1


async def test_a_foreign_order_cannot_be_told_from_one_that_does_not_exist(
    deployed: Deployed,
) -> None:
    seen = []
    for order_id in ("00123", "Z-404"):
        thread = await thread_of(deployed.client)
        state = await deployed.ask(thread, f"And {order_id}?", _calls([order_id]), answering())
        seen.append(repr(state["answer"]).replace(order_id, "ID"))
    assert seen[0] == seen[1]


async def test_prose_becomes_the_right_default_cards(deployed: Deployed) -> None:
    thread = await thread_of(deployed.client)
    state = await deployed.ask(
        thread, "A-18 and B-21?", _calls(["A-18", "B-21"]), AIMessage("B-21 came yesterday.")
    )
    assert {card["source"] for card in state["answer"]["cards"]} == {"default"}
    assert [card["subject"] for card in state["answer"]["cards"]] == ["A-18", "B-21"]
    assert "yesterday" not in state["answer"]["message"]
