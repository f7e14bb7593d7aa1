"""Results merge the same way in whatever order they arrive."""

from functools import reduce
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.calls import ToolResult
from agent.state import ConflictingResults, Results, merge_results
from tests.strategies import SHORT

TIMES = st.sampled_from(["2026-11-30T12:00:00+00:00", "2026-11-30T12:00:01+00:00"])


@st.composite
def results(draw: st.DrawFn) -> Results:
    """Results of some calls. What a call gives depends on its key alone, when it ran does not."""
    keys = draw(st.sets(st.sampled_from(["1/a", "1/b", "2/a", "10/a", "1/c/d"])))
    return {
        key: ToolResult(
            call_id=key.partition("/")[2],
            tool="get_order",
            subject=key,
            subject_name="order_id",
            arguments={"order_id": key},
            status="ok",
            data={"order_id": key},
            started_at=draw(TIMES),
            finished_at=draw(TIMES),
        )
        for key in keys
    }


@SHORT
@given(one=results(), other=results())
def test_merging_is_commutative(one: Results, other: Results) -> None:
    assert merge_results(one, other) == merge_results(other, one)


@SHORT
@given(one=results(), two=results(), three=results())
def test_merging_is_associative(one: Results, two: Results, three: Results) -> None:
    left = merge_results(merge_results(one, two), three)
    assert left == merge_results(one, merge_results(two, three))


@SHORT
@given(one=results(), other=results())
def test_merging_is_idempotent_and_loses_nothing(one: Results, other: Results) -> None:
    both = merge_results(one, other)
    assert merge_results(both, both) == merge_results(both, other) == both
    assert set(both) == set(one) | set(other)
    assert merge_results(one, {}) == merge_results({}, one) == one


@SHORT
@given(parts=st.lists(results(), min_size=1, max_size=4))
def test_the_order_of_arrival_cannot_matter(parts: list[Results]) -> None:
    nothing: Results = {}
    merged: list[Results] = [reduce(merge_results, order, nothing) for order in permutations(parts)]
    assert all(each == merged[0] for each in merged)


@SHORT
@given(one=results().filter(bool), data=st.data())
def test_two_different_results_of_one_call_stop_the_run(one: Results, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(one)))
    for other in (
        {**one[key], "data": {"order_id": "another"}},
        {**one[key], "status": "error"},
        {**one[key], "call_id": "another"},
    ):
        with pytest.raises(ConflictingResults, match=key):
            merge_results(one, {key: other})  # type: ignore[dict-item]


@SHORT
@given(one=results(), other=results())
def test_merging_changes_nothing_that_it_was_given(one: Results, other: Results) -> None:
    before = dict(one), dict(other)
    merge_results(one, other)
    assert (one, other) == before
