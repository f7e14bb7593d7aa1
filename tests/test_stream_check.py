"""`stream check FILE`, and the setting that records what it reads."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.wire.record import cleaned
from tests.commands import here
from tests.responses_server import cut, in_the_last_item, refusing, serving
from tests.streams import BUILD, Call, frames

SECRET = Call("call_1", "get_order", ('{"order_id":"A-17","note":"sécret 42\\', 'n \\u00e9"}'))
B21 = Call("call_2", "get_order", ('{"order_id":', '"B-21"}'))
TWO = "Where are order A-18 and order B-21?"


@pytest.fixture(params=BUILD)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def written(folder: Path, pieces: list[bytes]) -> str:
    file = folder / "one.sse"
    file.write_bytes(b"".join(pieces))
    return str(file)


def test_a_whole_stream_is_whole(name: str, tmp_path: Path) -> None:
    stream = BUILD[name]([SECRET, B21], "hello")
    file = written(tmp_path, frames(stream.mixed([0, 1, 0, 1, 1, 0]), done=stream.done))
    done = here("stream", "check", file, "--json")
    assert done.code == 0
    assert done.json == {
        "protocol": name,
        "whole": True,
        "problem": None,
        "calls": [
            {"call_id": "call_1", "name": "get_order", "whole": True, "broke": None},
            {"call_id": "call_2", "name": "get_order", "whole": True, "broke": None},
        ],
    }
    assert "call_2 get_order: whole" in here("stream", "check", file).out


def test_a_cut_stream_says_which_call_broke_and_where(name: str, tmp_path: Path) -> None:
    stream = BUILD[name]([SECRET, B21])
    pieces = frames(stream.events)
    ends = next(n for n, piece in enumerate(pieces) if b"B-21" in piece)
    done = here("stream", "check", written(tmp_path, pieces[:ends]), "--json")
    assert done.code == 1
    assert done.json["whole"] is False
    last = done.json["calls"][-1]
    assert last["broke"] == "after 12 characters of its arguments"
    plain = here("stream", "check", written(tmp_path, pieces[:ends]))
    assert "Nothing of this response may be used." in plain.out
    assert "A-17" not in plain.out


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"{}", b"data: {}\n", b'data: {"type": "other"}\n\n', b"<p>Hello</p>"],
)
def test_what_is_no_stream_is_unreadable_input(content: bytes, tmp_path: Path) -> None:
    done = here("stream", "check", written(tmp_path, [content]))
    assert done.code == 2
    assert "Nothing was checked." in done.err


def test_a_file_that_is_not_there_and_a_folder_are_unreadable_input(tmp_path: Path) -> None:
    for path in (tmp_path / "none.sse", tmp_path):
        assert here("stream", "check", str(path)).code == 2


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_a_recorded_stream_is_checked_and_says_nothing_of_what_was_said(
    api: str, tmp_path: Path
) -> None:
    recorded = {"SUPPORT_RECORD_STREAMS": str(tmp_path / "streams"), "SUPPORT_OPENAI_API": api}
    assert here("ask", TWO, "--json", **recorded).code == 0
    files = sorted((tmp_path / "streams").iterdir())
    assert len(files) == 2
    found = [here("stream", "check", str(file), "--json") for file in files]
    assert sorted(len(done.json["calls"]) for done in found) == [0, 2]
    assert {(done.code, done.json["protocol"]) for done in found} == {(0, api)}
    kept = "".join(file.read_text() for file in files)
    assert "A-18" not in kept
    assert "B-21" not in kept


def test_a_stream_that_broke_off_is_recorded_as_far_as_it_came(tmp_path: Path) -> None:
    with serving(cut(in_the_last_item, cleanly=False)) as server:
        variables = server.variables(SUPPORT_RECORD_STREAMS=str(tmp_path / "streams"))
        assert here("ask", TWO, **variables).code == 1
    files = list((tmp_path / "streams").iterdir())
    assert len(files) == 3
    assert {here("stream", "check", str(file)).code for file in files} == {1}


def test_a_request_that_is_refused_is_recorded_as_its_shape(tmp_path: Path) -> None:
    with serving(refusing("include", "Unknown parameter.")) as server:
        variables = server.variables(SUPPORT_RECORD_STREAMS=str(tmp_path / "streams"))
        assert here("ask", TWO, **variables).code == 1
    [file] = (tmp_path / "streams").iterdir()
    sent: Any = json.loads(file.read_text().removeprefix("data: "))
    assert {tool["name"] for tool in sent["tools"]} > {"get_order"}
    assert "A-18" not in file.read_text()


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert here("ask", TWO, SUPPORT_RECORD_STREAMS=str(tmp_path / "file" / "x")).code == 0


def test_cleaning_keeps_structure_ids_and_counts_and_no_value() -> None:
    event = {
        "type": "content_block_start",
        "index": 3,
        "content_block": {
            "type": "tool_use",
            "id": "toolu_1",
            "input": {"name": "Jane", "id": 17, "ok": True},
        },
        "usage": {"input_tokens": 41},
        "text": "Größe: 12,\u00a0x",
        "logprob": -0.5,
    }
    assert cleaned(event) == {
        "type": "content_block_start",
        "index": 3,
        "content_block": {
            "type": "tool_use",
            "id": "toolu_1",
            "input": {"name": "nnnn", "id": 1, "ok": True},
        },
        "usage": {"input_tokens": 41},
        "text": "nnnnn: 11,nn",
        "logprob": 1,
    }
