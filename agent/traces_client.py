"""A LangSmith client that tells the shape of runs and keeps what it cannot send.

Whatever traces in this process, LangGraph and LangChain above all, comes through `create_run` and
`update_run`. Both pass on what `agent/traces_shape.py` lists; the SDK's own queue, which holds up
the end of a process and loses what it cannot send, is not used.
"""

import logging
import secrets
from contextlib import suppress
from typing import Any
from uuid import UUID

from langsmith import Client
from langsmith.utils import (
    LangSmithError,
    LangSmithUserError,
    get_tracer_project,
    tracing_is_enabled,
)
from urllib3.util import Retry

from agent.settings import Settings
from agent.traces_shape import Pseudonyms, shape, whole
from agent.traces_spool import NotTaken, Run, Spool, private
from tools.policy import version as policy_version

log = logging.getLogger(__name__)
# The SDK says each failure again, with the address and parts of the key.
logging.getLogger("langsmith.client").setLevel(logging.CRITICAL)
SHARES = 2**32
ABOUT_ONE_TRACE = (400, 413, 422)
FAILURES = (LangSmithError, OSError)


class TraceClient(Client):
    """Never raises, and never waits for LangSmith, while a turn runs."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self._errors = settings, list[Exception]()
        super().__init__(
            auto_batch_tracing=False,
            info={},
            omit_traced_runtime_info=True,
            retry_config=Retry(0),
            tracing_error_callback=self._errors.append,
            timeout_ms=(3_000, 5_000),
        )
        self.pseudonyms = Pseudonyms(_key(settings), settings.trace_ids or settings.trace_content)
        self._seen = whole if settings.trace_content else shape
        rate = self.tracing_sample_rate  # as LANGSMITH_TRACING_SAMPLING_RATE says
        self._share = SHARES * (1.0 if rate is None else rate)
        self.tracing_sample_rate = None
        self._policy = policy_version()
        self._noted: dict[str, dict[str, Any]] = {}
        self._project = get_tracer_project()
        self.spool = Spool(settings.trace_folder, self.ingest)

    def create_run(self, name: str, inputs: Any, run_type: Any, **run: Any) -> None:
        self._put("post", {**run, "name": name, "inputs": inputs, "run_type": run_type})

    def update_run(self, run_id: Any, **run: Any) -> None:
        self._put("patch", {**run, "id": run_id})

    def takes(self, trace_id: UUID | str) -> bool:
        """Whether a trace is among those that are traced at all."""
        return UUID(str(trace_id)).int % SHARES < self._share

    def note_root(self, trace_id: str, metadata: dict[str, Any]) -> None:
        """What the root run will say when it ends."""
        if self.takes(trace_id):
            self._noted.setdefault(trace_id, {}).update(metadata)

    def flush(self, timeout: float | None = None) -> None:
        self.spool.flush()

    def ingest(self, posts: list[Run], patches: list[Run]) -> None:
        """Sends whole traces now. Raises NotTaken."""
        self._errors.clear()
        try:
            self.multipart_ingest(create=posts, update=patches)
        except Exception as error:  # what the SDK does not hand to its callback
            self._errors.append(error)
        if self._errors:
            raise _not_taken(self._errors[0])

    def _put(self, what: str, run: dict[str, Any]) -> None:
        try:
            if self.takes(run["trace_id"]):
                self.spool.put(what, self._told(what, run))
        except Exception as error:  # whatever objects and their own conversions bring along
            log.warning("a run was not traced (%s)", type(error).__name__)

    def _told(self, what: str, run: dict[str, Any]) -> Run:
        try:
            seen = self._seen(run)
        except Exception:  # words that cannot be written down: then none of them goes along
            seen = shape(run)
        seen["extra"]["metadata"] |= self._beside(what, run, seen)
        return {**seen, "session_name": self._project}

    def _beside(self, what: str, run: dict[str, Any], seen: Run) -> dict[str, Any]:
        if seen["id"] != seen["trace_id"]:
            return {"policy_version": self._policy} if seen["run_type"] == "llm" else {}
        if what == "patch":
            return self._noted.pop(seen["id"], {})
        thread = (run.get("extra") or {}).get("metadata", {}).get("thread_id")
        whose = {"thread_id": self.pseudonyms.of(str(thread))} if thread else {}
        return {**whose, "policy_version": self._policy}


def _not_taken(error: Exception) -> NotTaken:
    """The SDK's error says its HTTP status only in the one that it came from."""
    status = getattr(getattr(error.__context__, "response", None), "status_code", None)
    unsendable = isinstance(error, LangSmithUserError) or not isinstance(error, FAILURES)
    alone = status in ABOUT_ONE_TRACE if status else unsendable
    why = f"HTTP {status}" if status else type(error).__name__
    return NotTaken(f"LangSmith did not take them ({why}).", alone=alone)


def _key(settings: Settings) -> bytes:
    """Of the pseudonyms: the settings', else the folder's, else one of this process."""
    if settings.trace_key:
        return settings.trace_key.get_secret_value().encode(errors="surrogatepass")
    file, new = settings.trace_folder / "key", secrets.token_bytes(32)
    with suppress(OSError):
        if tracing_is_enabled():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError), open(file, "xb", opener=private) as kept:
                kept.write(new)
        return file.read_bytes() or new
    return new
