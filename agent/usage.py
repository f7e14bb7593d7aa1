"""What a turn used: the tokens that each response of a model took, and what they cost.

`input_tokens` includes the cached ones, `output_tokens` those spent on reasoning, whichever way a
vendor counts.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeGuard

from typing_extensions import TypedDict

from agent.pricing import price

if TYPE_CHECKING:  # the operator's commands, which add up what was spent, load no model's client
    from langchain_core.messages import AIMessage

    from agent.calls import ToolResult
    from agent.state import Results
    from tools.tool import Tool

Usage = dict[str, int]
NOTHING = {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "reasoning_tokens": 0}
WRITTEN = "cache_write_tokens"
INTO_CACHE = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
NOT_MADE = {"not_executed", "unknown_tool", "invalid_arguments", "rejected", "awaiting_approval"}


class Spent(TypedDict):
    """One response of the model, used or not.

    ended: "ok", or why nothing of it was used. usage: None where the vendor reported none.
    cost_usd: None where the model's price is not known, or the usage is not.
    """

    round: int
    ended: str
    model: str
    usage: Usage | None
    cost_usd: str | None


# In the place of what a version that did not keep it spent.
NEVER_KEPT = (Spent(round=0, ended="ok", model="", usage=None, cost_usd=None),)


def spent(round: int, ended: str, models: Iterable[str], usage: Usage | None) -> Spent:
    """models: what the model is called, the best name first; the first that has a price counts."""
    now, known = datetime.now(UTC), usage or dict.fromkeys(NOTHING, 0)
    prices = [(model, price(model, known, now)) for model in models if model]
    model, cost = next(((m, cost) for m, cost in prices if cost is not None), prices[0])
    text = None if cost is None or usage is None else plain(cost)
    return Spent(round=round, ended=ended, model=model, usage=usage, cost_usd=text)


def total(all_: Iterable[Spent]) -> Usage:
    """The tokens of all responses that the vendor reported, without those written to a cache."""
    used = [each["usage"] or {} for each in all_]
    return {name: sum(usage.get(name, 0) for usage in used) for name in NOTHING}


def cost(all_: Iterable[Spent], results: "Results", tools: "Mapping[str, Tool]") -> Decimal | None:
    """What responses and calls cost in US dollars; None where part of it is not known.

    A response that broke off before its usage came adds nothing, since nobody knows what is billed;
    where no other came, nothing is known.
    """
    all_ = list(all_)
    known = [each for each in all_ if each["usage"] is not None or each["ended"] == "ok"]
    if any(each["cost_usd"] is None for each in known) or (all_ and not known):
        return None
    return sum((Decimal(each["cost_usd"] or 0) for each in known), _of_tools(results, tools))


def _of_tools(results: "Results", tools: "Mapping[str, Tool]") -> Decimal:
    made = [(tools[r["tool"]], r) for r in results.values() if r["tool"] in tools]
    return sum((Decimal(tool.cost or 0) for tool, r in made if _was_made(tool, r)), Decimal(0))


def _was_made(tool: "Tool", result: "ToolResult") -> bool:
    """A write whose receipt is told again was not."""
    again = tool.writes and result["status"] == "ok" and result["data"].get("repeated")
    return not again and result.get("error", {}).get("kind") not in NOT_MADE


def model_of(message: "AIMessage | None") -> str:
    """PROVIDER:NAME as a response says it; "" where it does not."""
    said = message.response_metadata if message else {}
    provider, name = said.get("model_provider"), said.get("model_name")
    return f"{provider}:{name}" if provider and name else ""


def plain(amount: Decimal) -> str:
    return f"{amount.normalize():f}"


def of_message(message: "AIMessage") -> Usage | None:
    """What LangChain says that a whole response used."""
    used: Any = message.usage_metadata
    if not used:
        return None
    into, out = (_details(used.get(f"{which}_token_details")) for which in ("input", "output"))
    written = sum(_count(into.get(name)) for name in INTO_CACHE)
    return _usage(used, into.get("cache_read"), out.get("reasoning"), written)


def of_body(told: Any) -> Usage | None:
    """What a vendor itself says that a response used, in the words of any protocol; None where that
    is no count."""
    if not isinstance(told, dict) or not {"input_tokens", "prompt_tokens"} & set(told):
        return None
    renamed: dict[str, Any] = {
        "input_tokens": told.get("input_tokens", told.get("prompt_tokens")),
        "output_tokens": told.get("output_tokens", told.get("completion_tokens", 0)),
    }
    if not all(map(_is_count, renamed.values())):
        return None
    into = _details(told.get("input_tokens_details") or told.get("prompt_tokens_details"))
    out = _details(told.get("output_tokens_details") or told.get("completion_tokens_details"))
    beside = [_count(told.get(f"cache_{done}_input_tokens")) for done in ("read", "creation")]
    renamed["input_tokens"] += sum(beside)  # Messages
    read = beside[0] or into.get("cached_tokens")
    return _usage(renamed, read, out.get("reasoning_tokens"), beside[1])


def _usage(used: Mapping[str, Any], cached: object, reasoning: object, written: int) -> Usage:
    return {
        "input_tokens": _count(used.get("input_tokens")),
        "output_tokens": _count(used.get("output_tokens")),
        "cached_tokens": _count(cached),
        "reasoning_tokens": _count(reasoning),
        WRITTEN: written,
    }


def _details(reported: Any) -> Mapping[str, Any]:
    return reported if isinstance(reported, dict) else {}


def _count(reported: object) -> int:
    """What a server says it counted; nothing where that is no count."""
    return reported if _is_count(reported) else 0


def _is_count(reported: object) -> TypeGuard[int]:
    return type(reported) is int and 0 <= reported < 2**40
