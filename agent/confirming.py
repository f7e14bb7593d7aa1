"""The customer's yes to a write: a pause of the graph, bound to one call and its arguments.

The pause asks in the form of LangChain's human-in-the-loop middleware, so that inbox interfaces can
show it. It is answered by `{"decision": "confirm" | "reject", "call_id", "digest", "reason"?}`, or
by that schema's own `approve` and `reject`. Any other answer changes nothing: it is asked again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NotRequired

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import (
    CONFIG_KEY_CHECKPOINT_MAP,
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_CHECKPOINTER,
    CONFIG_KEY_SCRATCHPAD,
    CONFIG_KEY_TASK_ID,
    NS_SEP,
    TASKS,
)
from langgraph.pregel._task_status import read_task_statuses
from langgraph.types import interrupt
from pydantic_core import to_json
from typing_extensions import TypedDict

from agent.ledger_records import Write
from tools.locales import clean

UNCLEAR = "The answer was not understood, so nothing was done. Confirm or reject this call."
OTHER = "The answer is for another call or for other arguments, so nothing was done."
EDITED = "A call is confirmed or rejected as it is; nothing was done."
LONGEST = 1000  # characters of a reason
STOCK = {"approve": True, "reject": False}
OWN = {"confirm": True, "reject": False}


class Confirmation(TypedDict):
    """What a pause asks. receipt: of the first time, where the same is to be done once more.

    problem: why the last answer did not count.
    """

    action_requests: list[dict[str, Any]]
    review_configs: list[dict[str, Any]]
    call_id: str
    tool: str
    subject: str
    arguments: dict[str, Any]
    digest: str
    locale: str
    receipt: NotRequired[dict[str, Any]]
    problem: NotRequired[str]


@dataclass(frozen=True)
class Decision:
    confirmed: bool
    reason: str = ""


def confirmation(
    write: Write, question: str, locale: str, receipt: Mapping[str, Any] | None = None
) -> Confirmation:
    """question: in the language `locale`."""
    tool, whose = write.tool.name, (write.customer, write.thread, write.call)
    asked = Confirmation(
        action_requests=[{"name": tool, "args": write.plain, "description": question}],
        review_configs=[{"action_name": tool, "allowed_decisions": list(STOCK)}],
        call_id=write.call_id,
        tool=tool,
        subject=write.subject,
        arguments=write.plain,
        locale=locale,
        digest=sha256(to_json((whose, write.call_id, tool, write.plain, receipt))).hexdigest(),
    )
    return {**asked, "receipt": dict(receipt)} if receipt else asked


def decided(asked: Confirmation) -> Decision:
    """Pauses until the customer has decided. What stands before it runs again on each answer."""
    decision = read(interrupt(asked), asked)
    while isinstance(decision, str):
        decision = read(interrupt({**asked, "problem": decision}), asked)
    return decision


def read(answer: object, asked: Confirmation) -> Decision | str:
    """The decision in an answer, or why it is none."""
    match answer:
        case {"decision": str(word), "call_id": call_id, "digest": digest, **more}:
            if (call_id, digest) != (asked["call_id"], asked["digest"]):
                return OTHER
            return _decision(OWN, word, more.get("reason"))
        case {"decisions": [{"type": str(word), **more}]} | {"type": str(word), **more}:
            return _decision(STOCK, word, more.get("message"))
    return UNCLEAR


def answered_at_large(config: RunnableConfig) -> bool:
    """Whether the run brought an answer that names no pause, and so is kept by LangGraph."""
    scratchpad = config.get("configurable", {}).get(CONFIG_KEY_SCRATCHPAD)
    return scratchpad is None or scratchpad.get_null_resume(False) is not None


async def is_only_one(config: RunnableConfig) -> bool:
    """Whether this call alone was open, and had asked, when the run began.

    An answer that names no pause is for that call, or for none: a run that is broken off may leave
    one question put and another not yet, and LangGraph hands the answer to whoever asks first.
    """
    run = config["configurable"]
    graph = run[CONFIG_KEY_CHECKPOINT_NS].rpartition(NS_SEP)[0]
    here = {"checkpoint_ns": graph, "checkpoint_id": run[CONFIG_KEY_CHECKPOINT_MAP][graph]}
    asked_in: RunnableConfig = {"configurable": {"thread_id": run["thread_id"], **here}}
    kept = await run[CONFIG_KEY_CHECKPOINTER].aget_tuple(asked_in)
    if kept is None:
        return False
    tasks = read_task_statuses(kept.pending_writes or ())
    finished = [task for task in tasks.values() if task.finished]
    sent_out = kept.checkpoint["channel_values"].get(TASKS, ())
    own = tasks.get(run[CONFIG_KEY_TASK_ID])
    return own is not None and bool(own.interrupts) and len(finished) + 1 == len(sent_out)


def _decision(words: Mapping[str, bool], word: str, reason: object) -> Decision | str:
    if word in ("edit", "respond"):
        return EDITED
    if word not in words or not isinstance(reason, str | None):
        return UNCLEAR
    return Decision(words[word], clean(reason or "")[:LONGEST])
