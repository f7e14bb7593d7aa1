"""The two steps of a turn. What each of them needs stands in a module of its own."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.types import Command, Send

from agent import progress, tracing
from agent.answer import draft as drafts
from agent.answer.compose import Answer, Composer, Material
from agent.asking import Response, TurnFailed, ask
from agent.calls import Failure, ToolCall, ToolResult, key_of
from agent.identity import Identity
from agent.journal import Asked, Journal, NoSuchThread
from agent.messages import asking, saying, telling
from agent.perform import Performer, unperformed
from agent.problems import question_problem
from agent.settings import Settings
from agent.state import State
from agent.turn import Errand, Turn
from agent.wire.client import Client
from tools.tool import Tool

TASKS = 16  # reads of one round beyond this share tasks: a task costs more than most reads


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
        await self.close_round(turn, config)
        if turn.round > self.settings.max_rounds:
            return await self._answer(turn, config)
        try:
            response = await ask(self.client, turn.history, turn.round, _within(turn, config))
        except TurnFailed as failed:
            return await self._answer(turn, config, failure=failed.failure)
        tracing.note(turn=turn.number, round=turn.round, response_id=response.id)
        turn.spent(response.message)
        if not response.calls:
            return await self._answer(turn, config, response)
        return self._send_out(response, turn)

    async def call(self, state: Errand, config: RunnableConfig) -> dict[str, Any]:
        """Makes its calls; each result is filed under the key of the call that produced it."""
        self._check_owner(state["customer"], config)
        customer = self.identity(config)
        made = [self._perform(call, state, customer) for call in state["calls"]]
        results = await asyncio.gather(*made) if len(made) > 1 else [await made[0]]
        return {"results": dict(results)}

    async def close_round(self, turn: Turn, config: RunnableConfig) -> None:
        """Proves that each call of the round has its one result, and tells them to the model."""
        calls = turn.sent_out
        _check_round(calls, turn)
        if calls:
            await self.journal.of(config).keep(turn.number, calls, turn.results)
            turn.tells([telling(c, turn.results[key_of(c)], turn.question_id) for c in calls])

    def _send_out(self, response: Response, turn: Turn) -> Command[Any]:
        """A task for each call, so that each pauses, fails and is saved on its own."""
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
    ) -> Command[Any]:
        """Puts the shop's values into the model's words, and says that to the customer."""
        draft = response.text if response else None
        answer = self._compose(await self._material(turn, draft, failure, config))
        await self.journal.of(config).end_turn(turn.number, answer)
        said = saying(answer["message"], turn.question_id, response.id if response else "")
        return Command(update=turn.ends(said, answer), goto=END)

    def _aside(self, turn: Turn, failure: Failure) -> Command[Any]:
        """Answers beside the thread: the question does not become part of it."""
        material = Material(turn.number, turn.question, None, [], {}, failure)
        answer = self._compose(material)
        said = saying(answer["message"], turn.question_id, "", aside=True)
        return Command(update=turn.stays_out(said, answer), goto=END)

    def _compose(self, material: Material) -> Answer:
        answer = self.composer.compose(material)
        for card in answer["cards"]:
            progress.tell("card", card["call_id"], card["tool"], card["subject"], card["source"])
        return answer

    async def _perform(
        self, call: ToolCall, errand: Errand, customer: str | None
    ) -> tuple[str, ToolResult]:
        alone = len(errand["calls"]) == 1
        subject = self.performer.subject(call)
        progress.tell("call_started", call["call_id"], call["name"], subject, "running")
        async with tracing.call_run(call, errand["turn"], call["name"] in self.tools) as run:
            result = await self.performer.perform(call, customer, may_pause=alone)
            run["result"] = result
        progress.tell(
            "call_finished", call["call_id"], call["name"], result["subject"], result["status"]
        )
        return key_of(call), result

    def _errands(self, calls: list[ToolCall], turn: Turn) -> list[Errand]:
        """A task for each call; reads share once there are many. What writes is always alone."""
        if len(calls) <= TASKS:
            return [turn.errand([call]) for call in calls]
        writes = [[call] for call in calls if self._writes(call)]
        reads = [call for call in calls if not self._writes(call)]
        shared = [reads[place::TASKS] for place in range(min(TASKS, len(reads)))]
        return [turn.errand(group) for group in (*writes, *shared)]

    def _writes(self, call: ToolCall) -> bool:
        tool = self.tools.get(call["name"])
        return tool is not None and tool.effect == "write"

    def _beyond(self, call: ToolCall) -> ToolResult:
        limit = f"Only {self.settings.max_calls} calls are made in one response; this one was not."
        return unperformed(call, self.tools.get(call["name"]), "not_executed", limit)

    def _lost(self, call: ToolCall) -> ToolResult:
        """What is said of a call whose round was broken off before its result was kept."""
        message = "The turn was broken off before this result was kept. Nothing was changed."
        return unperformed(call, self.tools.get(call["name"]), "not_kept", message)

    async def _admit(self, turn: Turn, state: State, config: RunnableConfig) -> None:
        """Lets a turn begin, or go on. Raises TurnFailed, and then nothing of it is kept."""
        if self._is_foreign(state, config):
            if not turn.questions or not turn.is_new:
                raise NotYours
            raise TurnFailed("no_such_thread", "The thread is not this customer's.")
        if not turn.is_new:
            return
        await self._settle(turn, config)
        if problem := question_problem(turn.question):
            raise TurnFailed(*problem)
        asked = Asked(turn.question_id, turn.question)
        customer = self.identity(config) or ""
        try:
            number = await self.journal.of(config).begin_turn(customer, asked, turn.number)
        except NoSuchThread:
            raise TurnFailed("no_such_thread", "The thread is not this customer's.") from None
        turn.begin(number, customer)

    async def _settle(self, turn: Turn, config: RunnableConfig) -> None:
        """Closes what a turn that was broken off left open: this one begins on a whole history."""
        if not turn.left:
            return
        journal, results = self.journal.of(config), turn.left_results
        kept = await journal.results(turn.left_in, turn.left)
        known = {
            key: results.get(key) or kept.get(key) or self._lost(call)
            for call in turn.left
            if (key := key_of(call))
        }
        await journal.keep(turn.left_in, turn.left, known)
        turn.settles([telling(call, known[key_of(call)], turn.left_for) for call in turn.left])

    def _is_foreign(self, state: State, config: RunnableConfig) -> bool:
        customer = self.identity(config) or ""
        return state.get("customer", customer) != customer

    def _check_owner(self, owner: str, config: RunnableConfig) -> None:
        """A step that goes on with a turn, after a pause or a crash, is asked for by its owner."""
        if (self.identity(config) or "") != owner:
            raise NotYours

    async def _material(
        self, turn: Turn, text: str | None, failure: Failure | None, config: RunnableConfig
    ) -> Material:
        """What the answer is made of; the journal is asked where this turn does not suffice."""
        calls, results = turn.calls, turn.results
        material = Material(turn.number, turn.question, text, calls, results, failure)
        draft, journal = drafts.read(text or ""), self.journal.of(config)
        if draft is None:
            return material
        here = {call["call_id"] for call in calls}
        foreign = [card.call_id for card in draft.cards if card.call_id not in here]
        earlier = await journal.earlier(turn.number, foreign) if foreign else {}
        failed = any(result["status"] == "error" for result in results.values())
        named = [] if here and not failed else await journal.named(turn.number)
        return replace(material, earlier=earlier, named=named)


def _within(turn: Turn, config: RunnableConfig) -> RunnableConfig:
    """The config under which the model is asked: its runs say of which turn and round they are."""
    place = {"turn": turn.number, "round": turn.round}
    return {**config, "metadata": {**config.get("metadata", {}), **place}}


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
