"""What of a run may leave the house: what stands on a list here, and nothing else (promise P8).

A run is what LangSmith calls a span. Its inputs, outputs, metadata, tags, events, name and the text
of its error are anybody's words, so none of them is passed on. What is passed on is its place in
the tree, its times, counts, and what this code itself noted under `extra[OURS]`.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any

from pydantic_core import to_jsonable_python

OURS = "support_agent"  # beside the metadata, where nothing of a request can get
NAMES = {"support-agent", "model", "call"}
TYPES = {"chain", "llm", "tool"}
PLACE = ("id", "trace_id", "parent_run_id", "dotted_order", "reference_example_id")
PLACES = re.compile(r"[0-9a-f-]{36}|(\d{8}T\d{12}Z[0-9a-f-]{36}\.?)+", re.ASCII)
TIMES = ("start_time", "end_time")
ID = re.compile(r"[A-Za-z][A-Za-z0-9_:./-]{0,127}", re.ASCII)
PLAIN = re.compile(r"[\w:./-]{1,128}", re.ASCII)
COUNTS = {
    *("input_tokens", "output_tokens", "total_tokens", "input_token_details", "cache_read"),
    *("output_token_details", "cache_creation", "reasoning"),
    *("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"),
}
LARGEST = 2**40
COUNTED, ASKED = ("turn", "round", "attempt"), ("ls_model_name", "ls_provider")


class Number(int):
    """A count of this code's own in LangChain's metadata. What a client sends is never one."""


class Pseudonyms:
    """Names for people and things that tell nobody who they are, but are the same each time."""

    def __init__(self, key: bytes, plain: bool) -> None:
        """plain: the ids themselves are allowed, if they are no words."""
        self._key, self._plain = key[:64], plain

    def of(self, id_: str) -> str:
        if not id_ or (self._plain and PLAIN.fullmatch(id_)):
            return id_
        text = id_.encode(errors="surrogatepass")
        return f"~{blake2b(text, key=self._key, digest_size=10).hexdigest()}"


def shape(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run as it may be seen by anybody."""
    extra = run.get("extra") or {}
    ours: Mapping[str, Any] = extra.get(OURS) or {}
    type_ = ours.get("type") or run.get("run_type")
    type_ = type_ if type_ in TYPES else "chain"
    told = dict(ours.get("outputs") or {})
    metadata = {**(_of_model(run, extra) if type_ == "llm" else {}), **ours.get("metadata", {})}
    name = ours.get("name") or (run.get("name") if run.get("name") in NAMES else type_)
    error = kind_of(run["error"]) if run.get("error") else None
    if error == "GraphInterrupt":  # how the graph waits for a person, and no error
        error, told = None, {"status": "awaiting_confirmation"}
    ended = {"error": error, "outputs": told} if run.get("end_time") else {}
    seen = {"inputs": dict(ours.get("inputs") or {}), "extra": {"metadata": metadata}}
    return {**place(run), "name": name, "run_type": type_, **seen, **ended}


def whole(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run with its words. What is no JSON becomes text; the application's objects stay theirs."""
    limited, said = shape(run), (run.get("extra") or {}).get("metadata", {})
    waits = str(run.get("error")).startswith("GraphInterrupt")
    names = ("inputs", "tags") if waits else ("inputs", "tags", "outputs", "error")
    words = {name: run[name] for name in names if run.get(name)}
    words["extra"] = {"metadata": {**said, **limited["extra"]["metadata"]}}
    return {**limited, **to_jsonable_python(words, fallback=str)}


def place(run: Mapping[str, Any]) -> dict[str, Any]:
    """Where a run stands in its tree, and when it was."""
    ids = {name: str(run[name]) for name in PLACE if PLACES.fullmatch(str(run.get(name)))}
    at = {name: run[name] for name in TIMES if run.get(name)}
    return ids | {n: t.isoformat() if isinstance(t, datetime) else str(t) for n, t in at.items()}


def id_or_none(value: object) -> str | None:
    """A vendor's id of something; None for what is rather somebody's words."""
    return value if isinstance(value, str) and ID.fullmatch(value) else None


def kind_of(error: object) -> str:
    """The kind of an error, if it is one that exists: its text begins with it, or with anything."""
    said = re.match(r"\w*", str(error))
    return said[0] if said and said[0] in set(_kinds(BaseException)) else "error"


def _kinds(kind: type[BaseException]) -> Iterator[str]:
    """The names that stand in a source; one that is made at run time may say anything."""
    if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind:
        yield kind.__name__
    for each in kind.__subclasses__():
        yield from _kinds(each)


def _of_model(run: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """What a model's run tells in LangChain's own places, where no client's metadata gets."""
    said, asked = extra.get("metadata") or {}, extra.get("invocation_params") or {}
    model = said.get("ls_model_name")
    named = model and model in (asked.get("model"), asked.get("model_name"))
    message = _message(run.get("outputs"))
    response = message.get("response_metadata") or {}
    found = {
        **{name: said.get(name) for name in COUNTED if isinstance(said.get(name), Number)},
        **{name: id_or_none(said.get(name)) for name in ASKED if named},
        "response_id": id_or_none(response.get("id") or message.get("id")),
        "usage_metadata": counts(message.get("usage_metadata")) or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _message(outputs: Any) -> Mapping[str, Any]:
    """The message that a model's run ended with, as LangChain writes it down; or nothing."""
    try:
        kwargs = outputs["generations"][0][0]["message"]["kwargs"]
    except (LookupError, TypeError):
        return {}
    return kwargs if isinstance(kwargs, Mapping) else {}


def counts(usage: object) -> dict[str, Any]:
    """Of what a vendor counted, the counts that have a name here."""
    if not isinstance(usage, Mapping):
        return {}
    named = {name: value for name, value in usage.items() if name in COUNTS}
    found = {n: counts(v) if isinstance(v, Mapping) else v for n, v in named.items()}
    return {n: v for n, v in found.items() if isinstance(v, dict) or _is_count(v)}


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < LARGEST
