"""What holds for any chat model holds on each way to talk to OpenAI's API, over real sockets.

The model's lines are those of a script, checked and sent as the API does; the client, the protocol
and all behind them are the product's own.
"""

import json
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from langchain_core.messages import AIMessage

from agent.approvals import Approvals
from agent.graph import Graph
from offline_model.conversation import Asked, Step
from tests.completion import FOREIGN, UNKNOWN, Call, Run, Told, holds
from tests.ledgers import ledger_of
from tests.responses_server import ResponsesServer, serving
from tests.scripted import answering, calling
from tests.strategies import LONG, SHORT, VENDORS_ID, runs
from tests.test_protocols import WAYS, settings_of
from tests.turns import (
    ask,
    cards_of,
    config_of,
    counting,
    decide,
    graph_of,
    question,
    results_of,
    watch,
)
from tools.database import Database
from tools.registry import TOOLS

pytestmark = pytest.mark.on_both("long")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server() -> Iterator[ResponsesServer]:
    with serving() as running:
        yield running


class Speaker:
    """Has the server say the lines; the graph's settings lead to it."""

    def __init__(self, way: str, server: ResponsesServer) -> None:
        self.way, self.server = way, server

    def __call__(self, *lines: AIMessage) -> tuple[dict[str, Any], Told]:
        self.server.script(*map(_step, lines))
        return {"settings": settings_of(self.way, self.server)}, self.told

    def told(self) -> list[tuple[str, dict[str, Any]]]:
        """The results in the newest request: (call id, output)."""
        body = self.server.bodies[-1]
        items = [i for i in body.get("input", []) if i.get("type") == "function_call_output"]
        messages = [m for m in body.get("messages", []) if m["role"] == "tool"]
        said = [(i["call_id"], i["output"]) for i in items]
        said += [(m["tool_call_id"], m["content"]) for m in messages]
        return [(id_, json.loads(output)) for id_, output in said]


@pytest.fixture
def speak(way: str, server: ResponsesServer) -> Speaker:
    return Speaker(way, server)


def _step(line: AIMessage) -> Step:
    calls = (Asked(c["name"], c["args"], c["id"] or "") for c in line.tool_calls)
    return Step(tuple(calls), line.text)


def _graph(speak: Speaker, database: Database, *lines: AIMessage, **options: Any) -> Graph:
    return graph_of(database=database, **speak(*lines)[0], **options)


THREE = [
    Call("call_0", "get_order", {"order_id": "A"}),
    Call("call_1", "get_order", {"order_id": "B"}),
    Call("call_2", "get_delivery", {"order_id": "A"}),
]
ORDERS = list(permutations(["call_0", "call_1", "call_2"]))
FEW, MANY = settings(SHORT, max_examples=12), settings(LONG, max_examples=200)


@pytest.mark.parametrize("finish", ORDERS)
@pytest.mark.parametrize("broken", [(), {"call_1"}, {"call_0", "call_1", "call_2"}])
async def test_every_order_of_completion(
    finish: Any, broken: Any, speak: Speaker, database: Database
) -> None:
    await holds(Run(THREE, finish, broken, spoken=["call_1"]), database, speak)


@FEW
@given(run=runs(most=12, each=VENDORS_ID))
async def test_any_order_of_completion_of_any_calls(
    run: Run, speak: Speaker, database: Database
) -> None:
    await holds(run, database, speak)


@pytest.mark.long
@MANY
@given(run=runs(each=VENDORS_ID))
async def test_any_order_of_completion_of_any_calls_at_length(
    run: Run, speak: Speaker, database: Database
) -> None:
    await holds(run, database, speak)


async def test_ids_that_start_again_in_each_round_and_turn_keep_their_results_apart(
    speak: Speaker, database: Database
) -> None:
    graph = _graph(
        speak,
        database,
        calling(("call_0", "get_order", {"order_id": "A"})),
        calling(("call_0", "get_delivery", {"order_id": "A"})),
        answering(("call_0", "{order_id}: {parcels}")),
        calling(("call_0", "get_order", {"order_id": "B"})),
        answering(("call_0", "{order_id} {status}")),
    )
    first = await ask(graph, "Tell me about A.")
    assert results_of(first) == {"1/call_0": ("A", "ok"), "2/call_0": ("A", "ok")}
    assert [card["tool"] for card in first["answer"]["cards"]] == ["get_delivery", "get_order"]
    second = await ask(graph, "And B?")
    assert results_of(second) == {"1/call_0": ("B", "ok")}
    assert cards_of(second)["call_0"]["subject"] == "B"
    assert speak.told()[-1][1]["order_id"] == "B"


async def test_nothing_runs_of_calls_that_share_an_id(speak: Speaker, database: Database) -> None:
    made: list[str] = []
    twice = calling(
        ("call_0", "get_order", {"order_id": "A"}), ("call_0", "get_order", {"order_id": "B"})
    )
    graph = _graph(
        speak,
        database,
        *[twice] * 3,
        calling(("call_0", "get_order", {"order_id": "A"})),
        answering(("call_0", "{order_id} {status}")),
        tools=counting(TOOLS, made),
    )
    state = await ask(graph, "A and B?")
    assert (made, state["answer"]["status"]) == ([], "failed")
    assert "Nothing was changed" in state["answer"]["message"]
    assert cards_of(await ask(graph, "Only A?"))["call_0"]["subject"] == "A"


async def test_a_call_corrected_in_the_next_round_leaves_one_card(
    speak: Speaker, database: Database
) -> None:
    graph = _graph(
        speak,
        database,
        calling(("call_0", "get_order", {"order": "A-17"})),
        calling(("call_1", "get_order", {"order_id": "A-17"})),
        answering(("call_1", "{order_id} {status}")),
    )
    state = await ask(graph, "And A-17?")
    assert results_of(state)["1/call_0"][1] == "invalid_arguments"
    assert list(cards_of(state)) == ["call_1"]


async def test_a_foreign_order_cannot_be_told_from_one_that_does_not_exist(
    speak: Speaker, database: Database
) -> None:
    seen = []
    for order_id in (FOREIGN, UNKNOWN):
        graph = _graph(
            speak,
            database,
            calling(("call_0", "get_order", {"order_id": order_id})),
            answering(("call_0", "{order_id} {status}")),
        )
        turn = await watch(graph, f"And {order_id}?", order_id)
        everything = (turn.steps, turn.events, turn.state["answer"], speak.told())
        seen.append(repr(everything).replace(order_id, "ID"))
    assert seen[0] == seen[1]


CANCEL: tuple[str, str, dict[str, Any]] = (
    "c1",
    "cancel_order",
    {"order_id": "A-17", "reason": "late"},
)
REFUND: tuple[str, str, dict[str, Any]] = (
    "c2",
    "request_refund",
    {"order_id": "A-18", "amount": "120", "currency": "EUR", "reason": "broken"},
)


async def test_one_write_is_confirmed_the_other_rejected_and_both_are_told(
    speak: Speaker, database: Database
) -> None:
    graph = _graph(speak, database, calling(CANCEL, REFUND), answering(), answering(opening="Hi."))
    await graph.ainvoke(question("Cancel A-17 and refund A-18"), config_of())
    state = await decide(graph, c2="reject")
    state = await decide(graph, c1="confirm")
    assert results_of(state) == {"1/c1": ("A-17", "ok"), "1/c2": ("A-18", "rejected")}
    assert [(id_, output["status"]) for id_, output in speak.told()] == [
        ("c1", "ok"),
        ("c2", "error"),
    ]
    assert (await ask(graph, "Thanks"))["answer"]["message"] == "Hi."


async def test_a_message_while_confirmations_wait_closes_every_call_before_it(
    speak: Speaker, database: Database
) -> None:
    lines = [calling(CANCEL, REFUND), answering(opening="Hi."), answering(opening="Hi.")]
    graph = _graph(speak, database, *lines)
    await graph.ainvoke(question("Cancel A-17 and refund A-18"), config_of())
    state = await ask(graph, "hello?")
    assert [id_ for id_, _ in speak.told()] == ["c1", "c2"]
    assert state["answer"]["message"].count("withdrawn") == 2
    assert (await ask(graph, "Thanks"))["answer"]["message"] == "Hi."


async def test_what_staff_decides_later_takes_the_place_of_what_the_model_was_told(
    speak: Speaker, database: Database
) -> None:
    lines = [calling(REFUND), *[answering(opening="Hi.") for _ in range(4)]]
    graph = _graph(speak, database, *lines)
    await graph.ainvoke(question("Refund A-18"), config_of())
    await decide(graph, c2="confirm")
    await ask(graph, "hello?")
    approvals = Approvals(ledger_of(database))
    [waiting] = await approvals.waiting()
    await approvals.decide(waiting.key, approve=True, by="sam")
    state = await ask(graph, "And now?")
    [(id_, output)] = speak.told()
    assert (id_, output["data"]["state"]) == ("c2", "done")
    assert "Refund of €120.00 for order A-18: done." in state["answer"]["message"]
    assert (await ask(graph, "Thanks"))["answer"]["message"] == "Hi."
