"""What tokens cost: exact, and never 0 where nobody knows."""

from decimal import Decimal

import pytest

from agent.pricing import cost

USED = {"input_tokens": 1_000_000, "output_tokens": 100_000, "cached_tokens": 0}


def test_a_known_model_costs_what_its_vendor_lists() -> None:
    assert cost("openai:gpt-4o-mini", USED) == Decimal("0.21")


def test_cached_tokens_cost_less() -> None:
    full, cached = (cost("openai:gpt-4o-mini", USED | {"cached_tokens": n}) for n in (0, 500_000))
    assert full is not None
    assert cached is not None
    assert 0 < cached < full


@pytest.mark.parametrize("model", ["openai:invented", "nobody:gpt-4o-mini", "openai:"])
def test_an_unknown_price_is_no_price(model: str) -> None:
    assert cost(model, USED) is None


def test_the_offline_model_costs_nothing() -> None:
    assert cost("offline", USED) == 0
