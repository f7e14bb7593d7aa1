"""Anthropic's client on a transport of ours, which LangChain's class takes no option for."""

from functools import cached_property
from typing import Any

import anthropic
import httpx2
from langchain_anthropic import ChatAnthropic
from pydantic import PrivateAttr


class GuardedAnthropic(ChatAnthropic):
    _http: httpx2.AsyncClient | None = PrivateAttr(None)

    @classmethod
    def over(cls, http: httpx2.AsyncClient, **options: Any) -> "GuardedAnthropic":
        """The chat model that asks through the given HTTP client."""
        model = cls(**options)
        model._http = http
        return model

    @cached_property
    def _async_client(self) -> anthropic.AsyncClient:
        return anthropic.AsyncClient(**self._client_params, http_client=self._http)
