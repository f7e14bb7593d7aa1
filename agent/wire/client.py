"""The model as the graph sees it: messages in, one whole response out.

`ChatOpenAI` on the Responses API is told to keep nothing (`store=False`), so the whole history goes
out every time, encrypted reasoning included, with the tools, the instructions and the schema of the
answer. Any other chat model gets the instructions as a system message and the schema in words.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig

from agent.admission import BrokenResponse
from agent.answer.draft import RESPONSE_FORMAT
from agent.problems import Problem
from agent.settings import Settings

OFFLINE_URL = "http://offline.invalid/v1"
PROSE = "Answer with one JSON object that fits this JSON schema, without any text around it:"


class ModelUnavailable(Exception):
    """The model could not be asked, or answered with an error; nothing of it was used."""


class Client(Protocol):
    async def respond(self, messages: Sequence[AnyMessage], config: RunnableConfig) -> AIMessage:
        """One response to the messages. Raises ModelUnavailable, or BrokenResponse."""


@dataclass(frozen=True)
class BoundModel:
    """A chat model with the tools bound; `system` is sent first where it is not bound too."""

    model: Runnable[Any, AIMessage]
    system: tuple[SystemMessage, ...] = ()

    async def respond(self, messages: Sequence[AnyMessage], config: RunnableConfig) -> AIMessage:
        # `nostream` keeps the model's raw text out of the message stream that people see.
        quiet: RunnableConfig = {**config, "tags": [*(config.get("tags") or ()), "nostream"]}
        try:
            return await self.model.ainvoke([*self.system, *messages], quiet)
        except Exception as error:  # each vendor has its own hierarchy
            if reason := _broken_off(error):
                raise BrokenResponse("stream_interrupted", reason) from error
            raise ModelUnavailable(_reason(error)) from error


def client(
    model: BaseChatModel | None,
    tools: list[dict[str, Any]],
    instructions: str,
    settings: Settings,
) -> Client:
    """The given chat model, or the one that the settings name, ready to be asked."""
    model = model or connect(settings)
    if getattr(model, "use_responses_api", False):
        return BoundModel(
            model.bind(
                tools=tools,
                parallel_tool_calls=True,
                response_format=RESPONSE_FORMAT,
                instructions=instructions,
            )
        )
    schema = json.dumps(RESPONSE_FORMAT["json_schema"]["schema"])
    system = SystemMessage(f"{instructions}\n\n{PROSE}\n{schema}")
    return BoundModel(_with_tools(model, tools), (system,))


def connect(settings: Settings) -> BaseChatModel:
    """The model that SUPPORT_MODEL names. Raises Problem when its key is missing."""
    from langchain_openai import ChatOpenAI  # slow to import, and not every command needs it

    name = settings.model.partition(":")[2] or "offline"
    return ChatOpenAI(
        model_name=name,
        use_responses_api=True,
        output_version="responses/v1",
        store=False,
        include=["reasoning.encrypted_content"],
        streaming=True,
        **(_offline() if settings.provider == "offline" else _online(settings)),
    )


def _offline() -> dict[str, Any]:
    import httpx2

    from offline_model import OfflineTransport

    return {
        "api_key": "offline",
        "base_url": OFFLINE_URL,
        "http_socket_options": (),  # else a proxy in the environment makes the client complain
        "http_async_client": httpx2.AsyncClient(transport=OfflineTransport()),
    }


def _online(settings: Settings) -> dict[str, Any]:
    if settings.openai_api_key is None:
        raise Problem(
            f"SUPPORT_MODEL is {settings.model}, but OPENAI_API_KEY is not set. Nothing was asked;"
            " set the key, or SUPPORT_MODEL=offline."
        )
    url = settings.openai_base_url
    return {"api_key": settings.openai_api_key, "base_url": str(url).rstrip("/") if url else None}


def _with_tools(model: BaseChatModel, tools: list[dict[str, Any]]) -> Runnable[Any, AIMessage]:
    try:
        return model.bind_tools(tools) if tools else model
    except NotImplementedError:  # a model that cannot call tools still answers
        return model


def _broken_off(error: BaseException | None) -> str | None:
    """Why a response that had begun is not whole; None when none had begun."""
    while error is not None:
        if "complete message body" in str(error) or type(error).__name__ == "ReadError":
            return "The connection was lost before the response ended."
        if "No generations found in stream" in str(error):
            return "What the server sent was not a response of a model."
        error = error.__cause__
    return None


def _reason(error: Exception) -> str:
    """What went wrong, without the vendor's text, which may repeat the request or the key."""
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        return f"The model's server refused the key (HTTP {status})."
    if status is not None:
        return f"The model's server answered with an error (HTTP {status})."
    return f"The model could not be reached ({type(error).__name__})."
