"""A turn from the question to the answer, with the model's part written by the test."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage

from agent.history.langchain import check
from agent.settings import Settings
from tests.scripted import Scripted, answering, calling
from tests.turns import (
    DEMO_ORDERS,
    ask,
    cards_of,
    config_of,
    counting,
    failing,
    finishing,
    graph_of,
    question,
    results_of,
    told,
    watch,
)
from tools.database import Database
from tools.registry import TOOLS

pytestmark = pytest.mark.on_both("long")

BOTH = [("c1", "get_delivery", {"order_id": "A"}), ("c2", "get_delivery", {"order_id": "B"})]


async def test_each_of_two_orders_is_answered_with_its_own_data(database: Database) -> None:
    model = Scripted(
        calling(*BOTH),
        answering(("c2", "{order_id}: {days} {parcels}"), ("c1", "{order_id}: {days} {parcels}")),
    )
    state = await ask(graph_of(model, database=database), "When do A and B arrive?")
    told = [m.tool_call_id for m in state["messages"] if isinstance(m, ToolMessage)]
    assert told == ["c1", "c2"]
    by_call = {card["call_id"]: card for card in state["answer"]["cards"]}
    assert (by_call["c1"]["values"]["days"], by_call["c2"]["values"]["days"]) == (2, 5)
    assert by_call["c1"]["text"].startswith("A: 2 ")
    assert by_call["c2"]["text"].startswith("B: 5 ")


async def test_the_last_message_is_what_the_customer_reads(database: Database) -> None:
    model = Scripted(calling(*BOTH), answering(opening="Here you are."))
    state = await ask(graph_of(model, database=database), "When do A and B arrive?")
    assert state["messages"][-1].text == state["answer"]["message"]
    assert state["answer"]["message"].startswith("Here you are.\n")


async def test_the_draft_of_the_model_is_never_streamed_as_a_message(database: Database) -> None:
    model = Scripted(calling(*BOTH), answering(opening="Here you are."))
    graph = graph_of(model, database=database)
    parts: Any = graph.astream(question("A, B?"), config_of(), stream_mode="messages")
    streamed = [message.text async for message, _ in parts]
    assert not [text for text in streamed if '"cards"' in text]


async def test_ids_that_start_again_in_each_round_keep_their_results_apart(
    database: Database,
) -> None:
    model = Scripted(
        calling(("call_0", "get_order", {"order_id": "A"})),
        calling(("call_0", "get_order", {"order_id": "B"})),
        calling(("call_0", "get_delivery", {"order_id": "A"})),
        answering(("call_0", "{order_id}: {parcels}")),
    )
    state = await ask(graph_of(model, database=database), "Tell me about A and B.")
    assert results_of(state) == {
        "1/call_0": ("A", "ok"),
        "2/call_0": ("B", "ok"),
        "3/call_0": ("A", "ok"),
    }
    said = [(output["order_id"], "parcels" in output["data"]) for _, output in told(model.last)]
    assert said == [("A", False), ("B", False), ("A", True)]
    cards = [(card["tool"], card["subject"], card["source"]) for card in state["answer"]["cards"]]
    assert cards == [
        ("get_delivery", "A", "model"),
        ("get_order", "A", "default"),
        ("get_order", "B", "default"),
    ]


async def test_ids_that_start_again_in_each_turn_keep_their_results_apart(
    database: Database,
) -> None:
    model = Scripted(
        calling(("call_0", "get_order", {"order_id": "A"})),
        answering(("call_0", "{order_id} {status}")),
        calling(("call_0", "get_order", {"order_id": "B"})),
        answering(("call_0", "{order_id} {status}")),
    )
    graph = graph_of(model, database=database)
    first = await ask(graph, "And A?")
    second = await ask(graph, "And B?")
    assert cards_of(first)["call_0"]["subject"] == "A"
    assert cards_of(second)["call_0"]["subject"] == "B"
    assert results_of(second) == {"1/call_0": ("B", "ok")}
    assert [output["order_id"] for _, output in told(model.last)] == ["A", "B"]


WRONG = [
    pytest.param({"order_id": "A-17", "customer_id": "C-1002"}, id="one argument too many"),
    pytest.param({"order_id": " a-17 ", "limit": 3}, id="an id that needs normalising"),
    pytest.param({"order": "A-17"}, id="another name"),
    pytest.param({"order_id": ["A-17"]}, id="a list"),
    pytest.param({"order_id": {"id": "A-17"}}, id="an object"),
]


@pytest.mark.parametrize("arguments", WRONG)
async def test_arguments_corrected_in_the_next_round_leave_the_good_card_alone(
    arguments: dict[str, Any], database: Database
) -> None:
    model = Scripted(
        calling(("c1", "get_order", arguments)),
        calling(("c2", "get_order", {"order_id": "A-17"})),
        answering(("c2", "{order_id} {status}")),
    )
    state = await ask(graph_of(model, database=database), "And A-17?")
    assert results_of(state)["1/c1"][1] == "invalid_arguments"
    assert [card["call_id"] for card in state["answer"]["cards"]] == ["c2"]
    assert state["answer"]["message"] == "A-17 confirmed"


async def test_a_failure_tried_again_with_success_leaves_the_good_card_alone(
    database: Database,
) -> None:
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A"}), ("c2", "get_order", {"order_id": "B"})),
        calling(("c3", "get_order", {"order_id": "B"})),
        answering(("c2", ""), ("c1", "{order_id} {status}"), ("c3", "{order_id} {status}")),
    )
    tools = failing(TOOLS, ["c2"])
    state = await ask(graph_of(model, tools=tools, database=database), "A and B?")
    assert results_of(state)["1/c2"] == ("B", "service_error")
    assert list(cards_of(state)) == ["c3", "c1"] or list(cards_of(state)) == ["c1", "c3"]


async def test_another_order_found_later_does_not_make_a_failure_good(database: Database) -> None:
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A"}), ("c2", "get_order", {"ids": "A-18"})),
        calling(("c3", "get_order", {"order_id": "B"}), ("c4", "get_order", {"order_id": "A"})),
        answering(),
    )
    tools = failing(TOOLS, ["c1", "c4"])
    state = await ask(graph_of(model, tools=tools, database=database), "A, A-18 and B?")
    assert set(cards_of(state)) == {"c2", "c3", "c4"}
    assert "could not check order A:" in state["answer"]["message"]


async def test_another_tool_does_not_make_a_failure_good(database: Database) -> None:
    model = Scripted(
        calling(("c1", "get_delivery", {"order_id": "A"})),
        calling(("c2", "get_order", {"order_id": "A"})),
        answering(),
    )
    tools = failing(TOOLS, ["c1"])
    state = await ask(graph_of(model, tools=tools, database=database), "When does A arrive?")
    assert list(cards_of(state)) == ["c1", "c2"]


async def test_a_foreign_order_cannot_be_told_from_one_that_does_not_exist(
    database: Database,
) -> None:
    seen = {}
    for order_id in ("D-300", "D-999"):
        model = Scripted(
            calling(
                ("c1", "get_order", {"order_id": order_id}),
                ("c2", "get_delivery", {"order_id": order_id}),
                ("c3", "compare_orders", {"order_ids": ["A", order_id]}),
            ),
            answering(("c1", "{order_id} {status}")),
        )
        graph = graph_of(model, tools=finishing(TOOLS, ["c3", "c2", "c1"]), database=database)
        turn = await watch(graph, f"And {order_id}?", order_id)
        assert {kind for _, kind in results_of(turn.state).values()} == {"not_found"}
        everything = (
            turn.steps,
            turn.events,
            turn.state["answer"],
            told(model.requests[1]),
            [m.text for m in turn.state["messages"]],
            [_untimed(result) for result in turn.state["results"].values()],
        )
        seen[order_id] = repr(everything).replace(order_id, "ID")
    assert seen["D-300"] == seen["D-999"]


def _untimed(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if not name.endswith("_at")}


@pytest.mark.parametrize("limit", range(1, 13))
async def test_a_model_that_never_stops_calling_is_stopped_with_an_answer(
    limit: int, database: Database
) -> None:
    runs: list[str] = []
    rounds = [calling((f"c{n}", "get_order", {"order_id": "A"})) for n in range(20)]
    model = Scripted(*rounds)
    graph = graph_of(
        model,
        tools=counting(TOOLS, runs),
        database=database,
        settings=Settings(model="offline", max_rounds=limit),
    )
    state = await ask(graph, "And A?")
    assert len(model.requests) == len(runs) == limit
    assert state["answer"]["status"] == "answered"
    assert "too many steps" in state["answer"]["message"]
    assert list(cards_of(state)) == [f"c{limit - 1}"]
    check(state["messages"])
    assert len(told(state["messages"])) == limit


async def test_a_thread_goes_on_after_a_turn_that_reached_its_limit(database: Database) -> None:
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A"})),
        calling(("c1", "get_order", {"order_id": "B"})),
        answering(("c1", "{order_id} {status}")),
    )
    graph = graph_of(model, database=database, settings=Settings(model="offline", max_rounds=1))
    await ask(graph, "And A?")
    state = await ask(graph, "And B?")
    assert cards_of(state)["c1"]["subject"] == "B"
    check(model.last)


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_calls_beyond_the_limit_are_answered_and_not_made(
    limit: int, database: Database
) -> None:
    runs: list[str] = []
    model = Scripted(
        calling(*((f"c{n}", "get_order", {"order_id": o}) for n, o in enumerate("ABABA"))),
        calling(("c9", "get_order", {"order_id": "A-17"})),
        answering(),
    )
    graph = graph_of(
        model,
        tools=counting(TOOLS, runs),
        database=database,
        settings=Settings(model="offline", max_calls=limit),
    )
    state = await ask(graph, "All of them?")
    assert sorted(runs) == [*(f"c{n}" for n in range(limit)), "c9"]
    assert [id_ for id_, _ in told(model.requests[1])] == ["c0", "c1", "c2", "c3", "c4"]
    kinds = [kind for _, kind in results_of(state).values()]
    assert sorted(kinds) == ["not_executed"] * (5 - limit) + ["ok"] * (limit + 1)
    check(model.last)


async def test_a_call_that_was_beyond_the_limit_and_is_asked_again_is_made(
    database: Database,
) -> None:
    model = Scripted(
        calling(*BOTH),
        calling(("c3", "get_delivery", {"order_id": "B"})),
        answering(),
    )
    settings = Settings(model="offline", max_calls=1)
    state = await ask(graph_of(model, database=database, settings=settings), "A and B?")
    assert list(cards_of(state)) == ["c1", "c3"]


async def test_every_request_repeats_the_whole_conversation(database: Database) -> None:
    model = Scripted(calling(*BOTH), answering(), answering(opening="You are welcome."))
    graph = graph_of(model, database=database)
    await ask(graph, "When do A and B arrive?")
    await ask(graph, "Thank you!")
    kinds = [message.type for message in model.last]
    assert kinds == ["human", "ai", "tool", "tool", "ai", "human"]


async def test_a_question_that_is_empty_or_endless_is_refused_and_not_kept(
    database: Database,
) -> None:
    model = Scripted(answering(opening="Hello."))
    graph = graph_of(model, database=database)
    empty = await ask(graph, "  \n ")
    endless = await ask(graph, "A" * 100_000)
    assert [s["answer"]["error"]["kind"] for s in (empty, endless)] == [
        "empty_question",
        "long_question",
    ]
    state = await ask(graph, "Hello?")
    assert state["answer"]["message"] == "Hello."
    assert [m.text for m in model.last if isinstance(m, HumanMessage)] == ["Hello?"]


async def test_a_run_without_a_new_message_forgets_nothing(database: Database) -> None:
    model = Scripted(calling(*BOTH), answering(), answering())
    graph = graph_of(model, database=database)
    before = await ask(graph, "When do A and B arrive?")
    await graph.ainvoke({"messages": []}, config_of())
    after = await ask(graph, "Thank you!")
    kept = [message.id for message in before["messages"]]
    assert [message.id for message in after["messages"]][: len(kept)] == kept


async def test_a_message_that_a_client_sends_twice_is_not_lost(database: Database) -> None:
    model = Scripted(answering(opening="Hello."), answering(opening="Hello."))
    graph = graph_of(model, database=database)
    for _ in range(2):
        state = await graph.ainvoke({"messages": [HumanMessage("Hello?", id="same")]}, config_of())
    assert [m.text for m in state["messages"] if isinstance(m, HumanMessage)] == ["Hello?"]


async def test_two_messages_of_one_customer_are_one_question(database: Database) -> None:
    model = Scripted(calling(*BOTH), answering(opening="About A and B:"))
    graph = graph_of(model, database=database)
    messages: Any = {"messages": [HumanMessage("When does A arrive?"), HumanMessage("And B-21?")]}
    await graph.ainvoke(messages, config_of())
    state = (await graph.aget_state(config_of())).values
    assert set(cards_of(state)) == {"c1", "c2"}
    assert state["begun"]["number"] == 1


async def test_the_window_of_a_long_conversation_is_whole_turns(database: Database) -> None:
    turns = 30
    lines = [
        line
        for n in range(turns)
        for line in (calling((f"c{n}", "get_order", {"order_id": "A"})), answering())
    ]
    model = Scripted(*lines)
    graph = graph_of(model, database=database)
    kept = []
    for n in range(turns):
        state = await ask(graph, f"Question {n}: how is A?")
        check(model.last)
        check(state["messages"])
        asked = [m.text for m in state["messages"] if isinstance(m, HumanMessage)]
        assert asked[-1].startswith(f"Question {n}")
        kept.append(len(asked))
    assert kept == [*range(1, 25), *range(12, 18)]
    assert state["begun"]["number"] == turns


async def test_a_request_begins_with_the_one_before_so_that_vendors_need_not_read_it_again(
    database: Database,
) -> None:
    model = Scripted(*(answering(opening="Hello.") for _ in range(40)))
    graph = graph_of(model, database=database)
    before: list[object] = []
    longer = 0
    for n in range(40):
        await ask(graph, f"Hello, {n}?")
        sent: list[object] = [m.text for m in model.last if not isinstance(m, SystemMessage)]
        longer += sent[: len(before)] == before
        before = sent
    assert longer == 38


async def test_our_tools_find_the_shop_of_the_settings_when_only_tools_are_given() -> None:
    model = Scripted(calling(("c1", "get_order", {"order_id": "A"})), answering())
    state = await ask(graph_of(model, tools=TOOLS), "And A?")
    assert results_of(state) == {"1/c1": ("A", "ok")}


async def test_without_a_database_there_is_no_journal_and_all_else_works(
    database: Database,
) -> None:
    model = Scripted(calling(*BOTH), answering(), answering(("c1", "{order_id} {parcels}")))
    graph = graph_of(model)
    state = await ask(graph, "When do A and B arrive?")
    assert set(cards_of(state)) == {"c1", "c2"}
    later = await ask(graph, "And the first one again?")
    assert later["answer"]["cards"] == []
    assert later["answer"]["message"]


async def test_the_status_words_of_a_card_are_the_shops(database: Database) -> None:
    model = Scripted(
        calling(*((o, "get_order", {"order_id": o}) for o in ("A", "B", "A-17", "A-18", "B-21"))),
        answering(*((o, "{order_id} {status}") for o in ("B-21", "A-18", "A-17", "B", "A"))),
    )
    state = await ask(graph_of(model, database=database), "How are all my orders?")
    assert list(cards_of(state)) == ["B-21", "A-18", "A-17", "B", "A"]
    for order_id, card in cards_of(state).items():
        assert card["values"] == {"order_id": order_id, "status": DEMO_ORDERS[order_id]["status"]}
