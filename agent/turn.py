"""A turn as the model step finds it, and the update that the step leaves behind."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from agent import usage
from agent.calls import ToolCall
from agent.state import Results, State
from agent.window import last_said, removed, said_since, usable


class Errand(TypedDict):
    """What `call` receives: the calls it has to make and for whom, not the state."""

    calls: list[ToolCall]
    turn: int
    customer: str


class Turn:
    """Reads the state once. A question behind the last answer, or behind calls, is a new turn.

    round: the one that the model is asked for now. sent_out: the calls of the one before.
    left: the calls that a turn that was broken off sent out, and their number and question.
    """

    def __init__(self, state: State) -> None:
        messages, round = state["messages"], state.get("round", 0)
        said = said_since(messages)
        self.is_new = bool(said) or not round
        self.customer = state.get("customer", "")
        self.round = 1 if self.is_new else round + 1
        self.number = state.get("turn", 0) + 1 if self.is_new else state["turn"]
        self.questions = said if self.is_new else last_said(messages)
        self.question = "\n".join(message.text for message in self.questions)
        self.calls = [] if self.is_new else state["calls"]
        self.results: Results = {} if self.is_new else state["results"]
        out = [call for call in state.get("calls", ()) if round and call["round"] == round]
        self.sent_out, self.left = ([], out) if self.is_new else (out, [])
        self.left_in, self.left_for = state.get("turn", 0), state.get("question_id", "")
        self.left_results: Results = state.get("results", {})
        self.update: dict[str, Any] = {"messages": []}
        self.history = messages
        self._messages = messages
        self._usage = usage.NOTHING if self.is_new else state["usage"]

    @property
    def question_id(self) -> str:
        return str(self.questions[-1].id) if self.questions else f"turn-{self.number}"

    def settles(self, results: list[ToolMessage]) -> None:
        """The results of what was left, before what was said since."""
        said = self.questions
        self._messages = [*self._messages[: -len(said) or None], *results, *said]
        self.update["messages"] = [*removed(m.id for m in said), *results, *said]
        self.update["round"] = 0

    def begin(self, number: int, customer: str) -> None:
        """number: the journal's; a state that was lost or told again counts wrongly."""
        self.number, self.customer = number, customer
        self.history = usable(self._messages)
        gone = {m.id for m in self._messages} - {m.id for m in self.history}
        self.update |= {
            "messages": [*removed(gone), *self.update["messages"]],
            "turn": number,
            "round": self.round,
            "customer": customer,
            "question_id": self.question_id,
            "calls": [],
            "results": Overwrite({}),
            "usage": self._usage,
            "answer": {},
        }

    def tells(self, results: list[ToolMessage]) -> None:
        """The results of the calls that were sent out, in the order the model asked."""
        self.history = [*self.history, *results]
        self.update["messages"] = [*self.update["messages"], *results]

    def spent(self, response: AIMessage) -> None:
        self.update["usage"] = usage.add(self._usage, response)

    def asks(self, message: AIMessage, calls: list[ToolCall], refused: Results) -> None:
        """The model's calls, and the results of those that are not made at all."""
        self.update["messages"] = [*self.update["messages"], message]
        self.update |= {"calls": [*self.calls, *calls], "round": self.round}
        if refused:
            self.update["results"] = Overwrite(refused) if self.is_new else refused

    def errand(self, calls: list[ToolCall]) -> Errand:
        return Errand(calls=calls, turn=self.number, customer=self.customer)

    def ends(self, said: AIMessage, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The update that ends the turn."""
        messages = [*self.update["messages"], said]
        return {**self.update, "messages": messages, "answer": answer, "round": 0}

    def stays_out(self, said: AIMessage, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The update of a turn that never began: the thread goes on without its question."""
        settled = [m for m in self.update["messages"] if isinstance(m, ToolMessage)]
        gone = removed(message.id for message in self.questions)
        return {**self.update, "messages": [*gone, *settled, said], "answer": answer}
