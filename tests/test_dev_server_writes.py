"""Writes through a real `langgraph dev`: confirmed by id, done once, whatever a client sends."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError

from agent.approvals import Approvals
from agent.desk import SqlDesk
from agent.store import open_database
from tests import dev_server, responses_server
from tests.dev_server import client_of, said, step, thread_of
from tests.ledgers import events, ledger_of, refunded, write_of
from tests.responses_server import ResponsesServer, good, held
from tests.scripted import answering, calling
from tests.turns import results_of
from tools.database import Database
from tools.shop.sql import SqlShop

Call = tuple[str, str, dict[str, Any]]

READ: Call = ("g", "get_order", {"order_id": "A"})
CANCEL: Call = ("c", "cancel_order", {"order_id": "A-17", "reason": "too late"})
HAND_OVER: Call = ("e", "escalate_to_human", {"summary": "Wants to talk about a gift."})
YES = {"decisions": [{"type": "approve"}]}
NO = {"decisions": [{"type": "reject", "message": "not now"}]}
HELLO = answering(opening="Hello.")
DONE = ["confirmed", "claimed", "done"]


def refund(order_id: str = "B", amount: str = "10", currency: str = "USD") -> Call:
    about = {"order_id": order_id, "amount": amount, "currency": currency, "reason": "broken"}
    return ("r", "request_refund", about)


@dataclass(frozen=True)
class Talk:
    """A thread on the server, whose model says what a test wrote."""

    client: LangGraphClient
    vendor: ResponsesServer
    database: Database
    thread: str

    async def run(self, *lines: AIMessage, **options: Any) -> Any:
        """A run with these lines of the model; the state it ends with."""
        self.vendor.script(*map(step, lines))
        return await self.client.runs.wait(self.thread, "support_agent", **options)

    async def ask(self, text: str, *lines: AIMessage, **options: Any) -> Any:
        return await self.run(*lines, input=said(text), **options)

    async def answer(self, resume: Any, *lines: AIMessage, **options: Any) -> Any:
        return await self.run(*lines, command={"resume": resume}, **options)

    async def begin(self, **options: Any) -> str:
        return str(
            (await self.client.runs.create(self.thread, "support_agent", **options))["run_id"]
        )

    async def over(self, run: str, *still: str) -> str:
        """What became of a run, once it is `still` that no more; "gone" where nothing is kept."""
        while True:
            every = {r["run_id"]: r["status"] for r in await self.client.runs.list(self.thread)}
            if (status := every.get(run, "gone")) not in (still or ("pending", "running")):
                return status
            await asyncio.sleep(0.05)

    async def pauses(self) -> dict[str, Any]:
        state: Any = await self.client.threads.get_state(self.thread)
        return {pause["value"]["call_id"]: pause for pause in state["interrupts"]}

    async def decision(self, **words: str) -> dict[str, Any]:
        """Answers in our own form, by interrupt id."""
        pauses = await self.pauses()
        return {pauses[id_]["id"]: own(pauses[id_], word) for id_, word in words.items()}

    async def effects(self) -> tuple[str, list[tuple[str, str]]]:
        """What the shop says: the state of order A-17, and what was refunded."""
        order = await SqlShop(self.database).order("A-17")
        assert order is not None
        return order.status, await refunded(self.database)

    def told(self) -> dict[str, Any]:
        """The results in the newest request to the model, by call id."""
        items = self.vendor.bodies[-1]["input"]
        outputs = [item for item in items if item["type"] == "function_call_output"]
        return {item["call_id"]: json.loads(item["output"]) for item in outputs}


def own(pause: Mapping[str, Any], word: str) -> dict[str, Any]:
    return {"decision": word, **{name: pause["value"][name] for name in ("call_id", "digest")}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def deployment(folder: Path) -> Iterator[tuple[str, ResponsesServer]]:
    with (
        responses_server.serving() as vendor,
        dev_server.serving(folder, **vendor.variables()) as url,
    ):
        yield url, vendor


@pytest.fixture
async def talk(deployment: tuple[str, ResponsesServer], folder: Path) -> AsyncIterator[Talk]:
    """A thread in a shop in which nothing was changed yet; every request to the model was whole."""
    url, vendor = deployment
    database = open_database(f"sqlite:///{folder / 'shop.db'}")
    await database.prepare()
    with closing(sqlite3.connect(folder / "shop.db", isolation_level=None)) as db:
        for table in ("actions", "audit", "refunds"):
            db.execute(f"DELETE FROM {table}")
        db.execute("UPDATE orders SET status = 'confirmed' WHERE order_id = 'A-17'")
    vendor.behave(good)
    vendor.asked.clear()
    vendor.requests.clear()
    async with client_of(url) as client:
        yield Talk(client, vendor, database, await thread_of(client))
    await database.close()
    for body in vendor.bodies:
        kinds = ("function_call", "function_call_output")
        calls, outputs = ([i["call_id"] for i in body["input"] if i["type"] == k] for k in kinds)
        assert calls == outputs


@contextmanager
def nobody_writes(folder: Path) -> Iterator[None]:
    """While the block runs, whoever wants to write to the database waits."""
    with closing(sqlite3.connect(folder / "shop.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.rollback()


ORDERS = [
    (order, together, [pytest.mark.long][: order[0] == "r" or not together])
    for order in ("cr", "rc")
    for together in (True, False)
]


@pytest.mark.parametrize(
    ("order", "together"), [pytest.param(*both, marks=marks) for *both, marks in ORDERS]
)
async def test_one_is_confirmed_and_the_other_rejected_by_interrupt_id(
    order: str, together: bool, talk: Talk
) -> None:
    await talk.ask("Cancel A-17, refund 10 USD of B, and A?", calling(READ, CANCEL, refund()))
    asked_at = datetime.now(UTC).isoformat()
    assert set(await talk.pauses()) == {"c", "r"}
    words = dict(zip(order, ("confirm", "reject"), strict=True))
    for each in [words] if together else [{id_: word} for id_, word in words.items()]:
        state = await talk.answer(await talk.decision(**each), answering())
    yes = order[0]
    assert results_of(state) == {
        "1/g": ("A", "ok"),
        "1/c": ("A-17", "ok" if yes == "c" else "rejected"),
        "1/r": ("B", "ok" if yes == "r" else "rejected"),
    }
    assert state["results"]["1/g"]["finished_at"] < asked_at  # it is not read again
    cards = {card["call_id"]: card["text"] for card in state["answer"]["cards"]}
    assert {id_: "not done" in text for id_, text in cards.items() if id_ != "g"} == {
        yes: False,
        order[1]: True,
    }
    done = ("cancelled", []) if yes == "c" else ("confirmed", [("B", "10")])
    assert await talk.effects() == done


@pytest.mark.long
async def test_an_answer_for_two_that_names_neither_leaves_both(talk: Talk) -> None:
    await talk.ask("Cancel A-17 and refund 10 USD of B", calling(CANCEL, refund()))
    before = await talk.pauses()
    for answer in (YES, own(before["c"], "confirm"), {"c": own(before["c"], "confirm")}):
        with pytest.raises(Exception, match="interrupt id"):
            await talk.answer(answer)
    assert await talk.pauses() == before
    await talk.answer(await talk.decision(c="confirm"))
    await talk.answer(YES, answering())  # now it can mean only one
    assert await talk.effects() == ("cancelled", [("B", "10")])


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(YES, "ok", id="approve"),
        pytest.param({"type": "approve"}, "ok", id="one decision", marks=pytest.mark.long),
        pytest.param(NO, "rejected", id="reject", marks=pytest.mark.long),
    ],
)
async def test_one_pending_is_answered_as_inbox_interfaces_do(
    answer: Any, kind: str, talk: Talk
) -> None:
    """Some of them name the newest checkpoint too."""
    await talk.ask("Refund 10 USD of B", calling(refund()))
    for refused in ({"type": "edit", "edited_action": {}}, {"type": "respond", "message": "done"}):
        await talk.answer({"decisions": [refused]})
        assert "nothing was done" in (await talk.pauses())["r"]["value"]["problem"]
    head: Any = (await talk.client.threads.get_state(talk.thread))["checkpoint"]
    state = await talk.answer(answer, answering(), checkpoint_id=head["checkpoint_id"])
    assert results_of(state) == {"1/r": ("B", kind)}
    assert (await talk.effects())[1] == ([("B", "10")] if kind == "ok" else [])
    assert kind == "ok" or "not now" in talk.told()["r"]["error"]["message"]


@pytest.mark.long
async def test_an_unclear_answer_executes_nothing_and_the_pause_stays(talk: Talk) -> None:
    await talk.ask("Refund 10 USD of B", calling(refund()))
    pause = (await talk.pauses())["r"]
    yes = own(pause, "confirm")
    unclear: Sequence[Any] = (
        *("yes, do it", {}, None, {"0" * 32: yes}, {"r": yes}, {**yes, "digest": "0" * 64}),
        *({**yes, "call_id": "c"}, {pause["id"]: "yes"}, {pause["id"]: None}),
    )
    for answer in unclear:
        await talk.answer(answer)
        assert set(await talk.pauses()) == {"r"}
    assert not await events(talk.database)
    await talk.answer(await talk.decision(r="confirm"), answering())
    assert (await talk.effects())[1] == [("B", "10")]


STRATEGIES = ("reject", "enqueue", "interrupt", "rollback")


@pytest.mark.parametrize(
    "strategy", [pytest.param(s, marks=[pytest.mark.long][: s != "reject"]) for s in STRATEGIES]
)
async def test_a_new_message_withdraws_what_waits(strategy: Any, talk: Talk) -> None:
    """A pause is no run that goes on, so all strategies are one."""
    await talk.ask("Cancel A-17 and refund 10 USD of B", calling(CANCEL, refund()))
    answer = await talk.decision(c="confirm", r="confirm")
    state = await talk.ask("hello?", HELLO, multitask_strategy=strategy)
    assert state["answer"]["message"].count("withdrawn") == 2
    assert [told["error"]["kind"] for told in talk.told().values()] == ["not_executed"] * 2
    await talk.answer(answer)  # too late
    assert await talk.effects() == ("confirmed", [])
    assert await events(talk.database) == ["withdrawn"] * 2


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["cancel", *STRATEGIES])
async def test_a_run_broken_off_at_a_write_leaves_it_undone_or_done_once(
    strategy: Any, talk: Talk, folder: Path
) -> None:
    await talk.ask("Refund 10 USD of B", calling(refund()))
    resume = {"resume": await talk.decision(r="confirm")}
    talk.vendor.script(step(HELLO), step(HELLO))
    with nobody_writes(folder):
        run = await talk.begin(command=resume)
        await talk.over(run, "pending")
        if strategy == "cancel":
            await talk.client.runs.cancel(talk.thread, run, wait=True)
        elif strategy == "reject":
            with pytest.raises(ConflictError):
                await talk.begin(input=said("hello"), multitask_strategy=strategy)
        else:
            await talk.begin(input=said("hello"), multitask_strategy=strategy)
        if strategy in ("interrupt", "rollback"):
            await talk.over(run)
    waited_for = strategy in ("enqueue", "reject")
    assert await talk.over(run) == {"rollback": "gone"}.get(
        strategy, "success" if waited_for else "interrupted"
    )
    for each in await talk.client.runs.list(talk.thread):
        await talk.over(each["run_id"])
    state = await talk.ask("hello?", HELLO)
    assert state["answer"]["status"] == "answered"
    assert talk.told()["r"]["status"] == ("ok" if waited_for else "error")
    assert (await talk.effects())[1] == ([("B", "10")] if waited_for else [])


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["cancel", "interrupt", "rollback"])
async def test_a_run_broken_off_behind_a_write_is_told_of_by_the_next_turn(
    strategy: Any, talk: Talk
) -> None:
    await talk.ask("Refund 10 USD of B", calling(refund()))
    talk.vendor.behave(held, good)
    talk.vendor.script(step(HELLO), step(HELLO))
    run = await talk.begin(command={"resume": await talk.decision(r="confirm")})
    assert await asyncio.to_thread(talk.vendor.asked.wait, 30)
    if strategy == "cancel":
        await talk.client.runs.cancel(talk.thread, run, wait=True)
        state = await talk.ask("hello?", HELLO)
    else:
        run = await talk.begin(input=said("hello"), multitask_strategy=strategy)
        state = await talk.client.runs.join(talk.thread, run)
    assert "Refund of $10.00 for order B: done." in state["answer"]["message"]
    assert talk.told()["r"]["status"] == "ok"
    assert await events(talk.database) == DONE


@pytest.mark.long
async def test_ten_clients_that_send_the_same_answer_refund_once(talk: Talk) -> None:
    await talk.ask("Refund 10 USD of B", calling(refund()))
    resume = {"resume": await talk.decision(r="confirm")}
    talk.vendor.script(step(answering()))
    runs = [await talk.begin(command=resume) for _ in range(10)]
    assert {await talk.over(run) for run in runs} == {"success"}
    assert (await talk.effects())[1] == [("B", "10")]
    assert await events(talk.database) == DONE


@pytest.mark.long
async def test_two_threads_that_ask_for_the_same_refund_get_one(talk: Talk) -> None:
    talks = [talk, replace(talk, thread=await thread_of(talk.client))]
    for each in talks:
        await each.ask("Refund 10 USD of B", calling(refund()))
    resumes = [{"resume": await each.decision(r="confirm")} for each in talks]
    talk.vendor.script(step(answering()), step(answering()))
    runs = [await t.begin(command=c) for t, c in zip(talks, resumes, strict=True)]
    states: list[Any] = [
        await t.client.runs.join(t.thread, run) for t, run in zip(talks, runs, strict=True)
    ]
    repeated = [state["results"]["1/r"]["data"]["repeated"] for state in states]
    assert sorted(repeated) == [False, True]
    assert (await talk.effects())[1] == [("B", "10")]


def _errand(fence: str) -> dict[str, Any]:
    """What the graph sends to its step `call`, as a client may forge it."""
    _, name, arguments = refund()
    call = {"call_id": "f", "item_id": "", "name": name, "arguments": arguments}
    turn = {"number": 1, "customer": "C-1001", "fence": fence, "language": "en"}
    return {"calls": [{**call, "round": 1, "response_id": ""}], "begun": turn}


@pytest.mark.long
async def test_no_command_of_a_client_writes_without_a_question_that_was_put(talk: Talk) -> None:
    await talk.ask("hello", HELLO)
    await talk.answer(YES)  # to nothing
    values: Any = (await talk.client.threads.get_state(talk.thread))["values"]
    asking = said("Refund 10 USD of B")
    forged: Sequence[dict[str, Any]] = (
        *({"update": asking, "resume": YES}, {"goto": "model", "update": asking, "resume": YES}),
        {"goto": {"node": "call", "input": _errand(values["begun"]["fence"])}},
        {"goto": {"node": "call", "input": _errand(values["begun"]["fence"])}, "resume": YES},
        {"goto": {"node": "call", "input": _errand("")}, "resume": YES},
    )
    for command in forged:
        await talk.run(calling(refund()), command=command, raise_error=False)
        assert (await talk.effects())[1] == []
    state = await talk.ask("hello?", HELLO)
    assert state["answer"]["status"] == "answered"
    await talk.ask("Refund 10 USD of B", calling(refund()), interrupt_before=["call"])
    await talk.answer(YES, answering())
    assert "claimed" not in await events(talk.database)


@pytest.mark.long
async def test_a_copy_of_a_thread_confirms_nothing(talk: Talk) -> None:
    await talk.ask("Refund 10 USD of B", calling(refund()))
    yes = await talk.decision(r="confirm")
    copied: Any = await talk.client.http.post(f"/threads/{talk.thread}/copy", json=None)
    copy = replace(talk, thread=copied["thread_id"])
    assert set(await copy.pauses()) == {"r"}
    for answer in (yes, YES):
        await copy.answer(answer, answering())
        assert (await talk.effects())[1] == []
    await talk.answer(yes, answering())
    assert (await talk.effects())[1] == [("B", "10")]


async def test_a_forged_state_tells_nothing_of_another_customers_writes(talk: Talk) -> None:
    about = {"order_id": "0456", "amount": "7", "currency": "EUR", "reason": "private"}
    foreign = write_of("request_refund", about, customer="C-1002")
    await ledger_of(talk.database).write_once(foreign)
    await talk.ask("Refund 10 USD of B", calling(refund()))
    await talk.answer(await talk.decision(r="confirm"), answering())
    opened = {"open": {"1/1/r": foreign.key(0)}}
    await talk.client.threads.update_state(talk.thread, opened)
    state = await talk.ask("hello", HELLO)
    assert state["answer"]["message"] == "Hello."
    assert talk.told()["r"]["data"]["amount"] == "10"


@pytest.mark.long
async def test_a_confirmation_is_answered_after_a_restart(tmp_path: Path) -> None:
    with responses_server.serving() as vendor:
        threads = ""
        for again in (False, True):
            with dev_server.serving(tmp_path, **vendor.variables()) as url:
                async with client_of(url) as client:
                    threads = threads or await thread_of(client)
                    database = open_database(f"sqlite:///{tmp_path / 'shop.db'}")
                    talk = Talk(client, vendor, database, threads)
                    if again:
                        await talk.answer(await talk.decision(r="confirm"), answering())
                        assert (await talk.effects())[1] == [("B", "10")]
                    else:
                        await talk.ask("Refund 10 USD of B", calling(refund()))
                    await database.close()


async def test_what_staff_approved_is_told_by_the_next_turn(talk: Talk) -> None:
    await talk.ask("Refund 120 EUR of A-18", calling(refund("A-18", "120", "EUR")))
    state = await talk.answer(await talk.decision(r="confirm"), answering())
    assert "not done yet" in state["answer"]["message"]
    assert (await talk.ask("hello?", HELLO))["answer"]["message"] == "Hello."
    assert talk.told()["r"]["error"]["kind"] == "awaiting_approval"
    approvals = Approvals(ledger_of(talk.database))
    [waiting] = await approvals.waiting()
    await approvals.decide(waiting.key, approve=True, by="sam")
    state = await talk.ask("And now?", HELLO)
    assert talk.told()["r"]["data"]["state"] == "done"
    assert state["answer"]["message"] == "Hello.\nRefund of €120.00 for order A-18: done."
    assert (await talk.effects())[1] == [("A-18", "120")]


async def test_a_thread_with_a_person_is_silent_until_it_is_given_back(talk: Talk) -> None:
    state = await talk.ask("I want a person", calling(HAND_OVER), answering())
    assert state["answer"]["status"] == "with_person"
    state = await talk.ask("Is anybody there?")  # the model has no line: it is not asked
    assert (state["answer"]["status"], state["answer"]["message"]) == ("with_person", "")
    assert state["messages"][-1]["type"] == "human"
    assert await SqlDesk(talk.database).give_back(talk.thread, by="sam", note="Sent a lamp.")
    assert (await talk.ask("Thanks!", HELLO))["answer"]["status"] == "answered"
    assert talk.told()["e"]["data"]["note"] == "Sent a lamp."


@pytest.mark.long
async def test_no_checkpoint_of_a_refund_refunds_again(talk: Talk) -> None:
    """Told again, gone on with, or answered: by old ids, or by none."""
    await talk.ask("A, and refund 10 USD of B", calling(READ, refund()))
    old = await talk.decision(r="confirm")
    await talk.answer(old, answering())
    history = await talk.client.threads.get_history(talk.thread, limit=50)
    assert len(history) > 3
    lines = [calling(refund()), *[HELLO] * 3]
    for snapshot in history:
        at = {"checkpoint_id": snapshot["checkpoint"]["checkpoint_id"]}
        resumes = ({"command": {"resume": answer}} for answer in (YES, old))
        for sent in ({"input": None}, {"input": said("Refund 10 USD of B")}, *resumes):
            await talk.run(*lines, **sent, **at)
            told = [event for event in await events(talk.database) if event != "told_again"]
            assert told == DONE
    assert (await talk.effects())[1] == [("B", "10")]
