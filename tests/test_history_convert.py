"""`convert`: a history in another protocol and back, and what is named because it is lost."""

from typing import Any

import pytest
from hypothesis import given

from agent.history import check, convert, repair
from tests.histories import (
    WRITE,
    Asks,
    Call,
    Event,
    Raw,
    Result,
    User,
    conversations,
    outputs,
)
from tests.strategies import SHORT

A = Call("call_left", '{"sku":"X-1"}')
ASKED, RESULT_A = Asks((A,)), Result(A.id, {"stock": 31})


def _plain(listed: list[Raw]) -> list[Raw]:
    """Without the ids and the statuses of items, which are the vendor's own."""
    return [{k: v for k, v in item.items() if k not in ("id", "status")} for item in listed]


@pytest.mark.parametrize("name", WRITE)
@pytest.mark.parametrize("to", WRITE)
@SHORT
@given(conversation=conversations())
def test_a_history_says_the_same_in_each_protocol_and_back(
    name: str, to: Any, conversation: list[Event]
) -> None:
    there, back = convert(WRITE[name](conversation), to), _as_literal(name)
    assert _plain(there.document) == _plain(WRITE[to](conversation))
    items = name == "responses" != to and outputs(conversation)
    assert {each.what for each in there.lost} == ({"`id`"} if items else set())
    assert _plain(convert(there.document, back).document) == _plain(WRITE[name](conversation))


def _as_literal(name: str) -> Any:
    return name


PNG = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"order_id": {"type": "string"}}}


def test_a_request_keeps_what_both_protocols_have() -> None:
    asked: Raw = {
        "model": "m",
        "temperature": 0.5,
        "max_completion_tokens": 100,
        "tools": [
            {"type": "function", "function": {"name": "get_order", "parameters": SCHEMA,
                                              "description": "Reads.", "strict": True}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "get_order"}},
        "seed": 7,
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
            ]},
            {"role": "assistant", "refusal": "I cannot say.", "content": None},
        ],
    }  # fmt: skip
    tool = {"name": "get_order", "description": "Reads.", "strict": True}
    there = convert(asked, "messages")
    assert there.document == {
        "model": "m",
        "temperature": 0.5,
        "max_tokens": 100,
        "tools": [{**tool, "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "get_order"},
        "system": "Be kind.",
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                             "data": "iVBORw0KGgo="}},
            ]},
            {"role": "assistant", "content": "I cannot say."},
        ],
    }  # fmt: skip
    assert [tuple(each) for each in there.lost] == [
        ("", "`seed`"),
        ("messages[1].content[1]", "`detail`"),
        ("messages[2].refusal", "that it is a refusal; its words stay"),
    ]
    other = convert(asked, "responses").document
    assert other["instructions"] == "Be kind."
    assert other["max_output_tokens"] == 100
    assert other["tools"] == [{"type": "function", **tool, "parameters": SCHEMA}]
    assert other["input"][0]["content"][1] == {
        "type": "input_image", "image_url": PNG, "detail": "low",
    }  # fmt: skip
    assert other["input"][1]["content"] == [{"type": "refusal", "refusal": "I cannot say."}]
    assert convert(other, "chat").document["messages"][:2] == asked["messages"][:2]


def test_a_response_says_the_same_as_a_message_and_its_unnatural_end_is_named() -> None:
    cut = {"message": {"role": "assistant", "content": "On its w"}, "finish_reason": "length"}
    there = convert({"id": "chatcmpl-1", "choices": [cut, cut]}, "messages")
    assert there.document == [{"role": "assistant", "content": "On its w"}]
    assert [each.what for each in there.lost] == [
        "that it ended as length", "another choice than the first", "`id`",
    ]  # fmt: skip


def test_a_refusal_that_no_assistant_said_stays_as_words_and_is_named() -> None:
    system = {"role": "system", "content": "Be kind.", "refusal": "I cannot."}
    there = convert({"messages": [system, {"role": "user", "content": "?"}]}, "responses")
    assert there.document["instructions"] == "Be kind.\n\nI cannot."
    assert [tuple(each) for each in there.lost] == [
        ("messages[0].refusal", "that it is a refusal; its words stay"),
    ]


# What one protocol has and another has not: the history, where it goes, and what is named.
LOSSES: dict[str, tuple[list[Raw], Any, list[str]]] = {
    "thinking": (
        [{"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "text", "text": "!"},
        ]}],
        "chat", ["thinking"],
    ),
    "reasoning": (
        [{"type": "reasoning", "id": "rs_1", "summary": []}, {"role": "user", "content": "?"}],
        "messages", ["reasoning"],
    ),
    "a cache mark and an error": (
        [*WRITE["messages"]([User(), ASKED]), {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": A.id, "content": "no", "is_error": True,
             "cache_control": {"type": "ephemeral"}},
        ]}],
        "chat", ["`is_error`", "`cache_control`"],
    ),
    "an unknown item": (
        [{"type": "web_search_call", "id": "ws_1"}, {"role": "user", "content": "?"}],
        "chat", ["web_search_call"],
    ),
    "a call of free text, with its result": (
        [{"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "custom", "custom": {"name": "run", "input": "ls"}}]},
         {"role": "tool", "tool_call_id": "c", "content": "a b"}],
        "messages", ["a call of the kind custom, with its result"],
    ),
    "arguments that are none": (
        WRITE["chat"]([User(), Asks((Call("c", '{"a": 1'),)), Result("c")]),
        "messages", ["arguments that are no JSON object, but as a text"],
    ),
    "an id": (
        WRITE["chat"]([User(), Asks((Call("get:0"),)), Result("get:0")]),
        "messages", ["an id that it takes; this one stays as it is"],
    ),
    "space": (
        WRITE["chat"]([User("  "), User()]),
        "messages", ["a text of nothing but space"],
    ),
    "a late instruction": (
        [*WRITE["chat"]([User(), ASKED, RESULT_A]), {"role": "system", "content": "Be brief."}],
        "messages", ["a system message later than the first"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LOSSES.values(), ids=LOSSES)
def test_what_the_other_protocol_cannot_hold_is_named(
    case: tuple[list[Raw], Any, list[str]],
) -> None:
    listed, to, lost = case
    assert [each.what for each in convert(listed, to).lost] == lost


def test_free_text_calls_go_between_the_protocols_that_have_them() -> None:
    listed: list[Raw] = [
        {"type": "custom_tool_call", "call_id": "c", "name": "run", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "a b"},
    ]
    assert check(listed) == []
    assert convert(convert(listed, "chat").document, "responses").document == listed
    mended = repair(listed[:1], {"c": ["a", "b"]}).document[1]
    assert mended == {"type": "custom_tool_call_output", "call_id": "c", "output": '["a","b"]'}


def test_cut_arguments_come_back_as_they_were() -> None:
    listed = WRITE["chat"]([User(), Asks((Call("c", '{"a": 1'),)), Result("c")])
    assert convert(convert(listed, "messages").document, "chat").document == listed


HELLO: Raw = {"messages": [{"role": "user", "content": "Hello"}]}
NO_FIELDS = {"type": "object", "properties": {}}
FUNCTION: dict[str, Raw] = {
    "chat": {"type": "function", "function": {"name": "f", "parameters": SCHEMA}},
    "responses": {"type": "function", "name": "f", "parameters": SCHEMA},
    "messages": {"name": "f", "input_schema": SCHEMA},
}
NEVER_TOGETHER: Raw = {"disable_parallel_tool_use": True}
# Options, whose they are, where they go, what becomes of them beside the tools, what is named.
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
OPTIONS: dict[str, tuple[Raw, Any, Any, Raw, list[str]]] = {
    "one call at a time, to chat": (
        {"tool_choice": {"type": "any", **NEVER_TOGETHER}}, "messages", "chat",
        {"tool_choice": "required", "parallel_tool_calls": False}, [],
    ),
    "one call at a time, to responses": (
        {"tool_choice": {"type": "tool", "name": "f", **NEVER_TOGETHER}}, "messages", "responses",
        {"tool_choice": {"type": "function", "name": "f"}, "parallel_tool_calls": False}, [],
    ),
    "one call at a time, to messages": (
        {"tool_choice": "required", "parallel_tool_calls": False}, "chat", "messages",
        {"tool_choice": {"type": "any", **NEVER_TOGETHER}}, [],
    ),
    "one call at a time, without a choice": (
        {"parallel_tool_calls": False}, "responses", "messages",
        {"tool_choice": {"type": "auto", **NEVER_TOGETHER}}, [],
    ),
    "one call at a time, where there is to be none": (
        {"tool_choice": "none", "parallel_tool_calls": False}, "chat", "messages",
        {"tool_choice": {"type": "none"}}, [],
    ),
    "several calls at once": (
        {"parallel_tool_calls": True}, "chat", "responses", {"parallel_tool_calls": True}, [],
    ),
    "several calls at once, which Messages allows anyway": (
        {"parallel_tool_calls": True}, "chat", "messages", {}, [],
    ),
    "the choice of a tool that is left out": (
        {"tools": [FUNCTION["messages"], SEARCH],
         "tool_choice": {"type": "tool", "name": "web_search", **NEVER_TOGETHER}},
        "messages", "chat", {"parallel_tool_calls": False},
        ["a tool of the kind web_search_20250305", "`tool_choice`"],
    ),
    "a choice where every tool is left out": (
        {"tools": [SEARCH], "tool_choice": {"type": "any"}}, "messages", "responses",
        {"tools": None}, ["a tool of the kind web_search_20250305", "`tool_choice`"],
    ),
    "a choice among no tools": (
        {"tools": [], "tool_choice": "auto", "parallel_tool_calls": False}, "chat", "messages",
        {"tools": None}, ["`tool_choice`", "`parallel_tool_calls`"],
    ),
    "a function without parameters": (
        {"tools": [{"type": "function", "function": {"name": "f"}}]}, "chat", "messages",
        {"tools": [{"name": "f", "input_schema": NO_FIELDS}]}, [],
    ),
    "a tool of free text": (
        {"tools": [{"type": "custom", "name": "f"}]}, "responses", "messages",
        {"tools": None}, ["a tool of the kind custom"],
    ),
    "what else a tool says": (
        {"tools": [{**FUNCTION["messages"], "type": "custom", "defer_loading": True,
                    "cache_control": {"type": "ephemeral"}, "input_examples": []}]},
        "messages", "chat", {}, ["a tool's `defer_loading`", "a tool's `cache_control`"],
    ),
    "two words for the longest answer": (
        {"max_tokens": 1, "max_completion_tokens": 2}, "chat", "messages",
        {"max_tokens": 2}, ["`max_tokens`"],
    ),
    "the old word for it": ({"max_tokens": 1}, "chat", "responses", {"max_output_tokens": 1}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", OPTIONS.values(), ids=OPTIONS)
def test_options_become_what_the_other_protocol_takes(
    case: tuple[Raw, Any, Any, Raw, list[str]],
) -> None:
    given, of, to, expected, lost = case
    hello = {"input": HELLO["messages"]} if of == "responses" else HELLO
    system = {"system": "Be kind."} if of == "messages" else {}
    there = convert({"tools": [FUNCTION[of]], **given, **system, **hello}, to)
    kept = {n: v for n, v in there.document.items()
            if n not in ("messages", "input", "system", "instructions")}  # fmt: skip
    wanted = {"tools": [FUNCTION[to]], **expected}
    assert kept == {name: value for name, value in wanted.items() if value is not None}
    assert [each.what for each in there.lost] == lost
