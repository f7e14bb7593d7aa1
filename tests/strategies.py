"""What Hypothesis draws for these tests, and how many examples it tries.

`SHORT` is for every run of the suite; `LONG` stands on tests that are marked `long`.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.completion import CALLS, Call, Run

# A checkpoint takes any text for an id; a vendor takes what looks like one.
ANY_ID = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1)
VENDORS_ID = st.from_regex(r"\Acall_[0-9A-Za-z]{1,16}\Z")

_ALLOWED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]

SHORT = settings(max_examples=40, deadline=None, suppress_health_check=_ALLOWED)
LONG = settings(max_examples=1000, deadline=None, suppress_health_check=_ALLOWED)


@st.composite
def runs(draw: st.DrawFn, most: int = 40, each: st.SearchStrategy[str] = ANY_ID) -> Run:
    """Up to `most` calls, equal ones among them, some failing, finishing in any order."""
    drawn = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=most))
    ids = draw(st.lists(each, min_size=len(drawn), max_size=len(drawn), unique=True))
    calls = [Call(id_, tool, arguments) for id_, (tool, arguments) in zip(ids, drawn, strict=True)]
    return Run(
        calls=calls,
        finish=draw(st.permutations(ids)),
        broken=draw(st.sets(st.sampled_from(ids))),
        spoken=draw(st.permutations(ids)),
    )
