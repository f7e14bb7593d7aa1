"""What somebody thought of a turn, noted on the root run of its trace."""

import warnings

from langsmith.utils import LangSmithError, LangSmithWarning
from sqlalchemy import select

from agent import tables
from agent.problems import Problem
from agent.traces_client import TraceClient
from agent.traces_spool import NotTaken
from tools.database import Database

KEY = "helpful"


async def trace_of(database: Database, thread: str, turn: int) -> str:
    """The id of a turn's root run. Raises Problem for a turn that was not traced."""
    c = tables.turns.c
    query = select(c.trace_id).where(c.thread_id == thread, c.turn == turn)
    async with database.connect() as db:
        found: str | None = await db.scalar(query)
    if found is None:
        raise Problem(f"No trace is known of turn {turn} in that thread. Nothing was sent.")
    return found


def give(client: TraceClient, trace: str, *, up: bool, comment: str = "") -> None:
    """Notes a score of 1 or 0 on a root run. Raises Problem for a comment where traces hold no
    words, and NotTaken."""
    if comment and not client.settings.trace_content:
        raise Problem(
            "A comment may name people, and SUPPORT_TRACE_CONTENT is off. Nothing was sent; leave"
            " the comment out, or allow it."
        )
    try:
        with warnings.catch_warnings():  # to name its project as well takes a second request
            warnings.simplefilter("ignore", LangSmithWarning)
            client.create_feedback(
                run_id=trace,
                trace_id=trace,
                key=KEY,
                score=int(up),
                comment=comment or None,
                stop_after_attempt=1,
            )
    except (LangSmithError, OSError) as error:
        raise NotTaken(f"LangSmith did not take it ({type(error).__name__}).") from None
