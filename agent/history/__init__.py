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
from types import MappingProxyType
from typing import Any

from agent.history.converting import Conversion, Converted, Lost
from agent.history.findings import Examination, Progress
from agent.history.kinds import KINDS, Finding
from agent.history.mending import Known, Mending, Repaired
from agent.history.model import History, NotHistory, Part
from agent.history.readers import WRONG_FORM, read
from agent.wire.names import Name

__all__ = [
    "KINDS", "Converted", "Finding", "History", "Lost", "NotHistory", "Repaired",
    "check", "convert", "read", "repair",
]  # fmt: skip

NOT_EXECUTED = {
    "status": "error",
    "error": {"kind": "not_executed", "message": "This call was not executed."},
}


def check(history: Any, *, progress: Progress = lambda done, of: None) -> list[Finding]:
    """What an API would refuse, in the order of the messages; empty for a valid history.

    progress: is told after each message how many were checked, and of how many.
    """
    return Examination(read(history)).run(progress).findings


def repair(
    history: Any,
    results: Mapping[str, Any] | Known = MappingProxyType({}),
    *,
    not_executed: Collection[str] = (),
) -> Repaired:
    """The history with the real results in their places, and without results of no call.

    results: what each call really returned, any JSON value, by call id; or a function of the call
    that raises KeyError where its result is not known. not_executed: ids of calls that certainly
    never ran; their result says so. A call whose result nobody knows stays as it is, in `left`;
    so does one whose id does not say which of several it is.
    """
    examined = Examination(read(history)).run(lambda done, of: None)
    given = {} if callable(results) else results
    by_id = {**dict.fromkeys(not_executed, NOT_EXECUTED), **given}
    unanswered = Counter(call.part.id for call in examined.calls if not call.result)

    def known(call: Part) -> Any:
        if callable(results) and call.id not in by_id:
            return results(call)
        if unanswered[call.id] > 1:
            raise KeyError(call.id)
        return by_id[call.id]

    mending = Mending(examined, known)
    document = mending.document()
    return Repaired(
        document, mending.findings_done(), check(read(document, examined.history.protocol))
    )


def convert(history: Any, to: Name) -> Converted:
    """The history in another protocol, and what that one cannot hold.

    Ids stay as they are; those that the other protocol refuses are named. A request stays a
    request; a response becomes the messages that a next request says of it.
    """
    read_one = read(history)
    if read_one.protocol == to:
        return Converted(read_one.document, [])
    try:
        return Conversion(read_one, to).converted()
    except WRONG_FORM:
        raise NotHistory("Some of its options do not have the form of its protocol.") from None
