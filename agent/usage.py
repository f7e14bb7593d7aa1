"""The tokens of a turn, added up over its rounds."""

from langchain_core.messages import AIMessage

NOTHING = {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "reasoning_tokens": 0}


def add(sum_: dict[str, int], response: AIMessage) -> dict[str, int]:
    """`input_tokens` includes the cached ones, `output_tokens` those spent on reasoning."""
    used = response.usage_metadata
    if used is None:
        return sum_
    return {
        "input_tokens": sum_["input_tokens"] + used["input_tokens"],
        "output_tokens": sum_["output_tokens"] + used["output_tokens"],
        "cached_tokens": sum_["cached_tokens"]
        + (used.get("input_token_details", {}).get("cache_read") or 0),
        "reasoning_tokens": sum_["reasoning_tokens"]
        + (used.get("output_token_details", {}).get("reasoning") or 0),
    }
