"""Which chat model the settings name. Its vendor's client is imported when it is needed."""

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

import httpx2
from langchain_core.language_models import BaseChatModel

from agent import progress
from agent.problems import Problem
from agent.settings import Settings
from agent.wire.guard import Guard, Network

log = logging.getLogger(__name__)

OFFLINE_URL = "http://offline.invalid/v1"
PROXIES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def connect(settings: Settings, network: httpx2.AsyncBaseTransport | None = None) -> BaseChatModel:
    """The model that SUPPORT_MODEL names, behind a guard.

    network: carries requests to OpenAI's server, or to the offline model, instead of the usual.
    Raises Problem when its key is missing, or what another provider's client needs.
    """
    if settings.provider == "anthropic":
        return _anthropic(settings)
    if settings.provider not in ("offline", "openai"):
        return _of_another_provider(settings)
    from agent.wire.lean import LeanChatOpenAI

    name = settings.model.partition(":")[2] or "offline"
    where = _offline if settings.provider == "offline" else _online
    return LeanChatOpenAI(
        model_name=name,
        streaming=True,
        stream_usage=True,
        stream_chunk_timeout=None,  # the guard gives nothing before it has all
        http_socket_options=(),  # else a proxy in the environment makes the client complain
        # Nobody asks it: it has no guard. One of its own would heed the environment, even offline.
        http_client=httpx2.Client(transport=httpx2.BaseTransport(), trust_env=False),
        **_protocol(settings),
        **where(settings, network),
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


def _offline(settings: Settings, network: httpx2.AsyncBaseTransport | None) -> dict[str, Any]:
    from offline_model import OfflineTransport

    http = _guarded(network or OfflineTransport(), settings)
    return {"api_key": "offline", "base_url": OFFLINE_URL, "http_async_client": http}


def _online(settings: Settings, network: httpx2.AsyncBaseTransport | None) -> dict[str, Any]:
    from openai import DefaultAsyncHttpxClient

    return {
        **_server(settings, "openai"),
        "organization": settings.openai_org_id,
        "http_async_client": _guarded(network or _network(DefaultAsyncHttpxClient), settings),
    }


def _anthropic(settings: Settings) -> BaseChatModel:
    options = {**_server(settings, "anthropic"), "model": settings.model.partition(":")[2]}
    try:
        import anthropic
        from langchain_anthropic import ChatAnthropic
    except ImportError:
        raise Problem(
            f"SUPPORT_MODEL is {settings.model}, and its client is not installed. Nothing was"
            " asked; install langchain-anthropic, or this package with its extra `anthropic`."
        ) from None
    http = _guarded(_network(anthropic.DefaultAsyncHttpxClient), settings)
    model = ChatAnthropic(streaming=True, stream_usage=True, **options)
    # LangChain's class takes no option for it; the client that it asks is made when it is needed.
    model._async_client = anthropic.AsyncClient(**model._client_params, http_client=http)
    return model


def _server(settings: Settings, vendor: str) -> dict[str, Any]:
    """Key and address. Raises Problem without a key."""
    key, url = (getattr(settings, f"{vendor}_{name}") for name in ("api_key", "base_url"))
    if key is None:
        raise Problem(
            f"SUPPORT_MODEL is {settings.model}, but {vendor.upper()}_API_KEY is not set."
            " Nothing was asked; set the key, or SUPPORT_MODEL=offline."
        )
    return {"api_key": key, **({"base_url": str(url).rstrip("/")} if url else {})}


def _network(client: Callable[[], Any]) -> Network:
    """Raises Problem where the environment names a proxy or certificates that are of no use."""
    try:
        return Network(client())
    except (ImportError, OSError, ValueError) as error:
        blamed = CERTIFICATES if isinstance(error, OSError) else PROXIES
        named = " or ".join(sorted(name for name in os.environ if name.upper() in blamed))
        raise Problem(
            f"{named} cannot be used ({type(error).__name__}). Nothing was asked; correct or unset"
            " it. A socks5:// proxy needs the package socksio."
        ) from None


def _guarded(inner: httpx2.AsyncBaseTransport, settings: Settings) -> httpx2.AsyncClient:
    guard = Guard(inner, settings.stall_timeout, _named, settings.record_streams)
    return httpx2.AsyncClient(transport=guard)


def _named(call_id: str, tool: str) -> None:
    # Outside of a graph, as when a model is checked, nobody watches.
    with suppress(RuntimeError):
        progress.tell("call_named", call_id, tool, "", "named")


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
            " install langchain and the package that LangChain's documentation names for"
            f" {provider}."
        ) from None
    except Exception as error:
        raise Problem(
            f"SUPPORT_MODEL is {settings.model}, and LangChain makes no client of that"
            f" ({type(error).__name__}). Nothing was asked; see that it knows the provider, and"
            " that the provider's key is set."
        ) from None
    log.warning("%s is asked through its own client, without a guard on the wire", settings.model)
    return model
