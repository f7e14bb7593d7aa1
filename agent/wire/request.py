"""What goes out with the messages: instructions, tools and the form of the answer, every time.

None of the three is carried over by `previous_response_id`.
"""

import json
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.runnables import Runnable

from agent.wire.names import Name

Bound = tuple[Runnable[Any, Any], list[SystemMessage]]

PROSE = "Answer with one JSON object that fits this JSON schema, without any text around it:"


@dataclass(frozen=True)
class Request:
    """`answer` is the form of the answer as LangChain takes it (`response_format`), None for none.

    `strict`: the server is to enforce it; otherwise its schema stands in the instructions.
    """

    instructions: str
    tools: list[dict[str, Any]]
    answer: dict[str, Any] | None = None
    strict: bool = True

    def bound(self, model: BaseChatModel, *, chained: bool = False) -> Bound:
        """The model with all that goes with each request, and what stands before the messages.

        chained: it may go on from a response that the vendor keeps.
        """
        if getattr(model, "use_previous_response_id", False) and not chained:
            model = model.model_copy(update={"use_previous_response_id": False})
        spoken = protocol(model, self.tools)
        if spoken is None:
            return self._with_tools(model), [SystemMessage(self.told)]
        options: dict[str, Any] = {}
        if self.answer and self.strict:
            options["response_format"] = self.answer
        if spoken == "messages":
            return self._for_messages(model, options), [SystemMessage(self.told)]
        if self.tools:
            options |= {"tools": self.tools, "parallel_tool_calls": True}
        if spoken == "responses":
            return model.bind(**options, instructions=self.told), []
        return model.bind(**options), [SystemMessage(self.told)]

    @property
    def told(self) -> str:
        """The instructions, with the answer's schema where nothing enforces it."""
        if self.answer is None or self.strict:
            return self.instructions
        return f"{self.instructions}\n\n{PROSE}\n{json.dumps(self.answer['json_schema']['schema'])}"

    def _for_messages(self, model: Any, options: dict[str, Any]) -> Runnable[Any, Any]:
        if not self.tools:
            return model.bind(**options)  # type: ignore[no-any-return]
        tools = [_anthropic(tool["function"]) for tool in self.tools]
        return model.bind_tools(tools, parallel_tool_calls=True, **options)  # type: ignore[no-any-return]

    def _with_tools(self, model: BaseChatModel) -> Runnable[Any, Any]:
        try:
            return model.bind_tools(self.tools) if self.tools else model
        except NotImplementedError:  # a model that cannot call tools still answers
            return model


def _anthropic(function: dict[str, Any]) -> dict[str, Any]:
    """A tool in Anthropic's form: LangChain's own would make all tools strict, or none."""
    strict = {"strict": True} if function.get("strict") else {}
    about = {"name": function["name"], "description": function.get("description", "")}
    return {**about, "input_schema": function["parameters"], **strict}


def protocol(model: BaseChatModel, tools: list[dict[str, Any]]) -> Name | None:
    """What a client of OpenAI or Anthropic speaks; None for all others, which take no schema.

    Which of OpenAI's is stated, or what the client makes of its name, options and tools.
    """
    if model._llm_type == "anthropic-chat":
        return "messages"
    if model._llm_type != "openai-chat":
        return None
    decide = getattr(model, "_use_responses_api", lambda _: False)
    return "responses" if decide({"tools": tools}) else "chat"
