"""The tools of a graph by name: our own, and any LangChain tool brought into their form."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import tool as langchain_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from agent.problems import Problem
from tools.failures import ToolFailure, WrongSubject
from tools.tool import Arguments, Context, InvalidArguments, Tool, sentence_of

AnyTool = Tool | BaseTool | Callable[..., Any]


def toolbox(tools: Iterable[AnyTool], *, writes: bool) -> Mapping[str, Tool]:
    """Tools by name. Raises Problem when two share one, or one writes where none may."""
    box: dict[str, Tool] = {}
    for each in tools:
        tool = each if isinstance(each, Tool) else adapt(each)
        if tool.writes and not writes:
            raise Problem(f"{tool.name!r} writes, and there is no database that would hold it.")
        if tool.name in box:
            raise Problem(
                f"Two tools are called {tool.name!r}; the model could not tell them apart."
            )
        box[tool.name] = tool
    return box


def writing(box: Mapping[str, Tool]) -> dict[str, Tool]:
    """Those that write."""
    return {name: tool for name, tool in box.items() if tool.writes}


def schemas(box: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """What every request tells the model of the tools, in the form that LangChain takes."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": tool.strict,
            },
        }
        for tool in box.values()
    ]


def adapt(tool: BaseTool | Callable[..., Any]) -> Tool:
    """A LangChain tool (or a plain function) as a read without subject, limit or customer."""
    base = tool if isinstance(tool, BaseTool) else langchain_tool(tool)
    function = convert_to_openai_tool(base)["function"]
    return Tool(
        sentence="",
        name=base.name,
        description=function.get("description", ""),
        parameters=function.get("parameters", {"type": "object", "properties": {}}),
        strict=False,
        validate=_validator(base),
        run=_runner(base),
        needs_customer=False,
    )


def _validator(base: BaseTool) -> Callable[[str], dict[str, Any]]:
    schema: Any = base.tool_call_schema
    if isinstance(schema, dict):
        return _by_json_schema(schema)
    known = set(schema.model_fields)

    def validate(text: str) -> dict[str, Any]:
        if unknown := from_json(text).keys() - known:
            raise InvalidArguments(f"The arguments have no field {sorted(unknown)[0]!r}.")
        try:
            checked: BaseModel = schema.model_validate_json(text, strict=True)
        except ValidationError as error:
            raise InvalidArguments(sentence_of(error)) from None
        return {name: getattr(checked, name) for name in checked.model_fields_set}

    return validate


def _by_json_schema(schema: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    checker = Draft202012Validator({"additionalProperties": False, **schema})

    def validate(text: str) -> dict[str, Any]:
        arguments: dict[str, Any] = from_json(text)
        for problem in checker.iter_errors(arguments):
            where = ".".join(map(str, problem.path)) or "arguments"
            raise InvalidArguments(f"The arguments do not fit: {where} ({problem.validator}).")
        return arguments

    return validate


def _runner(base: BaseTool) -> Callable[[Context | None, Arguments, str], Any]:
    coroutine = base.coroutine if isinstance(base, StructuredTool) and _is_lean(base) else None
    whole = not _is_plain(base)

    async def run(ctx: Context | None, arguments: Arguments, call_id: str) -> Any:
        given = dict(arguments)
        if coroutine is not None:
            return _content(await coroutine(**given), call_id)
        call = {"type": "tool_call", "id": call_id, "name": base.name, "args": given}
        return _content(await base.ainvoke(call if whole else given), call_id)

    return run


def _is_plain(base: BaseTool) -> bool:
    """Whether the arguments alone make the call, and what the tool returns is its result."""
    injected = set(_fields(base.args_schema)) - set(_fields(base.tool_call_schema))
    return base.response_format == "content" and not base.handle_tool_error and not injected


def _is_lean(base: StructuredTool) -> bool:
    """Whether the coroutine may be called straight, which spares half the CPU of `ainvoke`."""
    if base.coroutine is None or not _is_plain(base):
        return False
    return not {"callbacks", "config"} & set(inspect.signature(base.coroutine).parameters)


def _fields(schema: Any) -> Iterable[str]:
    return getattr(schema, "model_fields", ())


def _content(result: Any, call_id: str) -> str:
    """The result as text: itself, or one stable JSON form of it.

    Raises WrongSubject when it speaks for another call, ToolFailure when it reports an error.
    """
    if isinstance(result, ToolMessage) and result.tool_call_id == call_id:
        if result.status == "error":
            raise ToolFailure("The tool reported an error.")
        result = result.content
    parts = result if isinstance(result, list | tuple) else [result]
    if any(isinstance(part, ToolOutputMixin) for part in parts):
        raise WrongSubject("The tool answered under the id of another call.")
    return result if isinstance(result, str) else to_json(result, inf_nan_mode="strings").decode()
