"""The two steps of a turn. What each of them needs stands in a module of its own."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.types import Command, Send

from agent import progress, tracing
from agent.accounts import Accounts, note_round, within
from agent.answer import draft as drafts
from agent.answer.compose import Answer, Composer, Material
from agent.asking import Response, TurnFailed, ask
from agent.calls import Failure, ToolCall, ToolResult, key_of
from agent.desk import SqlDesk
from agent.identity import Identity
from agent.journal import Asked, Journal, NoSuchThread
from agent.messages import asking, saying, telling
from agent.outbox import Outbox
from agent.perform import Performer, same, unperformed
from agent.problems import question_problem
from agent.settings import Settings
from agent.settling import Settler
from agent.state import State
from agent.turn import Errand, Turn
from agent.wire.client import Client
from agent.writing import Asker
from tools.database import DatabaseProblem
from tools.tool import Tool

# More reads of one round share so many: a task costs more than most reads.
TASKS = 4


class NotYours(Exception):
    """Somebody goes on with the turn of somebody else. Nothing is done or told."""

    def __init__(self) -> None:
        super().__init__("There is no such conversation. Nothing was looked up.")


class BrokenRound(Exception):
    """A round without exactly one result for each of its calls. It is never continued."""


@dataclass(frozen=True)
class Nodes:
    """The steps, with what they work on."""

    client: Client
    tools: Mapping[str, Tool]
    performer: Performer
    composer: Composer
    identity: Identity
    journal: Journal
    settler: Settler
    desk: SqlDesk | None
    outbox: Outbox | None
    accounts: Accounts
    settings: Settings

    async def model(self, state: State, config: RunnableConfig) -> Command[Any]:
        """Tells the model what its calls brought, asks it, and sends out its next calls.

        Where there are none, the turn ends with the answer.
        """
        turn = Turn(state)
        try:
            await self._admit(turn, state, config)
        except TurnFailed as never_begun:
            return self._aside(turn, never_begun.failure)
        if turn.is_new and await self._is_with_person(config):
            return await self._answer(turn, config, silent=True)
        await self.close_round(turn, config)
        if turn.round > self.settings.max_rounds or self.accounts.is_over_budget(turn):
            return await self._answer(turn, config)
        try:
            spend, about = partial(turn.spends, self.settings.model), within(turn, config)
            response = await ask(self.client, turn.history, turn.round, about, spend)
        except TurnFailed as failed:
            note_round(turn)
            return await self._answer(turn, config, failure=failed.failure)
        note_round(turn, response.id)
        if not response.calls:
            return await self._answer(turn, config, response)
        if any(map(self._writes, response.calls)):  # the turn may pause, and never go on
            await self.journal.of(config).note(turn.number, self.accounts.waiting(turn))
        return self._send_out(response, turn)

    async def call(self, state: Errand, config: RunnableConfig) -> dict[str, Any]:
        """Makes its calls; each result is filed under the key of the call that produced it."""
        await self._check_asker(state, config)
        turn = state["begun"]
        about = (turn["number"], turn["fence"], turn["language"])
        asker = Asker(self.identity(config), _thread(config), *about)
        first, *rest = state["calls"]
        if self._writes(first):
            return {"results": await self._write_once(first, rest, asker)}
        if not rest:
            return {"results": dict([await self._perform(first, asker)])}
        made = []
        async with asyncio.TaskGroup() as group:
            for call in state["calls"]:
                made.append(group.create_task(self._perform(call, asker, alone=False)))
                await asyncio.sleep(0)  # its tool begins before the next call is prepared
        return {"results": dict(task.result() for task in made)}

    async def close_round(self, turn: Turn, config: RunnableConfig) -> None:
        """Proves that each call of the round has its one result, and tells them to the model."""
        calls = turn.sent_out
        _check_round(calls, turn)
        for call in calls:
            if not await self.settler.is_vouched(turn.results[key_of(call)], turn.customer):
                raise BrokenRound(
                    f"Nothing is known of what {call['call_id']} is said to have done."
                )
        if calls:
            await self.journal.of(config).keep(turn.number, calls, turn.results)
            self.settler.expect(turn, calls)
            turn.tells([telling(c, turn.results[key_of(c)], turn.question_id) for c in calls])

    def _send_out(self, response: Response, turn: Turn) -> Command[Any]:
        """A task for each call that may pause, so that each pauses and is saved on its own."""
        limit = self.settings.max_calls
        refused = {key_of(call): self._beyond(call) for call in response.calls[limit:]}
        turn.asks(
            asking(response.message, response.calls, turn.question_id), response.calls, refused
        )
        errands = self._errands(response.calls[:limit], turn)
        return Command(update=turn.update, goto=[Send("call", errand) for errand in errands])

    async def _answer(
        self,
        turn: Turn,
        config: RunnableConfig,
        response: Response | None = None,
        failure: Failure | None = None,
        silent: bool = False,
    ) -> Command[Any]:
        """Puts the shop's values into the model's words, and says that to the customer.

        silent: the thread is with a person, so nothing is said but what became of a write.
        """
        draft = response.text if response else None
        material = await self._material(turn, draft, failure, config)
        wrote = any(self._writes(call) for call in turn.calls)
        with_person = silent or (wrote and await self._is_with_person(config))
        answer = self._compose(replace(material, with_person=with_person, silent=silent))
        account = self.accounts.ended(turn, answer)
        await self.journal.of(config).end_turn(turn.number, answer, account)
        if self.outbox and with_person and not silent:
            with suppress(DatabaseProblem):  # what is not delivered now, is later
                await self.outbox.deliver(_thread(config))
        said = saying(answer["message"], turn.question_id, response.id if response else "")
        spoken = [said] if answer["message"] else []
        return Command(update=turn.ends(spoken, answer), goto=END)

    def _aside(self, turn: Turn, failure: Failure) -> Command[Any]:
        """Answers beside the thread: the question does not become part of it."""
        material = Material(
            turn.number, turn.question, None, [], {}, failure, language=turn.language
        )
        answer = self._compose(material)
        said = saying(answer["message"], turn.question_id, "", aside=True)
        return Command(update=turn.stays_out(said, answer), goto=END)

    def _compose(self, material: Material) -> Answer:
        answer = self.composer.compose(material)
        for card in answer["cards"]:
            progress.tell("card", card["call_id"], card["tool"], card["subject"], card["source"])
        return answer

    async def _write_once(
        self, first: ToolCall, twins: list[ToolCall], asker: Asker
    ) -> dict[str, ToolResult]:
        """One write, and those that ask for the very same: one question, one effect."""
        if {self.performer.action(call) for call in twins} - {self.performer.action(first)}:
            raise BrokenRound("Different writes came as one.")
        key, result = await self._perform(first, asker)
        twin = {key_of(call): same(call, result) for call in twins}
        for each in twin.values():
            progress.tell(
                "call_finished", each["call_id"], each["tool"], each["subject"], each["status"]
            )
        return {key: result, **twin}

    async def _perform(
        self, call: ToolCall, asker: Asker, *, alone: bool = True
    ) -> tuple[str, ToolResult]:
        subject = self.performer.subject(call)
        if not self._writes(call):  # a write starts when it is confirmed
            progress.tell("call_started", call["call_id"], call["name"], subject, "running")
        known = call["name"] in self.tools
        with tracing.call_run(call, asker.turn, known, alone=alone) as run:
            result = await self.performer.perform(call, asker, may_pause=alone)
            run["result"] = result
        progress.tell(
            "call_finished", call["call_id"], call["name"], result["subject"], result["status"]
        )
        return key_of(call), result

    def _errands(self, calls: list[ToolCall], turn: Turn) -> list[Errand]:
        """A task for each call; reads share where they are many, and equal writes are one."""
        writes: dict[str, list[ToolCall]] = {}
        for call in filter(self._writes, calls):
            writes.setdefault(self.performer.action(call), []).append(call)
        reads = [call for call in calls if not self._writes(call)]
        tasks = min(len(reads), TASKS)
        shared = [reads[place::tasks] for place in range(tasks)]
        return [turn.errand(group) for group in (*writes.values(), *shared)]

    def _writes(self, call: ToolCall) -> bool:
        return self.performer.writing(call["name"]) is not None

    def _beyond(self, call: ToolCall) -> ToolResult:
        limit = f"Only {self.settings.max_calls} calls are made in one response; this one was not."
        return unperformed(call, self.tools.get(call["name"]), "not_executed", limit)

    async def _admit(self, turn: Turn, state: State, config: RunnableConfig) -> None:
        """Lets a turn begin, or go on. Raises TurnFailed, and then nothing of it is kept."""
        if self._is_foreign(state, config):
            if not turn.questions or not turn.is_new:
                raise NotYours
            raise TurnFailed("no_such_thread", "The thread is not this customer's.")
        if not turn.is_new:
            return
        journal = self.journal.of(config)
        if turn.left_spent:
            await journal.note(turn.left_in, self.accounts.left(turn))
        customer, fence = self.identity(config) or "", uuid4().hex
        await self.settler.close(turn, journal, fence)
        if problem := question_problem(turn.question):
            raise TurnFailed(*problem)
        asked = Asked(turn.question_id, turn.question)
        try:
            number = await journal.begin_turn(customer, asked, turn.number, fence)
        except NoSuchThread:
            raise TurnFailed("no_such_thread", "The thread is not this customer's.") from None
        turn.begin(number, customer, fence)
        await self.settler.hear(turn, journal)

    async def _is_with_person(self, config: RunnableConfig) -> bool:
        return self.desk is not None and await self.desk.has(_thread(config))

    def _is_foreign(self, state: State, config: RunnableConfig) -> bool:
        """Also a turn of which it is not known whose it is: a version before this one began it."""
        if "begun" not in state:
            return bool(state.get("round"))
        return state["begun"]["customer"] != (self.identity(config) or "")

    async def _check_asker(self, errand: Errand, config: RunnableConfig) -> None:
        """A step that goes on with a turn, after a pause or a crash, is asked for by its owner."""
        if (self.identity(config) or "") == errand["begun"]["customer"]:
            return
        if self.performer.writer and any(map(self._writes, errand["calls"])):
            await self.performer.writer.spoil(_thread(config), config)
        raise NotYours

    async def _material(
        self, turn: Turn, text: str | None, failure: Failure | None, config: RunnableConfig
    ) -> Material:
        """What the answer is made of; the journal is asked where this turn does not suffice."""
        calls, results = turn.calls, turn.results
        material = Material(
            turn.number,
            turn.question,
            text,
            calls,
            results,
            failure,
            news=turn.news,
            language=turn.language,
            limit="budget" if self.accounts.is_over_budget(turn) else "limit",
        )
        draft, journal = drafts.read(text or ""), self.journal.of(config)
        if draft is None:
            return material
        here = {call["call_id"] for call in calls}
        foreign = [card.call_id for card in draft.cards if card.call_id not in here]
        earlier = await journal.earlier(turn.number, foreign) if foreign else {}
        failed = any(result["status"] == "error" for result in results.values())
        named = [] if here and not failed else await journal.named(turn.number)
        return replace(material, earlier=earlier, named=named)


def _thread(config: RunnableConfig) -> str:
    return str(config.get("configurable", {}).get("thread_id") or "")


def _check_round(calls: list[ToolCall], turn: Turn) -> None:
    """Exactly one result for each call of the round, under its own id: promise P3."""
    wanted = {key_of(call): (call["call_id"], call["name"]) for call in calls}
    prefix = f"{turn.round - 1}/"
    found = {
        key: (result["call_id"], result["tool"])
        for key, result in turn.results.items()
        if key.startswith(prefix)
    }
    if found != wanted:
        raise BrokenRound(f"Round {turn.round - 1} asked for {wanted} and has {found}.")
