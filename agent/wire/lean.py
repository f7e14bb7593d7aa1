"""ChatOpenAI without the SDK's walk through every message of the conversation."""

from typing import Any

from langchain_openai import ChatOpenAI


class LeanChatOpenAI(ChatOpenAI):
    """Asks as ChatOpenAI does.

    The SDK holds each item of `input` against each of some thirty types, to rename fields that have
    no other name: most of a long turn's CPU. What is no list it sends as it is.
    """

    def _get_request_payload(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(*arguments, **options)
        if isinstance(payload.get("input"), list):
            payload["input"] = tuple(payload["input"])
        return payload
