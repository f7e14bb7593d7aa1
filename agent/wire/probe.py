"""What a model can do of that which the agent asks of it: found out by asking.

Each finding is "yes", "no" or "unknown": not asked, or the answer was trouble of another kind.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from agent.admission import BrokenResponse, admit
from agent.calls import ToolCall
from agent.wire import errors
from agent.wire.assemble import NoEvents
from agent.wire.client import added
from agent.wire.request import Request, protocol

Finding = Literal["yes", "no", "unknown"]

QUESTION = "Where are order A-17 and order B-21? Look both up at once."
INSTRUCTIONS = "You answer questions about orders. Look each order up with get_order, all at once."
MARK = "amber-41"  # nobody writes that who is not held to the schema


def _object(**fields: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object as strict ones have to be."""
    closed = {"required": [*fields], "additionalProperties": False}
    return {"type": "object", "properties": fields, **closed}


TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_order",
        "description": "One order by its id: its status.",
        "strict": True,
        "parameters": _object(order_id={"type": "string", "description": "The order's id."}),
    },
}
ANSWER: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "strict": True,
        "schema": _object(text={"type": "string"}, mark={"enum": [MARK], "type": "string"}),
    },
}


@dataclass
class Findings:
    """What was found out.

    beside_tools: whether calls still come where the answer has a schema. trouble: why nothing was
    found out, a sentence; status: its HTTP status, None where there was no answer.
    """

    tools: Finding = "unknown"
    parallel: Finding = "unknown"
    strict: Finding = "unknown"
    streaming: Finding = "unknown"
    beside_tools: Finding = "unknown"
    trouble: str = ""
    status: int | None = None


async def probe(model: BaseChatModel) -> Findings:
    """Three requests at most: calls, calls beside a schema, an answer by the schema."""
    found = Findings()
    request = Request(INSTRUCTIONS, [TOOL])
    try:
        history = await _calls(model, request, found)
    except Exception as error:
        found.trouble, found.status = errors.reason(error), errors.status_of(error)
        return found
    if found.tools == "yes" and protocol(model, [TOOL]):
        await _schema(model, replace(request, answer=ANSWER), history, found)
    return found


async def _calls(model: BaseChatModel, request: Request, found: Findings) -> list[AnyMessage]:
    """Asks for two calls; a conversation about the first of them, to be answered."""
    response = await _asked(model, request, [HumanMessage(QUESTION)])
    found.streaming = "yes" if response else "no"
    if response is None:
        return []
    calls = _sound(response)
    found.tools = "yes" if calls else "no"
    if not calls:
        return []
    found.parallel = "yes" if len(calls) > 1 else "no"
    return _answered(calls[0])


async def _schema(
    model: BaseChatModel, request: Request, history: list[AnyMessage], found: Findings
) -> None:
    try:
        again = await _asked(model, request, [HumanMessage(QUESTION)])
        found.beside_tools = "yes" if again and _sound(again) else "no"
        answer = await _asked(model, request, history)
    except Exception as error:
        found.strict = "no" if errors.refuses_schema(error) else "unknown"
        return
    fits = found.beside_tools == "yes" and answer and _fits(answer.text)
    found.strict = "yes" if fits else "no"


async def _asked(
    model: BaseChatModel, request: Request, messages: Sequence[AnyMessage]
) -> AIMessage | None:
    """The response; None where no event came."""
    bound, system = request.bound(model)
    try:
        return added([chunk async for chunk in bound.astream([*system, *messages])])
    except NoEvents:
        return None
    except ValueError as error:
        if "No generation" in str(error):  # LangChain's words for no event
            return None
        raise


def _sound(message: AIMessage) -> list[ToolCall]:
    """The calls, where all of them could be made: right name, whole arguments, own ids."""
    try:
        calls = admit(message, round=1)
    except BrokenResponse:
        return []
    sound = all(c["name"] == "get_order" and _is_order(c["arguments"]) for c in calls)
    return calls if sound else []


def _is_order(arguments: Any) -> bool:
    return isinstance(arguments, Mapping) and isinstance(arguments.get("order_id"), str)


def _answered(call: ToolCall) -> list[AnyMessage]:
    """One call with its result, as if nothing else had been asked."""
    arguments: Any = call["arguments"]
    order_id = arguments["order_id"]
    output = {"status": "ok", "order_id": order_id, "data": {"status": "shipped"}}
    made: Any = {"type": "tool_call", "id": call["call_id"], "name": "get_order", "args": arguments}
    return [
        HumanMessage(f"Where is order {order_id}?"),
        AIMessage(content="", tool_calls=[made]),
        ToolMessage(json.dumps(output), tool_call_id=call["call_id"]),
    ]


def _fits(text: str) -> bool:
    try:
        answer = json.loads(text)
    except ValueError:
        return False
    return isinstance(answer, dict) and set(answer) == {"text", "mark"} and answer["mark"] == MARK
