"""The history doctor: checks, repairs and converts what goes over the wire to a model.

    from agent.history import check, convert, repair

    for finding in check(request):              # a request, a response, or a list of messages
        print(finding.path, finding.message)
    repaired = repair(request, {"call_1": {"stock": 7}})    # the real results, by call id
    converted = convert(request, "messages")

A history is parsed JSON in the form of OpenAI's Chat Completions or Responses, or of Anthropic's
Messages. What is given is never changed. All three raise NotHistory, a sentence for a person, for
what is none of these. `agent.history.langchain` checks a history before the agent sends it.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from agent.history.converting import Conversion, Converted, Lost
from agent.history.findings import Examination, Progress
from agent.history.kinds import KINDS, Finding
from agent.history.mending import Known, Mending, Repaired
from agent.history.model import History, NotHistory, Part
from agent.history.readers import read
from agent.wire.names import Name

__all__ = [
    "KINDS", "Converted", "Finding", "History", "Lost", "NotHistory", "Part", "Repaired",
    "check", "convert", "read", "repair",
]  # fmt: skip

NEVER_RAN = {"kind": "not_executed", "message": "This call was not executed."}
NOT_EXECUTED = {"status": "error", "error": NEVER_RAN}


def check(history: Any, *, progress: Progress | None = None) -> list[Finding]:
    """What an API would refuse, in the order of the messages; empty for a valid history.

    progress: is told after each message how many were checked, and of how many.
    """
    return Examination(read(history)).run(progress).findings


def repair(
    history: Any,
    results: Mapping[str, Any] = MappingProxyType({}),
    *,
    not_executed: Collection[str] = (),
    kept: Known | None = None,
) -> Repaired:
    """The history with the real results in their places, and without results of no call.

    results: what each call really returned, any JSON value, by call id. not_executed: ids of calls
    that certainly never ran; their results say so. kept: is asked for all others; it raises
    KeyError for a call whose result it does not know.

    A call whose result nobody knows stays as it is, in `left`; so does one whose id does not say
    which of several it is.
    """
    examined = Examination(read(history)).run()
    mending, given = Mending(examined), {**dict.fromkeys(not_executed, NOT_EXECUTED), **results}
    times = Counter(called.part.id for called in examined.calls if mending.is_open(called))
    unused = set(given)
    for called in filter(mending.needs, examined.calls):
        if times[called.part.id] == 1 and called.part.id in given:
            mending.fill(called, given[called.part.id])
            unused.discard(called.part.id)
        elif kept and called.part.id not in given:
            with suppress(KeyError):
                mending.fill(called, kept(called.part))
    document = mending.document()
    done = [each for each in examined.findings if (each.kind, each.path) in mending.done]
    left = check(read(document, examined.history.protocol))
    return Repaired(document, done, left, sorted(unused))


def convert(history: Any, to: Name) -> Converted:
    """The history in another protocol, and what is not in it: see `Converted`.

    Ids stay as they are; those that the other protocol refuses are named. A request stays a
    request; a response becomes the messages that a next request says of it.
    """
    read_one = read(history)
    if read_one.protocol == to:
        return Converted(read_one.document, [])
    return Conversion(read_one, to).converted()
