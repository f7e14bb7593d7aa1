"""What a request says beside its history, in the words of another protocol."""

from typing import Any

from agent.history.model import Raw
from agent.wire.names import Name

SAME = ("model", "temperature", "top_p", "stream")  # in all protocols
OPENAIS = ("store", "metadata", "user")
LONGEST_ANSWER: dict[Name, str] = {
    "chat": "max_completion_tokens",
    "responses": "max_output_tokens",
    "messages": "max_tokens",
}
CHOICES = ("required", "any")  # one of the tools: OpenAI's word and Anthropic's
OF_A_TOOL = {"type", "function", "name", "description", "strict", "parameters", "input_schema"}


def options(given: Raw, of: Name, to: Name) -> tuple[Raw, list[str]]:
    """The options that `to` has as well, and in words those that it has not."""
    left, lost = dict(given), list[str]()
    same = SAME if "messages" in (of, to) else (*SAME, *OPENAIS)
    kept = {name: left.pop(name) for name in same if name in left}
    for name in (LONGEST_ANSWER[of], "max_tokens"):
        if name in left and LONGEST_ANSWER[to] not in kept:
            kept[LONGEST_ANSWER[to]] = left.pop(name)
    kept |= _tools(left, to, lost)
    return kept, lost + [f"`{name}`" for name in left]


def _tools(left: Raw, to: Name, lost: list[str]) -> Raw:
    """The tools, and how they may be called, where any is left; takes them out of `left`."""
    given = left.pop("tools") if isinstance(left.get("tools"), list) else []
    tools = [tool for tool in (_tool(each, to, lost) for each in given) if tool]
    if not tools:
        return {}
    asked, parallel = left.get("tool_choice"), left.pop("parallel_tool_calls", None)
    if isinstance(asked, dict) and asked.get("disable_parallel_tool_use"):
        parallel = False
    names = {tool.get("function", tool)["name"] for tool in tools}
    choice = _choice(asked, names, to)
    if choice:
        del left["tool_choice"]
    if to == "messages" and parallel is False and choice != {"type": "none"}:
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    beside = {"tool_choice": choice, "parallel_tool_calls": parallel if to != "messages" else None}
    return {"tools": tools, **{n: value for n, value in beside.items() if value is not None}}


def _tool(tool: Any, to: Name, lost: list[str]) -> Raw | None:
    raw = tool if isinstance(tool, dict) else {}
    about = raw["function"] if isinstance(raw.get("function"), dict) else raw
    schema = about.get("input_schema", about.get("parameters"))
    if schema is None and raw.get("type") == "function":
        schema = {"type": "object", "properties": {}}  # OpenAI's own reading of none
    if not isinstance(schema, dict) or not isinstance(about.get("name"), str):
        lost.append(f"a tool of the kind {raw.get('type')}")
        return None
    fields = {**raw, **about}.items()
    lost += [f"a tool's `{name}`" for name, value in fields if name not in OF_A_TOOL and value]
    told = {n: about[n] for n in ("name", "description", "strict") if about.get(n) is not None}
    if to == "messages":
        return {**told, "input_schema": schema}
    told["parameters"] = schema
    return {"type": "function", **({"function": told} if to == "chat" else told)}


def _choice(choice: Any, names: set[str], to: Name) -> Any:
    """One of the tools by its name, or `auto`, `none`, `required`; None for anything else."""
    about = choice if isinstance(choice, dict) else {"type": choice}
    inner = about.get("function")
    name = about.get("name") or (inner.get("name") if isinstance(inner, dict) else None)
    word = about.get("type")
    if isinstance(name, str):
        if name not in names:
            return None
        if to == "chat":
            return {"type": "function", "function": {"name": name}}
        return {"type": "tool" if to == "messages" else "function", "name": name}
    if word not in ("auto", "none", *CHOICES):
        return None
    if word in CHOICES:
        word = "any" if to == "messages" else "required"
    return {"type": word} if to == "messages" else word
