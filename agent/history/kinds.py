"""The kinds of problems that a history can have: what each says, and what is done about it."""

from dataclasses import dataclass

# What is wrong, and what to do.
KINDS = {
    "missing_result": "Call {id} has no result: put its real result right behind its response.",
    "mismatched_id": "A result names {id}, which no call has, where call {other} has none: return"
    " the real result of {other} under its own id.",
    "orphan_result": "The result {id} belongs to no call before it: take it out, or bring back the"
    " response that holds its call.",
    "duplicate_result": "Call {id} has another result already: keep the real one alone.",
    "duplicate_id": "Two calls of one response share the id {id}, so no result can be told apart:"
    " ask the model again for this response.",
    "repeated_id": "An earlier response has a call {id} too: leave the earlier turns out.",
    "empty_id": "An id is missing: put in the model's own id of the call, never a new one.",
    "id_too_long": "The id {id} has more than 64 characters: send a shorter one, the same in call"
    " and result.",
    "id_characters": "The id {id} holds other characters than letters, digits, _ and -: send one"
    " without, the same in call and result.",
    "item_id_as_call_id": "A result names {id}, the id of an item: it must name its call, {other}.",
    "call_id_as_item_id": "The item of call {id} has {other} as its own id, which must begin with"
    " `fc`: leave the item's `id` out, not its call_id.",
    "result_before_call": "The result of call {id} stands before it: move it behind the response.",
    "text_between": "Something stands between call {id} and its result: move the result behind the"
    " response.",
    "results_spread": "The results of a response are spread over messages: put {id} in the first.",
    "arguments_not_json": "The arguments of call {id} are not one strict JSON object: ask the model"
    " again; do not guess them.",
    "incomplete_response": "This response did not end as completed ({other}): take it out and ask"
    " the model again; nothing of it may run.",
}  # fmt: skip
# What a repair did about a result.
MOVED, OUT = "was moved behind its response", "was taken out"
REPAIRED = {
    "missing_result": "was put behind its response",
    "mismatched_id": f"{OUT}: call {{other}} has its own now",
    "orphan_result": f"{OUT}: it belongs to no call",
    "duplicate_result": f"{OUT}: the call has another",
    "item_id_as_call_id": "names its call {other} now",
    **dict.fromkeys(("result_before_call", "text_between", "results_spread"), MOVED),
}
# Where one vendor's servers take what others refuse.
OPENAIS = "OpenAI's protocols allow it, Messages does not."
LENIENT = "Some servers read them leniently, each in its own way."
DIFFER = {
    ("text_between", "responses"): "OpenAI pairs by call_id wherever it stands; others do not.",
    ("repeated_id", "messages"): OPENAIS,
    ("id_characters", "messages"): OPENAIS,
    ("results_spread", "messages"): "Some servers join the messages themselves.",
    ("arguments_not_json", "chat"): LENIENT,
    ("arguments_not_json", "responses"): LENIENT,
}


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

    def __str__(self) -> str:
        return f"{self.message} {self.vendors}".rstrip()

    @property
    def repaired(self) -> str:
        """What was done about it, where something can be."""
        done = REPAIRED.get(self.kind, "was left").format(other=shown(self.other))
        return f"The result {shown(self.call_id)} {done}."


def shown(id_: str) -> str:
    """An id within a sentence: bounded, and without what a terminal obeys."""
    short = id_ if len(id_) <= 80 else f"{id_[:40]}…{id_[-20:]}"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in short)
