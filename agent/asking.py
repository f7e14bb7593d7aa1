"""Asking the model until one whole response is there, a few times at most."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig

from agent import progress
from agent.admission import BrokenResponse, admit, response_id
from agent.calls import Failure, ToolCall
from agent.history.langchain import BrokenHistory, check
from agent.traces_shape import Number
from agent.wire.client import Client
from agent.wire.errors import ModelUnavailable

log = logging.getLogger(__name__)

Spend = Callable[[str, AIMessage | None, dict[str, int] | None], None]

TRIES = 3
BACK_OFF = 0.25  # seconds before the second try, three times that before the third


class TurnFailed(Exception):
    """The turn cannot go on. `kind` names the sentence that the customer is told."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(kind=kind, message=message)


@dataclass(frozen=True)
class Response:
    """One whole response: its calls, or its last words."""

    message: AIMessage
    calls: list[ToolCall]

    @property
    def id(self) -> str:
        return response_id(self.message)

    @property
    def text(self) -> str:
        return self.message.text or " ".join(
            str(block["refusal"])
            for block in self.message.content
            if isinstance(block, dict) and isinstance(block.get("refusal"), str)
        )


def _admitted(message: AIMessage, round: int) -> Response:
    """Raises BrokenResponse also for a message that is not one, whatever it stumbles over."""
    try:
        return Response(message, admit(message, round=round))
    except BrokenResponse:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise BrokenResponse("stream_interrupted", f"It cannot be read ({kind}).") from error


async def ask(
    client: Client, history: Sequence[AnyMessage], round: int, config: RunnableConfig, spend: Spend
) -> Response:
    """One completed response to a history that was checked. Raises TurnFailed.

    spend: is told how each response ended, the unusable ones too.
    """
    try:
        check(history)
    except BrokenHistory as broken:
        raise TurnFailed("broken_history", str(broken)) from None
    for tried in range(TRIES):
        message = None
        if tried:
            await asyncio.sleep(BACK_OFF * (2**tried - 1))
        try:
            message = await client.respond(history, _attempt(config, tried + 1))
            response = _admitted(message, round)
        except ModelUnavailable as error:
            log.warning("model_unavailable: %s", error)
            spend("model_unavailable", None, None)
            raise TurnFailed("model_unavailable", str(error)) from error
        except BrokenResponse as broken:
            log.warning("%s: %s", broken.kind, broken)
            progress.tell("retry", "", "", "", broken.kind)
            spend(broken.kind, message, broken.usage)
            last = broken
        else:
            spend("ok", message, None)
            return response
    raise TurnFailed(last.kind, f"{last} It was asked {TRIES} times; nothing of it ran.")


def _attempt(config: RunnableConfig, number: int) -> RunnableConfig:
    return {**config, "metadata": {**config.get("metadata", {}), "attempt": Number(number)}}
