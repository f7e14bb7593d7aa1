"""ChatOpenAI without two walks through every message of the conversation."""

from contextlib import suppress
from functools import cache
from typing import Any

from langchain_core.messages import content
from langchain_openai import ChatOpenAI

with suppress(AttributeError):
    # LangChain works the same five names out of type hints anew, for each block of each message:
    # a third of a long turn's CPU.
    content._get_data_content_block_types = cache(content._get_data_content_block_types)


class LeanChatOpenAI(ChatOpenAI):
    """Asks as ChatOpenAI does.

    The SDK holds each message and each part of a tool's schema against each of some thirty types,
    to rename fields that have no other name: most of a long turn's CPU. An `extra_body` it adds to
    the request as it is.
    """

    def _get_request_payload(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(*arguments, **options)
        if "input" not in payload:
            return payload
        ready = {name: payload.pop(name) for name in ("input", "tools") if name in payload}
        return payload | {"extra_body": ready | payload.get("extra_body", {})}
