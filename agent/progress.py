"""What a person may watch while a turn runs: custom stream events, beside the messages."""

from typing import Literal

from langgraph.config import get_stream_writer

Event = Literal["call_named", "call_started", "call_finished", "card", "retry"]


def tell(event: Event, call_id: str, tool: str, subject: str, status: str) -> None:
    """Sends one event to whoever streams `custom`; to nobody otherwise."""
    get_stream_writer()(
        {"event": event, "call_id": call_id, "tool": tool, "subject": subject, "status": status}
    )
