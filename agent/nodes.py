"""The five steps of a turn. What each of them needs stands in a module of its own."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Send

from agent import progress, tracing, usage
from agent.answer import draft as drafts
from agent.answer.compose import Composer, Material
from agent.asking import TurnFailed, ask
from agent.calls import ToolCall, ToolResult, key_of
from agent.identity import Identity
from agent.journal import Asked, Journal, NoSuchThread
from agent.messages import asking, saying, telling
from agent.perform import Performer, unperformed
from agent.problems import question_problem
from agent.settings import Settings
from agent.state import State
from agent.turn import Ending, Errand, Turn
from agent.window import removed, said_since
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

    async def settle(self, state: State, config: RunnableConfig) -> dict[str, Any]:
        """Closes what an interrupted turn left open: the next one begins on a whole history."""
        if self._is_foreign(state, config):
            return {}
        calls, journal = _asked(state), self.journal.of(config)
        kept = await journal.results(state["turn"], calls)
        results = {
            key: kept.get(key) or self._lost(call)
            for call in calls
            if (key := key_of(call)) not in state["results"]
        }
        known, said = {**state["results"], **results}, said_since(state["messages"])
        told = [telling(call, known[key_of(call)], state["question_id"]) for call in calls]
        await journal.keep(state["turn"], calls, known)
        return {
            "messages": [*removed(m.id for m in said), *told, *said],
            "results": results,
            "round": 0,
        }

    async def model(self, state: State, config: RunnableConfig) -> Command[Any]:
        """Asks the model, admits its calls and sends them out, or goes on to the answer."""
        turn = Turn(state)
        try:
            await self._admit(turn, state, config)
        except TurnFailed as never_begun:
            return turn.refuse(never_begun.failure)
        if turn.round > self.settings.max_rounds:
            return turn.end()
        try:
            response = await ask(self.client, turn.history, turn.round, _within(turn, config))
        except TurnFailed as failed:
            return turn.end(failure=failed.failure)
        tracing.note(turn=turn.number, round=turn.round, response_id=response.id)
        turn.update["usage"] = usage.add(turn.usage, response.message)
        if not response.calls:
            return turn.end(draft=response.text, response_id=response.id)
        message = asking(response.message, response.calls, turn.question_id)
        limit = self.settings.max_calls
        refused = {key_of(call): self._beyond(call) for call in response.calls[limit:]}
        turn.asks(message, response.calls, refused)
        errands = self._errands(response.calls[:limit], turn)
        return Command(update=turn.update, goto=[Send("call", errand) for errand in errands])

    async def call(self, state: Errand, config: RunnableConfig) -> dict[str, Any]:
        """Makes its calls; each result is filed under the key of the call that produced it."""
        self._check_owner(state["customer"], config)
        customer = self.identity(config)
        made = [self._perform(call, state, customer) for call in state["calls"]]
        results = await asyncio.gather(*made) if len(made) > 1 else [await made[0]]
        return {"results": dict(results)}

    async def join(self, state: State, config: RunnableConfig) -> dict[str, Any]:
        """Proves that each call of the round has its one result, and tells them to the model."""
        self._check_owner(state["customer"], config)
        calls = _asked(state)
        _check_round(calls, state)
        await self.journal.of(config).keep(state["turn"], calls, state["results"])
        results, question_id = state["results"], state["question_id"]
        told = [telling(call, results[key_of(call)], question_id) for call in calls]
        return {"messages": told, "round": state["round"] + 1}

    async def answer(self, state: Ending, config: RunnableConfig) -> dict[str, Any]:
        """Puts the shop's values into the model's words, and says that to the customer."""
        if not state["aside"]:
            self._check_owner(state["customer"], config)
        answer = self.composer.compose(await self._material(state, config))
        for card in answer["cards"]:
            progress.tell("card", card["call_id"], card["tool"], card["subject"], card["source"])
        said = saying(
            answer["message"], state["question_id"], state["response_id"], aside=state["aside"]
        )
        if state["aside"]:
            return {"messages": [said], "answer": answer}
        await self.journal.of(config).end_turn(state["turn"], answer)
        return {"messages": [said], "answer": answer, "round": 0}

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
            if not said_since(state["messages"]):
                raise NotYours
            raise TurnFailed("no_such_thread", "The thread is not this customer's.")
        if not turn.is_new:
            return
        if problem := question_problem(turn.question):
            raise TurnFailed(*problem)
        asked = Asked(turn.question_id, turn.question)
        customer = self.identity(config) or ""
        try:
            number = await self.journal.of(config).begin_turn(customer, asked, turn.number)
        except NoSuchThread:
            raise TurnFailed("no_such_thread", "The thread is not this customer's.") from None
        turn.begin(number, customer)

    def _is_foreign(self, state: State, config: RunnableConfig) -> bool:
        customer = self.identity(config) or ""
        return state.get("customer", customer) != customer

    def _check_owner(self, owner: str, config: RunnableConfig) -> None:
        """A step that goes on with a turn, after a pause or a crash, is asked for by its owner."""
        if (self.identity(config) or "") != owner:
            raise NotYours

    async def _material(self, ending: Ending, config: RunnableConfig) -> Material:
        """What the answer is made of; the journal is asked where this turn does not suffice."""
        if ending["aside"]:  # nothing was looked up, whatever a client of a server says
            ending = {**ending, "draft": None, "calls": [], "results": {}}
        material = Material(
            turn=ending["turn"],
            question=ending["question"],
            draft=ending["draft"],
            calls=ending["calls"],
            results=ending["results"],
            failure=ending["failure"],
        )
        draft, journal = drafts.read(ending["draft"] or ""), self.journal.of(config)
        if draft is None:
            return material
        here = {call["call_id"] for call in ending["calls"]}
        foreign = [card.call_id for card in draft.cards if card.call_id not in here]
        earlier = await journal.earlier(ending["turn"], foreign) if foreign else {}
        failed = any(result["status"] == "error" for result in ending["results"].values())
        named = [] if here and not failed else await journal.named(ending["turn"])
        return replace(material, earlier=earlier, named=named)


async def entry(state: State) -> str:  # a plain function would be run in a thread
    """A turn that was broken off is settled first."""
    return "settle" if state.get("round", 0) else "model"


def _within(turn: Turn, config: RunnableConfig) -> RunnableConfig:
    """The config under which the model is asked: its runs say of which turn and round they are."""
    place = {"turn": turn.number, "round": turn.round}
    return {**config, "metadata": {**config.get("metadata", {}), **place}}


def _asked(state: State) -> list[ToolCall]:
    return [call for call in state["calls"] if call["round"] == state["round"]]


def _check_round(calls: list[ToolCall], state: State) -> None:
    """Exactly one result for each call of the round, under its own id: promise P3."""
    wanted = {key_of(call): (call["call_id"], call["name"]) for call in calls}
    prefix = f"{state['round']}/"
    found = {
        key: (result["call_id"], result["tool"])
        for key, result in state["results"].items()
        if key.startswith(prefix)
    }
    if found != wanted:
        raise BrokenRound(f"Round {state['round']} asked for {wanted} and has {found}.")
