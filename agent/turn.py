"""A turn as the model step finds it, and the update that the step leaves behind."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from agent import usage
from agent.calls import ToolCall, ToolResult, key_of
from agent.state import Begun, Results, State
from agent.usage import Spent
from agent.window import last_said, removed, said_since, usable
from tools.locales import DEFAULT, guess

# Before the first turn of a thread.
NONE = Begun(number=0, question_id="", customer="", fence="", language=DEFAULT)


class Errand(TypedDict):
    """What `call` receives: the calls it has to make and for whom, not the state."""

    calls: list[ToolCall]
    begun: Begun


class Turn:
    """Reads the state once. A question behind the last answer, or behind calls, is a new turn.

    round: the one that the model is asked for now. sent_out: the calls of the one before.
    left: the calls that a turn that was broken off sent out last; left_calls: all of its calls.
    news: what the customer has not been told yet of writes of earlier turns.
    """

    def __init__(self, state: State) -> None:
        messages, round = state["messages"], state.get("round", 0)
        last = state.get("begun", NONE)
        said, known = said_since(messages), state.get("results", {})
        out = [call for call in state.get("calls", ()) if round and call["round"] == round]
        stopped = any(key_of(call) not in known for call in out)  # and nothing was asked since
        self.is_new = bool(said) or stopped or not round
        self.customer, self.fence = last["customer"], last["fence"]
        self.round = 1 if self.is_new else round + 1
        self.number = last["number"] + self.is_new
        self.questions = said if self.is_new else last_said(messages)
        self.question = "\n".join(message.text for message in self.questions)
        self.calls = [] if self.is_new else state["calls"]
        self.results: Results = {} if self.is_new else state["results"]
        self.left_calls = state.get("calls", []) if self.is_new and round else []
        self.sent_out, self.left = ([], out) if self.is_new else (out, [])
        self.left_in, self.left_for = last["number"], last["question_id"]
        self.left_results: Results = state.get("results", {})
        said_in = guess(self.question) if self.is_new else None
        self.language = said_in or last["language"]
        self.open = dict(state.get("open", {}))
        self.news = list(state.get("news", ()))
        self.update: dict[str, Any] = {"messages": []}
        self.history = messages
        self._messages = messages
        self.spent: list[Spent] = [] if self.is_new else list(state.get("spent", usage.NEVER_KEPT))
        self.left_spent = list(state.get("spent", ())) if self.is_new and round else []

    @property
    def question_id(self) -> str:
        return str(self.questions[-1].id) if self.questions else f"turn-{self.number}"

    def settles(self, results: list[ToolMessage]) -> None:
        """The results of what was left, before what was said since."""
        said = self.questions
        self._messages = [*self._messages[: -len(said) or None], *results, *said]
        self.update["messages"] = [*removed(m.id for m in said), *results, *said]
        self.update["round"] = 0

    def begin(self, number: int, customer: str, fence: str) -> None:
        """number: the journal's; a state that was lost or told again counts wrongly."""
        self.number, self.customer, self.fence = number, customer, fence
        self.history = usable(self._messages)
        gone = {m.id for m in self._messages} - {m.id for m in self.history}
        anew = self._sent_anew() if gone else []
        self.update |= {
            "messages": [*removed(gone), *self.update["messages"], *anew],
            "begun": self._begun,
            "round": self.round,
            "news": self.news,
            "calls": [],
            "results": Overwrite({}),
            "usage": usage.NOTHING,
            "spent": [],
            "cost_usd": None,
            "answer": {},
        }

    def _sent_anew(self) -> list[AnyMessage]:
        """A vendor that keeps the conversation has what was cut as well, so it begins a new one."""
        before, self.history = self.history, [_unnamed(message) for message in self.history]
        return [new for new, old in zip(self.history, before, strict=True) if new is not old]

    def tells_again(self, result: ToolMessage) -> None:
        """A result that is another by now, in the place of the one that the model was told.

        A vendor that keeps the conversation has the old one, so it goes on from before that.
        """
        places = [n for n, message in enumerate(self.history) if message.id == result.id]
        for place in places:
            rest = [_unnamed(message) for message in self.history[place + 1 :]]
            changed = [message for message in rest if message not in self.history]
            self.history = [*self.history[:place], result, *rest]
            self.update["messages"] = [*self.update["messages"], result, *changed]

    def expects(self, where: str, result: ToolResult, more: bool) -> None:
        """Keeps in mind whether more will be heard of a write."""
        self.open.pop(where, None)
        if more and "action" in result:
            self.open[where] = result["action"]
        self.update["open"] = self.open

    def tells(self, results: list[ToolMessage]) -> None:
        """The results of the calls that were sent out, in the order the model asked."""
        self.history = [*self.history, *results]
        self.update["messages"] = [*self.update["messages"], *results]

    def spends(
        self, model: str, ended: str, message: AIMessage | None, used: usage.Usage | None
    ) -> None:
        """A response came, usable or not. model: as it was asked for, PROVIDER:NAME."""
        used = usage.of_message(message) if message else used
        names = (usage.model_of(message), model)
        self.spent = [*self.spent, usage.spent(self.round, ended, names, used)]
        self.update |= {"spent": self.spent, "usage": usage.total(self.spent)}

    def asks(self, message: AIMessage, calls: list[ToolCall], refused: Results) -> None:
        """The model's calls, and the results of those that are not made at all."""
        self.update["messages"] = [*self.update["messages"], message]
        self.update |= {"calls": [*self.calls, *calls], "round": self.round}
        if refused:
            self.update["results"] = Overwrite(refused) if self.is_new else refused

    def errand(self, calls: list[ToolCall]) -> Errand:
        return Errand(calls=calls, begun=self._begun)

    @property
    def _begun(self) -> Begun:
        return Begun(
            number=self.number,
            question_id=self.question_id,
            customer=self.customer,
            fence=self.fence,
            language=self.language,
        )

    def ends(self, said: list[AIMessage], answer: Mapping[str, Any]) -> dict[str, Any]:
        """The update that ends the turn."""
        messages = [*self.update["messages"], *said]
        ended = {"messages": messages, "answer": answer, "news": [], "round": 0}
        return {**self.update, **ended}

    def stays_out(self, said: AIMessage, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The update of a turn that never began: the thread goes on without its question."""
        settled = [m for m in self.update["messages"] if isinstance(m, ToolMessage)]
        gone = removed(message.id for message in self.questions)
        left_out = {"messages": [*gone, *settled, said], "answer": answer, "news": self.news}
        return {**self.update, **left_out}


def _unnamed(message: AnyMessage) -> AnyMessage:
    """A message without the vendor's id of its response."""
    if not isinstance(message, AIMessage) or not message.response_metadata.get("id"):
        return message
    return message.model_copy(update={"response_metadata": {}})
