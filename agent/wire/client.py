"""The model as the graph sees it: messages in, one whole response out.

What a server refuses is given up and asked again without: the conversation that it was to keep,
reasoning that it cannot read, the schema of the answer. Each at most once in a request.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.runnables import RunnableConfig

from agent import usage
from agent.admission import BrokenResponse
from agent.answer.draft import RESPONSE_FORMAT
from agent.settings import Settings
from agent.wire import errors, ids, outgoing
from agent.wire.assemble import StreamInterrupted
from agent.wire.connect import connect
from agent.wire.errors import ModelUnavailable
from agent.wire.request import Bound, Request, protocol

log = logging.getLogger(__name__)

# What a client stumbles over in an answer that came: it is broken, not the way to the server.
UNREAD = (AssertionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class Way:
    """How a request goes out.

    strict: the answer's form is a schema, not words. chained: it goes on from the response that the
    vendor keeps, if there is one. reasoning: the model's earlier reasoning goes along.
    """

    strict: bool
    chained: bool
    reasoning: bool = True


class Client:
    """Asks one chat model: the given one, or the one that the settings name.

    A schema that its server refused is not sent again while this lives. Where `store=False` stands
    beside a conversation that is to be kept, it is sent whole.
    """

    def __init__(
        self,
        model: BaseChatModel | None,
        tools: list[dict[str, Any]],
        instructions: str,
        settings: Settings,
    ) -> None:
        self._model = model = model or connect(settings)
        self._protocol = protocol(model, tools)
        self._request = Request(instructions, tools, RESPONSE_FORMAT)
        chained = getattr(model, "use_previous_response_id", False)
        self._way = Way(
            strict=self._protocol is not None and settings.answer_format == "strict",
            chained=bool(chained) and getattr(model, "store", None) is not False,
        )
        self._bound: dict[Way, Bound] = {}

    async def respond(self, messages: Sequence[AnyMessage], config: RunnableConfig) -> AIMessage:
        """One response to the messages. Raises ModelUnavailable, or BrokenResponse."""
        way = self._way
        while True:
            try:
                return await self._ask(way, messages, config)
            except BrokenResponse:
                raise
            except Exception as error:  # each vendor has its own hierarchy
                other = self._otherwise(error, way)
                if other is None:
                    raise ModelUnavailable(errors.reason(error)) from error
                way = other

    def _otherwise(self, error: Exception, way: Way) -> Way | None:
        """How to ask instead of what was refused; None where that is for another reason."""
        if way.chained and errors.forgotten(error):
            log.info("the vendor does not have the conversation: it is sent whole")
            if errors.keeps_nothing(error):
                self._way = replace(self._way, chained=False)
            return replace(way, chained=False)
        if way.reasoning and errors.refuses_reasoning(error):
            log.info("the server cannot read earlier reasoning: it is left out")
            return replace(way, reasoning=False)
        if way.strict and errors.refuses_schema(error):
            if self._way.strict:
                log.warning("the server refuses an answer schema: it is put in words from now on")
            self._way = replace(self._way, strict=False)
            return replace(way, strict=False)
        return None

    async def _ask(
        self, way: Way, messages: Sequence[AnyMessage], config: RunnableConfig
    ) -> AIMessage:
        if way not in self._bound:  # what is the same in each request is made once
            request = replace(self._request, strict=way.strict)
            self._bound[way] = request.bound(self._model, chained=way.chained)
        bound, system = self._bound[way]
        fitting = self._fitting(messages, way)
        # `nostream` keeps the model's raw text out of the message stream that people see.
        quiet: RunnableConfig = {**config, "tags": [*(config.get("tags") or ()), "nostream"]}
        response = await whole(bound.astream([*system, *fitting], quiet))
        return ids.with_own(response, ids.meant(messages, fitting))

    def _fitting(self, messages: Sequence[AnyMessage], way: Way) -> Sequence[AnyMessage]:
        """As this model's protocol takes it."""
        match self._protocol:
            case "messages":
                return outgoing.for_messages(messages)
            case "responses":
                return outgoing.for_responses(
                    messages, reasoning=way.reasoning, chained=way.chained
                )
            case "chat":
                return outgoing.for_chat(messages)
        return outgoing.for_others(messages)


async def whole(stream: AsyncIterator[Any]) -> AIMessage:
    """A response from its chunks. Raises BrokenResponse where it broke off after it had begun.

    They are added here, since `ainvoke` drops the text of the arguments for its parse.
    """
    chunks: list[AIMessageChunk] = []
    try:
        async for chunk in stream:
            chunks += [chunk]
    except Exception as error:
        if broken := _interruption(error):
            used = usage.of_body(broken.usage)
            raise BrokenResponse("stream_interrupted", str(broken), used) from error
        unread = isinstance(error, UNREAD) or "No generation" in str(error)  # LangChain's: no event
        if not chunks and not unread:
            raise
        used = usage.of_message(added(chunks)) if chunks else None
        raise BrokenResponse("stream_interrupted", "The response broke off.", used) from error
    return added(chunks)


def added(chunks: Sequence[AIMessageChunk]) -> AIMessage:
    return add_ai_message_chunks(*chunks) if len(chunks) > 1 else chunks[0]


def _interruption(error: BaseException | None) -> StreamInterrupted | None:
    """Ours, where the SDK and LangChain have each wrapped it: a body that was not streamed."""
    if error is None or isinstance(error, StreamInterrupted):
        return error
    return _interruption(error.__cause__)
