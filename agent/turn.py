"""A turn as the model step finds it, and the update that the step leaves behind."""

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.types import Command, Overwrite, Send
from typing_extensions import TypedDict

from agent import usage
from agent.calls import Failure, ToolCall
from agent.messages import is_aside
from agent.state import Results, State
from agent.window import cut, last_said, removed, said_since


class Ending(TypedDict):
    """What `answer` receives. The model's raw text is never in the state, so no stream shows it."""

    turn: int
    question_id: str
    question: str
    response_id: str
    draft: str | None
    failure: Failure | None
    calls: list[ToolCall]
    results: Results


class Turn:
    """Reads the state once. A new turn begins when none is going on: `round` is 0."""

    def __init__(self, state: State) -> None:
        messages = state["messages"]
        self.is_new = state.get("round", 0) == 0
        self.number = state.get("turn", 0) + 1 if self.is_new else state["turn"]
        self.round = 1 if self.is_new else state["round"]
        self.usage = usage.NOTHING if self.is_new else state["usage"]
        self._calls = [] if self.is_new else state["calls"]
        self._results: Results = {} if self.is_new else state["results"]
        self.questions = said_since(messages) if self.is_new else last_said(messages)
        self.question = "\n".join(message.text for message in self.questions)
        gone = _gone(messages) if self.is_new else []
        self.history = [message for message in messages if message not in gone]
        self.update: dict[str, Any] = {"messages": removed(gone)}
        if self.is_new:
            self.update |= {
                "turn": self.number,
                "round": self.round,
                "question_id": self.question_id,
                "calls": [],
                "results": Overwrite({}),
                "usage": self.usage,
            }

    @property
    def question_id(self) -> str:
        return str(self.questions[-1].id) if self.questions else f"turn-{self.number}"

    def numbered(self, number: int) -> None:
        """The journal counts a thread's turns; a state that was lost or told again does not."""
        self.number = self.update["turn"] = number

    def asks(self, message: AIMessage, calls: list[ToolCall], refused: Results) -> None:
        """The model's calls, and the results of those that are not made at all."""
        self.update["messages"] = [*self.update["messages"], message]
        self.update["calls"] = [*self._calls, *calls]
        if refused:
            self.update["results"] = Overwrite(refused) if self.is_new else refused

    def forget(self) -> None:
        """A question that is not answered does not stay in the conversation."""
        self.update["messages"] = [*self.update["messages"], *removed(self.questions)]

    def end(
        self,
        *,
        draft: str | None = None,
        response_id: str = "",
        failure: Failure | None = None,
    ) -> Command[Any]:
        ending = Ending(
            turn=self.number,
            question_id=self.question_id,
            question=self.question,
            response_id=response_id,
            draft=draft,
            failure=failure,
            calls=self._calls,
            results=self._results,
        )
        return Command(update=self.update, goto=Send("answer", ending))


def _gone(messages: list[AnyMessage]) -> list[AnyMessage]:
    """What a new turn leaves out: turns beyond the window, and what was said beside a turn."""
    early = cut(messages)
    return [*early, *(m for m in messages[len(early) :] if is_aside(m))]
