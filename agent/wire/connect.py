"""Which chat model the settings name. Its vendor's client is imported when it is needed."""

import logging
from importlib import import_module
from typing import Any

from langchain_core.language_models import BaseChatModel

from agent.problems import Problem
from agent.settings import Settings

log = logging.getLogger(__name__)

OFFLINE_URL = "http://offline.invalid/v1"


def connect(settings: Settings) -> BaseChatModel:
    """The model that SUPPORT_MODEL names.

    Raises Problem when its key is missing, or what another provider's client needs.
    """
    if settings.provider not in ("offline", "openai"):
        return _of_another_provider(settings)
    from langchain_openai import ChatOpenAI

    name = settings.model.partition(":")[2] or "offline"
    return ChatOpenAI(
        model_name=name,
        streaming=True,
        stream_usage=True,
        **_protocol(settings),
        **(_offline() if settings.provider == "offline" else _online(settings)),
    )


def _protocol(settings: Settings) -> dict[str, Any]:
    """Chat Completions; or Responses, kept at the vendor or sent whole every time.

    A vendor that keeps nothing hands out the model's reasoning encrypted, to be sent back.
    """
    if settings.openai_api == "chat":
        return {"use_responses_api": False}
    responses = {"use_responses_api": True, "output_version": "responses/v1"}
    if settings.store_responses:
        return {**responses, "store": True, "use_previous_response_id": True}
    return {**responses, "store": False, "include": ["reasoning.encrypted_content"]}


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


def _of_another_provider(settings: Settings) -> BaseChatModel:
    """Through LangChain's own table of providers. Their words of an error may hold a key."""
    provider, _, name = settings.model.partition(":")
    try:
        init_chat_model = import_module("langchain.chat_models").init_chat_model
        model: BaseChatModel = init_chat_model(name, model_provider=provider)
    except ImportError as error:
        package = "langchain" if (error.name or "").split(".")[0] == "langchain" else "its client"
        raise Problem(
            f"SUPPORT_MODEL is {settings.model}, and {package} is not installed. Nothing was asked;"
            f" install langchain and the LangChain package of {provider}"
            f" (such as langchain-{provider.replace('_', '-')})."
        ) from None
    except Exception as error:
        raise Problem(
            f"SUPPORT_MODEL is {settings.model}, and LangChain makes no client of that"
            f" ({type(error).__name__}). Nothing was asked; see that it knows the provider, and"
            " that the provider's key is set."
        ) from None
    log.warning("%s is asked through its own client, without a guard on the wire", settings.model)
    return model
