"""What this process logs: with SUPPORT_LOG set, one JSON object a line on stderr, no person in it.

    {"at": "2026-11-30T10:00:00.123+00:00", "level": "warning", "logger": "agent.asking",
     "event": "stream_interrupted: The response broke off.", "trace_id": "01a2…"}

Every message of `agent` and `tools` is written for this: kinds, names of tools, ids of calls. Of an
exception only its kind is told, since its text and its traceback hold values.
"""

import json
import logging
from datetime import UTC, datetime

from agent import tracing
from agent.settings import Settings


class Lines(logging.Formatter):
    """Records as lines of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            "trace_id": tracing.trace_id(),
            "error": record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else "",
        }
        return json.dumps({name: value for name, value in line.items() if value})


def install(settings: Settings) -> None:
    """Logs from the level that the settings name."""
    if settings.log is None:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    for name in ("agent", "tools"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(settings.log.upper())
