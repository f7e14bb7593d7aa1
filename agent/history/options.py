"""What a request says beside its history, in the words of another protocol."""

from collections.abc import Callable
from typing import Any

from agent.history.model import Raw
from agent.wire.names import Name

SAME = ("model", "temperature", "top_p", "stream")  # in all protocols
OPENAIS = ("parallel_tool_calls", "store", "metadata", "user")
LONGEST_ANSWER: dict[Name, str] = {
    "chat": "max_completion_tokens",
    "responses": "max_output_tokens",
    "messages": "max_tokens",
}
CHOICES = {"required": "any", "any": "required"}  # of tools: OpenAI's word and Anthropic's


def options(given: Raw, of: Name, to: Name, lose: Callable[[str], None]) -> Raw:
    """The options that `to` has as well. lose: is told of each that it has not."""
    left = dict(given)
    same = SAME if "messages" in (of, to) else (*SAME, *OPENAIS)
    kept = {name: left.pop(name) for name in same if name in left}
    for name in {LONGEST_ANSWER[of], "max_tokens"} & left.keys():
        kept[LONGEST_ANSWER[to]] = left.pop(name)
    if isinstance(left.get("tools"), list):
        tools = (_tool(tool, to, lose) for tool in left.pop("tools"))
        kept["tools"] = [tool for tool in tools if tool]
    if choice := _choice(left.get("tool_choice"), to):
        kept["tool_choice"] = choice
        del left["tool_choice"]
    for name in left:
        lose(f"`{name}`")
    return kept


def _tool(tool: Any, to: Name, lose: Callable[[str], None]) -> Raw | None:
    raw = tool if isinstance(tool, dict) else {}
    about = raw["function"] if isinstance(raw.get("function"), dict) else raw
    schema = about.get("input_schema", about.get("parameters"))
    if not isinstance(schema, dict) or not isinstance(about.get("name"), str):
        lose(f"a tool of the kind {raw.get('type')}")
        return None
    told = {n: about[n] for n in ("name", "description", "strict") if about.get(n) is not None}
    if to == "messages":
        return {**told, "input_schema": schema}
    told["parameters"] = schema
    return {"type": "function", **({"function": told} if to == "chat" else told)}


def _choice(choice: Any, to: Name) -> Any:
    """One tool by its name, or `auto`, `none`, `required`; None for anything else."""
    about = choice if isinstance(choice, dict) else {"type": choice}
    inner = about.get("function")
    name = about.get("name") or (inner.get("name") if isinstance(inner, dict) else None)
    word = about.get("type")
    if isinstance(name, str):
        if to == "chat":
            return {"type": "function", "function": {"name": name}}
        return {"type": "tool" if to == "messages" else "function", "name": name}
    if word not in ("auto", "none", *CHOICES):
        return None
    if (word in CHOICES) and (word == "any") != (to == "messages"):
        word = CHOICES[word]
    return {"type": word} if to == "messages" else word
