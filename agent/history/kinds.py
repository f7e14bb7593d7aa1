"""The kinds of problems that a history can have: what each says, and what is done about it."""

from dataclasses import dataclass
from typing import NamedTuple


class Says(NamedTuple):
    """problem: what is wrong and what to do. repaired: what was done about it, "" if nothing is."""

    problem: str
    repaired: str = ""


KINDS = {
    "missing_result": Says(
        "Call {id} has no result: put its real result behind its response before anything else.",
        "The given result of call {id} was put behind its response.",
    ),
    "mismatched_id": Says(
        "A result names {id}, which no call has, where call {other} has none: return the real"
        " result of {other} under its own id.",
        "The result under the foreign id {id} was taken out: call {other} has its own now.",
    ),
    "orphan_result": Says(
        "The result {id} belongs to no call before it: take it out, or bring back the response"
        " that holds its call.",
        "The result {id}, which belongs to no call, was taken out.",
    ),
    "duplicate_result": Says(
        "Call {id} has another result already: keep the real one and take the other out.",
        "Another result of call {id} was taken out.",
    ),
    "duplicate_id": Says(
        "Two calls of one response share the id {id}, so no result can be told apart: ask the"
        " model again for this response."
    ),
    "repeated_id": Says(
        "An earlier response has a call {id} as well: ids must not come again in a conversation;"
        " leave the earlier turns out."
    ),
    "empty_id": Says("An id is missing: put in the model's own id of the call, never a new one."),
    "id_too_long": Says(
        "The id {id} has more than 64 characters: send a shorter one, the same in call and result."
    ),
    "id_characters": Says(
        "The id {id} holds other characters than letters, digits, _ and -: send one without, the"
        " same in call and result."
    ),
    "item_id_as_call_id": Says(
        "A result names {id}, which is the id of an item: it must name the call_id, {other}.",
        "The result that named the item {id} names its call {other} now.",
    ),
    "call_id_as_item_id": Says(
        "The item of call {id} has {other} as its own id, which must begin with `fc`: leave the"
        " item's `id` out, not its call_id."
    ),
    "result_before_call": Says(
        "The result of call {id} stands before it: move it behind the response.",
        "The result of call {id} was moved behind its response.",
    ),
    "text_between": Says(
        "Something stands between call {id} and its result: move the result behind the response.",
        "The result of call {id} was moved behind its response.",
    ),
    "results_spread": Says(
        "The results of one response are spread over messages: put that of {id} into the first.",
        "The result of call {id} was put into one message with the others.",
    ),
    "arguments_not_json": Says(
        "The arguments of call {id} are not one strict JSON object: ask the model again; do not"
        " guess them."
    ),
    "incomplete_response": Says(
        "This response did not end as completed ({other}): take it out and ask the model again;"
        " nothing of it may run."
    ),
}  # fmt: skip
# Where one vendor's servers take what others refuse.
DIFFER = {
    ("text_between", "responses"): "OpenAI pairs by call_id wherever a result stands; others do"
    " not.",
    ("repeated_id", "messages"): "OpenAI's protocols allow it, Messages does not.",
    ("results_spread", "messages"): "Some servers join the messages themselves.",
    ("id_characters", "messages"): "OpenAI's protocols allow it, Messages does not.",
    ("arguments_not_json", "chat"): "Some servers read them leniently, each in its own way.",
    ("arguments_not_json", "responses"): "Some servers read them leniently, each in its own way.",
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One problem: its kind, its place in the list and in the document, the id, and what to do.

    vendors: where servers differ on it, else "".
    """

    kind: str
    index: int
    path: str
    call_id: str
    message: str
    vendors: str = ""
    other: str = ""

    @property
    def repaired(self) -> str:
        return KINDS[self.kind].repaired.format(id=shown(self.call_id), other=shown(self.other))


def shown(id_: str) -> str:
    """An id within a sentence: bounded, and without what a terminal obeys."""
    short = id_ if len(id_) <= 80 else f"{id_[:40]}…{id_[-20:]}"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in short)
