"""A turn as the model step finds it, and the update that the step leaves behind."""

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.types import Command, Overwrite, Send
from typing_extensions import TypedDict

from agent import usage
from agent.calls import Failure, ToolCall
from agent.state import Results, State
from agent.window import last_said, removed, said_since, usable


class Errand(TypedDict):
    """What `call` receives: the calls it has to make and for whom, not the state."""

    calls: list[ToolCall]
    turn: int
    customer: str


class Ending(TypedDict):
    """What `answer` receives. The model's raw text is never in the state, so no stream shows it."""

    turn: int
    customer: str
    question_id: str
    question: str
    response_id: str
    draft: str | None
    failure: Failure | None
    aside: bool
    calls: list[ToolCall]
    results: Results


class Turn:
    """Reads the state once. A new turn begins when none is going on: `round` is 0."""

    def __init__(self, state: State) -> None:
        messages = state["messages"]
        self.is_new = state.get("round", 0) == 0
        self.number = state.get("turn", 0) + 1 if self.is_new else state["turn"]
        self.customer = state.get("customer", "")
        self.round = 1 if self.is_new else state["round"]
        self.usage = usage.NOTHING if self.is_new else state["usage"]
        self._calls = [] if self.is_new else state["calls"]
        self._results: Results = {} if self.is_new else state["results"]
        self.questions = said_since(messages) if self.is_new else last_said(messages)
        self.question = "\n".join(message.text for message in self.questions)
        self.history = usable(messages) if self.is_new else messages
        gone = {message.id for message in messages} - {message.id for message in self.history}
        self.update: dict[str, Any] = {"messages": removed(gone)}

    @property
    def question_id(self) -> str:
        return str(self.questions[-1].id) if self.questions else f"turn-{self.number}"

    def begin(self, number: int, customer: str) -> None:
        """number: the journal's; a state that was lost or told again counts wrongly."""
        self.number, self.customer = number, customer
        self.update |= {
            "turn": number,
            "round": self.round,
            "customer": customer,
            "question_id": self.question_id,
            "calls": [],
            "results": Overwrite({}),
            "usage": self.usage,
            "answer": {},
        }

    def asks(self, message: AIMessage, calls: list[ToolCall], refused: Results) -> None:
        """The model's calls, and the results of those that are not made at all."""
        self.update["messages"] = [*self.update["messages"], message]
        self.update["calls"] = [*self._calls, *calls]
        if refused:
            self.update["results"] = Overwrite(refused) if self.is_new else refused

    def errand(self, calls: list[ToolCall]) -> Errand:
        return Errand(calls=calls, turn=self.number, customer=self.customer)

    def refuse(self, failure: Failure) -> Command[Any]:
        """Answers beside the turn: the question does not become part of the thread."""
        self._calls, self._results = [], {}
        return self._answered(
            {"messages": removed(message.id for message in self.questions)},
            failure=failure,
            aside=True,
        )

    def end(
        self, *, draft: str | None = None, response_id: str = "", failure: Failure | None = None
    ) -> Command[Any]:
        """Goes on to the answer."""
        return self._answered(self.update, draft, response_id, failure)

    def _answered(
        self,
        update: dict[str, Any],
        draft: str | None = None,
        response_id: str = "",
        failure: Failure | None = None,
        aside: bool = False,
    ) -> Command[Any]:
        ending = Ending(
            turn=self.number,
            customer=self.customer,
            question_id=self.question_id,
            question=self.question,
            response_id=response_id,
            draft=draft,
            failure=failure,
            aside=aside,
            calls=self._calls,
            results=self._results,
        )
        return Command(update=update, goto=Send("answer", ending))
