"""The model as the graph sees it: messages in, one whole response out.

Every request carries the tools, the instructions and the form of the answer, also where the vendor
keeps the conversation: none of the three is carried over by `previous_response_id`.
"""

import json
import logging
from collections.abc import Sequence
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, SystemMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.runnables import Runnable, RunnableConfig

from agent.admission import BrokenResponse
from agent.answer.draft import RESPONSE_FORMAT
from agent.settings import Settings
from agent.wire.connect import connect
from agent.wire.errors import ModelUnavailable, forgotten, reason, refuses_schema

log = logging.getLogger(__name__)

PROSE = "Answer with one JSON object that fits this JSON schema, without any text around it:"


class Client(Protocol):
    async def respond(self, messages: Sequence[AnyMessage], config: RunnableConfig) -> AIMessage:
        """One response to the messages. Raises ModelUnavailable, or BrokenResponse."""


class ModelClient:
    """Asks one chat model. The form of the answer is a strict schema where the model takes one.

    A server that refuses the schema gets it in words from then on, as long as this client lives.
    """

    def __init__(
        self,
        model: BaseChatModel,
        tools: list[dict[str, Any]],
        instructions: str,
        settings: Settings,
    ) -> None:
        self._model = model
        self._tools = tools
        self._instructions = instructions
        self._is_openai = model._llm_type == "openai-chat"
        self._strict = self._is_openai and settings.answer_format == "strict"

    async def respond(self, messages: Sequence[AnyMessage], config: RunnableConfig) -> AIMessage:
        try:
            return await self._ask(self._model, messages, config)
        except BrokenResponse:
            raise
        except Exception as error:  # each vendor has its own hierarchy
            if (again := self._otherwise(error, messages)) is None:
                raise ModelUnavailable(reason(error)) from error
        try:
            return await self._ask(*again, config)
        except BrokenResponse:
            raise
        except Exception as error:
            raise ModelUnavailable(reason(error)) from error

    def _otherwise(
        self, error: Exception, messages: Sequence[AnyMessage]
    ) -> tuple[BaseChatModel, Sequence[AnyMessage]] | None:
        """What to ask instead of what was refused: once, and only for these two reasons."""
        if forgotten(error):
            log.info("the vendor no longer has the conversation: it is sent whole")
            whole = self._model.model_copy(update={"use_previous_response_id": False})
            return whole, [_without_reasoning(message) for message in messages]
        if self._strict and refuses_schema(error):
            log.warning("the server refuses an answer schema: it is put in words from now on")
            self._strict = False
            return self._model, messages
        return None

    async def _ask(
        self, model: BaseChatModel, messages: Sequence[AnyMessage], config: RunnableConfig
    ) -> AIMessage:
        # `nostream` keeps the model's raw text out of the message stream that people see.
        quiet: RunnableConfig = {**config, "tags": [*(config.get("tags") or ()), "nostream"]}
        bound, system = self._bound(model)
        # Chunks are added here, since `ainvoke` drops the text of the arguments for its parse.
        chunks: list[AIMessageChunk] = []
        try:
            async for chunk in bound.astream([*system, *messages], quiet):
                chunks += [chunk]
        except Exception as error:
            if not chunks and "No generation" not in str(error):  # LangChain's words for no event
                raise
            raise BrokenResponse("stream_interrupted", "The response broke off.") from error
        return add_ai_message_chunks(*chunks) if len(chunks) > 1 else chunks[0]

    def _bound(self, model: BaseChatModel) -> tuple[Runnable[Any, Any], list[SystemMessage]]:
        """The model with all that goes with each request, and what stands before the messages."""
        instructions = self._instructions
        if not self._strict:
            schema = json.dumps(RESPONSE_FORMAT["json_schema"]["schema"])
            instructions = f"{instructions}\n\n{PROSE}\n{schema}"
        system = [SystemMessage(instructions)]
        if not self._is_openai:
            return self._with_tools(model), system
        options: dict[str, Any] = {"response_format": RESPONSE_FORMAT} if self._strict else {}
        if self._tools:
            options |= {"tools": self._tools, "parallel_tool_calls": True}
        if getattr(model, "use_responses_api", False):
            return model.bind(**options, instructions=instructions), []
        return model.bind(**options), system

    def _with_tools(self, model: BaseChatModel) -> Runnable[Any, Any]:
        try:
            return model.bind_tools(self._tools) if self._tools else model
        except NotImplementedError:  # a model that cannot call tools still answers
            return model


def client(
    model: BaseChatModel | None,
    tools: list[dict[str, Any]],
    instructions: str,
    settings: Settings,
) -> Client:
    """The given chat model, or the one that the settings name, ready to be asked."""
    return ModelClient(model or connect(settings), tools, instructions, settings)


def _without_reasoning(message: AnyMessage) -> AnyMessage:
    """Reasoning that the vendor kept cannot be sent: it stands in the history as an id alone."""
    if not isinstance(message, AIMessage) or not isinstance(message.content, list):
        return message
    kept = [b for b in message.content if isinstance(b, str) or b.get("type") != "reasoning"]
    return message.model_copy(update={"content": kept})
