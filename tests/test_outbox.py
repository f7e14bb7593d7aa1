"""Tickets on their way to the help desk: until it has them, and no harm when it gets them twice."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from agent import tables
from agent.outbox import Outbox, outbox_of
from agent.settings import Settings
from offline_model.conversation import Asked, Step
from tests.commands import finish, here, refused, start
from tests.ledgers import cancelling, refunding
from tests.loopback import LoopbackServer, running
from tests.offices import handed_over, on_ledger, overwrite, table, written
from tests.responses_server import nobody_listens, serving

TOKEN = "desk-0f3c"
Answer = Callable[["Post"], None]


class Post(BaseHTTPRequestHandler):
    server: "HelpDesk"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.posts.append((dict(self.headers), json.loads(body)))
        self.server.next_behaviour()(self)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: pytest shows what matters."""


class HelpDesk(LoopbackServer[Answer]):
    """`posts` are the headers and contents that came, oldest first."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        super().__init__(Post, answers)
        self.posts: list[tuple[dict[str, str], Any]] = []

    @property
    def variables(self) -> dict[str, str]:
        url = f"http://127.0.0.1:{self.server_port}/tickets"
        return {"SUPPORT_DESK_URL": url, "SUPPORT_DESK_TOKEN": TOKEN}


def answering(status: int, **headers: str) -> Answer:
    def answer(post: Post) -> None:
        post.send_response(status)
        for name, value in {"content-length": "0", **headers}.items():
            post.send_header(name, value)
        post.end_headers()

    return answer


def hanging_up(post: Post) -> None:
    post.close_connection = True


def silent(post: Post) -> None:
    post.server.released.wait(60)


@contextmanager
def help_desk(*answers: Answer) -> Iterator[HelpDesk]:
    with running(HelpDesk(answers)) as server:
        yield server


pytestmark = [pytest.mark.on_both("long"), pytest.mark.usefixtures("commands_on")]


def _delivered() -> list[bool]:
    return [row["delivered_at"] is not None for row in table(tables.tickets, "opened_at")]


def test_a_ticket_says_what_is_wanted_what_was_spoken_of_and_what_was_done() -> None:
    asked = here("ask", "Where is order B-21, and what is your returns policy?", "--json").json
    thread = asked["thread_id"]
    written(refunding("A", "5", thread=thread), cancelling("A", thread=thread))
    ticket = handed_over(thread)
    with help_desk(answering(201)) as desk:
        done = here("tickets", "deliver", **desk.variables)
    assert (done.code, done.out) == (0, "Everything is delivered.\n")
    [(headers, posted)] = desk.posts
    assert headers["idempotency-key"] == ticket
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert posted.pop("opened_at").endswith("+00:00")
    records = {record.pop("tool"): record for record in posted.pop("done")}
    assert posted == {
        "ticket": ticket,
        "thread_id": thread,
        "customer_id": "C-1001",
        "summary": "Wants to talk about a gift.",
        "orders": ["A", "B-21"],
    }
    assert records["request_refund"]["receipt"]["amount"] == "5"
    assert records["cancel_order"]["error"]["kind"] == "refused"
    assert {name: record["state"] for name, record in records.items()} == {
        "request_refund": "done",
        "cancel_order": "failed",
        "escalate_to_human": "done",
    }
    assert _delivered() == [True]


def test_a_call_with_a_nul_among_its_arguments_keeps_no_ticket_back() -> None:
    with serving() as server, help_desk(answering(201)) as desk:
        wrong = (Asked("get_order", {"order_id": "A-17", "note": "\0"}),)
        handed = (Asked("escalate_to_human", {"summary": "Wants a person."}),)
        server.script(Step(wrong), Step(handed), Step(text="{}"))
        here("ask", "Where is A-17? I want a person.", **server.variables(**desk.variables))
    assert [posted["orders"] for _, posted in desk.posts] == [["A-17"]]
    assert _delivered() == [True]


def test_what_is_delivered_is_not_posted_again() -> None:
    handed_over()
    with help_desk(answering(200)) as desk:
        for _ in range(2):
            assert here("tickets", "deliver", **desk.variables).code == 0
    assert len(desk.posts) == 1


@pytest.mark.parametrize("taken", [answering(204), answering(409)], ids=["204", "409"])
def test_a_ticket_that_the_desk_had_already_is_delivered(taken: Answer) -> None:
    handed_over()
    with help_desk(taken) as desk:
        assert here("tickets", "deliver", **desk.variables).code == 0
    assert _delivered() == [True]


@pytest.mark.parametrize(
    "fault",
    [
        *(answering(code) for code in (400, 401, 404, 422, 429, 500, 503)),
        answering(307, location="/elsewhere"),
        hanging_up,
    ],
)
def test_what_the_desk_did_not_take_waits_and_is_posted_again(
    fault: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    handed_over(), handed_over("thread-2")
    with help_desk(fault, answering(200)) as desk:
        first = here("tickets", "deliver", **desk.variables)
        refused(first, "1 could not be delivered. They wait", code=1)
        assert _delivered() == [False, True]
        assert here("tickets", "deliver", **desk.variables).code == 0
    assert _delivered() == [True, True]
    keys = [headers["idempotency-key"] for headers, _ in desk.posts]
    assert keys == [keys[0], keys[1], keys[0]]
    said = caplog.text + first.err
    for personal in ("C-1001", "thread-1", "gift", TOKEN, "127.0.0.1", keys[0]):
        assert personal not in said


def test_a_desk_that_cannot_be_reached_or_does_not_answer_is_waited_for_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handed_over()
    away = here("tickets", "deliver", SUPPORT_DESK_URL=nobody_listens())
    refused(away, "1 could not be delivered", code=1)
    monkeypatch.setattr("agent.outbox.SECONDS", 0.3)
    with help_desk(silent) as desk:
        refused(here("tickets", "deliver", **desk.variables), "1 could not be", code=1)
    assert _delivered() == [False]


def test_a_ticket_of_which_the_answer_was_lost_is_posted_under_the_same_key() -> None:
    handed_over()
    with help_desk(answering(200)) as desk:
        process = [start("tickets", "deliver", **desk.variables) for _ in range(2)]
        assert [finish(each).code for each in process] == [0, 0]
        overwrite(tables.tickets, delivered_at=None)  # as if killed before it was noted
        here("tickets", "deliver", **desk.variables)
    assert 2 <= len(desk.posts) <= 3
    assert len({headers["idempotency-key"] for headers, _ in desk.posts}) == 1
    assert _delivered() == [True]


def test_one_thread_is_delivered_at_the_end_of_its_turn() -> None:
    handed_over(), handed_over("thread-2")
    with help_desk(answering(200)) as desk:
        chosen = Settings.model_validate({"desk_url": desk.variables["SUPPORT_DESK_URL"]})

        async def deliver(ledger: Any) -> int:
            outbox = outbox_of(chosen, ledger.database)
            assert isinstance(outbox, Outbox)
            return await outbox.deliver("thread-2")

        assert on_ledger(deliver) == 0
    assert _delivered() == [False, True]
    assert "authorization" not in desk.posts[0][0]


def test_without_a_help_desk_nothing_is_delivered() -> None:
    handed_over()
    refused(here("tickets", "deliver"), "SUPPORT_DESK_URL")
    assert on_ledger(lambda ledger: _none(outbox_of(Settings(), ledger.database)))
    assert _delivered() == [False]


async def _none(outbox: Outbox | None) -> bool:
    return outbox is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("DESK_URL", "desk.example"), ("DESK_TOKEN", "two words"), ("DESK_TOKEN", "a\nb")],
)
def test_a_setting_that_cannot_be_meant_is_refused(name: str, value: str) -> None:
    done = here("tickets", "deliver", **{f"SUPPORT_{name}": value})
    refused(done, f"SUPPORT_{name}")
    assert value not in done.err
