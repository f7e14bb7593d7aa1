"""The tokens of a turn, added up over its rounds."""

from typing import Any

from langchain_core.messages import AIMessage

NOTHING = {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "reasoning_tokens": 0}


def add(sum_: dict[str, int], response: AIMessage) -> dict[str, int]:
    """`input_tokens` includes the cached ones, `output_tokens` those spent on reasoning."""
    used: Any = response.usage_metadata or {}
    more = {
        "input_tokens": used.get("input_tokens"),
        "output_tokens": used.get("output_tokens"),
        "cached_tokens": (used.get("input_token_details") or {}).get("cache_read"),
        "reasoning_tokens": (used.get("output_token_details") or {}).get("reasoning"),
    }
    return {name: sum_[name] + _count(more[name]) for name in sum_}


def _count(reported: object) -> int:
    """What a server says it counted; nothing where that is no count."""
    return reported if isinstance(reported, int) and 0 <= reported < 2**40 else 0
