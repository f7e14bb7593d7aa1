"""What a response of a model costs, by the prices that genai-prices carries."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal


def price(model: str, usage: Mapping[str, int], at: datetime) -> Decimal | None:
    """US dollars for one response at a time; None where the model's price is not known.

    model: PROVIDER:NAME. usage: as `agent.usage` counts, cached tokens among the `input_tokens`.
    """
    provider, _, name = model.partition(":")
    if not name:
        return None
    from genai_prices import Usage, calc_price  # its data take a tenth of a second to load

    counted = Usage(
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
        cache_read_tokens=min(usage.get("cached_tokens", 0), usage["input_tokens"]),
        cache_write_tokens=usage.get("cache_write_tokens", 0),
    )
    try:
        found = calc_price(counted, name.strip(), provider_id=provider, genai_request_timestamp=at)
    except (LookupError, ValueError):
        return None
    return found.total_price


def cost(model: str, usage: Mapping[str, int]) -> Decimal | None:
    """The same now, where the offline model, which nobody bills, costs nothing."""
    if model == "offline":
        return Decimal(0)
    return price(model, usage, datetime.now(UTC))
