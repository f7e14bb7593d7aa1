"""The decorator that makes an async function a tool, and what a tool gets.

    @tool(subject="order_id", required=("status",), sentence="Order {order_id} is {status}.")
    async def get_order(ctx: Context, order_id: OrderId) -> OrderView:
        '''The model reads this docstring.'''

Everything else follows from the signature: the strict JSON schema that the model sees, the
validation of what it sends, and the fields that a card may name.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from string import Formatter
from typing import Annotated, Any, Literal, Protocol, Self, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from sqlalchemy.ext.asyncio import AsyncConnection

from tools.shop.protocol import CustomerShop

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Context:
    """What a tool knows besides its arguments; none of it can come from the model.

    customer: who is asking, as authentication says.
    shop: that customer's view of the shop; it raises `NotFound` for anything that is not theirs.
    thread: the conversation in which it is asked, "" where none is kept.
    desk: where that conversation is handed to a person.
    key: the idempotency key of a write, the same for every attempt at the same action.
    db: the transaction in which a write runs. The tool never commits; the ledger does.
    """

    customer: str
    shop: CustomerShop
    thread: str = ""
    desk: "Desk | None" = None
    key: str = ""
    db: AsyncConnection | None = None


class Desk(Protocol):
    """Hands conversations to a person."""

    async def open(self, ctx: Context, summary: str) -> str:
        """Records the wish for a person in `ctx.db`; the number of its ticket."""

    async def is_open(self, ctx: Context, ticket: str) -> bool: ...

    def ticket(self, ctx: Context) -> str:
        """The number of the ticket that a write of this key opens."""

    async def given_back(self, ctx: Context, ticket: str) -> str | None:
        """What staff noted, maybe "", when they gave it back; None while they have it."""


class BadDeclaration(TypeError):
    """A tool, or a file that it stands on, contradicts itself; the message says how."""


class Receipt(BaseModel):
    """What a write returns.

    state: "accepted" is asked for and not finished yet; it licenses no other word than that.
    repeated: whether this is the receipt of an earlier call, and nothing was done again.
    """

    state: Literal["done", "accepted"]
    repeated: bool = False

    @property
    def awaits(self) -> bool:
        """Whether more will be heard of it, by the tool's `find`."""
        return self.state == "accepted"


class InvalidArguments(Exception):
    """The model's arguments do not fit the tool's schema; the message says which and why."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What a tool says of itself.

    sentence: the English default card; other languages stand in `tools/locales/`.
    effect: "write" for what changes something; it goes through the ledger and returns a `Receipt`.
    subject: the parameter that says what a call is about (an order id). The result must carry a
        field of the same name: an answer about anything else is refused as `wrong_subject`.
    timeout: seconds; without it the deployment's setting counts.
    limit: calls at once to the service behind it, in this process.
    identity: for a write, the arguments that make two calls the same action; a reason is never one.
        A write without a subject is about its conversation, which then counts as well.
    check: for a write, a look before the customer is asked: raises what it would be refused with.
    find: for a write to an outside service, its receipt by `ctx.key`; None where the service never
        heard of the key. With it the write runs outside of any transaction.
    outside: says so of a write that may lie in our own database or outside, as the shop does.
    stands: for a write, whether the effect of a receipt is still there; without it, always. Where
        it is gone, the same arguments are a new action.
    question: for a write, what the customer is asked before it, in English: "Cancel {order_id}?"
        names all that makes it this action; a decimal `amount` is shown with its `currency`.
    required: fields of the result that every card must show.
    card: "optional" when an ok result may go unmentioned in the answer; a failure never may.
    cost: what one call costs, in US dollars.
    """

    sentence: str
    effect: Literal["read", "write"] = "read"
    subject: str = ""
    timeout: float | None = None
    limit: int | None = None
    identity: tuple[str, ...] = ()
    check: Callable[[Context, Arguments], Awaitable[None]] | None = None
    find: Callable[[Context, Arguments], Awaitable[Receipt | None]] | None = None
    outside: Callable[[Context], bool] | None = None
    stands: Callable[[Context, Mapping[str, Any]], Awaitable[bool]] | None = None
    question: str = ""
    required: tuple[str, ...] = ()
    card: Literal["always", "optional"] = "always"
    cost: Decimal | int | None = None


@dataclass(frozen=True, kw_only=True)
class Tool(Declaration):
    """A tool as the graph runs it."""

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool
    validate: Callable[[str], BaseModel | dict[str, Any]]
    run: Callable[[Context | None, Arguments, str], Awaitable[Any]]
    returns: type[BaseModel] | None = None
    needs_customer: bool = True

    @property
    def writes(self) -> bool:
        return self.effect == "write"

    def awaits(self, receipt: Mapping[str, Any]) -> bool:
        """Whether more will be heard of what this receipt is for."""
        assert self.returns is not None
        read = self.returns.model_validate(receipt)
        return isinstance(read, Receipt) and read.awaits

    def is_outside(self, ctx: Context) -> bool:
        """Whether its effect happens elsewhere than in the transaction that it is given."""
        return self.outside(ctx) if self.outside else self.find is not None


class tool(Declaration):
    """Declares a function as a tool. Raises BadDeclaration, at import, where the two disagree."""

    def __call__(self, function: Callable[..., Awaitable[BaseModel]]) -> Tool:
        arguments, returns = _models(function)
        declared = Tool(
            **vars(self),
            name=function.__name__,
            description=_description(function, self.required, returns),
            parameters=_strict_schema(arguments),
            strict=True,
            validate=_validator(arguments),
            run=_runner(function, returns),
            returns=returns,
        )
        _check(declared, set(arguments.model_fields), set(returns.model_fields))
        return declared


_VERBATIM = "verbatim"
Verbatim = Annotated[str, _VERBATIM]
"""A field that holds a text of the shop's own files: a card shows it word for word, alone, with its
lines as they are. Any other text may come from outside and is put on one line."""


class Translated(BaseModel):
    """A result that a shop has in several languages; a card shows it in the answer's own."""

    def spoken(self, language: str) -> Self:
        """The result as it reads in a language; as it is where there is no translation."""
        return self


def is_verbatim(returns: type[BaseModel], field: str) -> bool:
    return _VERBATIM in returns.model_fields[field].metadata


def placeholders(template: str) -> set[str]:
    """The field names in a card's template. Raises ValueError when its braces do not match."""
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def _models(function: Callable[..., Any]) -> tuple[type[BaseModel], type[BaseModel]]:
    hints = get_type_hints(function, include_extras=True)
    returns = hints.pop("return", None)
    if not (inspect.iscoroutinefunction(function) and isinstance(returns, type)):
        raise BadDeclaration(f"{function.__name__} must be async and return a pydantic model.")
    fields = {
        name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in list(inspect.signature(function).parameters.items())[1:]
    }
    arguments: type[BaseModel] = create_model(
        function.__name__,
        __config__=ConfigDict(extra="forbid", strict=True),
        **fields,  # type: ignore[call-overload]
    )
    return arguments, returns


def _description(
    function: Callable[..., Any], required: tuple[str, ...], returns: type[BaseModel]
) -> str:
    optional = [name for name in returns.model_fields if name not in required]
    braced = [", ".join(map("{{{}}}".format, names)) or "none" for names in (required, optional)]
    return (
        f"{inspect.cleandoc(function.__doc__ or '')}\n\n"
        f"Card placeholders: required {braced[0]}; optional {braced[1]}."
    )


def _strict_schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """The schema in the form that strict tool calling asks for: closed, every property required."""
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    schema["additionalProperties"] = False
    schema["required"] = list(schema.setdefault("properties", {}))
    for property_ in schema["properties"].values():
        property_.pop("title", None)
        property_.pop("default", None)
    return schema


def _validator(arguments: type[BaseModel]) -> Callable[[str], BaseModel]:
    def validate(text: str) -> BaseModel:
        try:
            return arguments.model_validate_json(text, strict=True)
        except ValidationError as error:
            raise InvalidArguments(sentence_of(error)) from None

    return validate


def sentence_of(error: ValidationError) -> str:
    """Says what was wrong with which argument, without repeating the values."""
    problems = [
        f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    return "The arguments do not fit: " + "; ".join(problems[:5]) + "."


def _runner(
    function: Callable[..., Awaitable[BaseModel]], returns: type[BaseModel]
) -> Callable[[Context | None, Arguments, str], Awaitable[Any]]:
    async def run(ctx: Context | None, arguments: Arguments, call_id: str) -> Any:
        result = await function(ctx, **arguments)
        if not isinstance(result, returns):
            raise TypeError(f"{function.__name__} did not return a {returns.__name__}.")
        return result.model_dump(mode="json")

    return run


def _check(tool: Tool, parameters: set[str], fields: set[str]) -> None:
    subject = {tool.subject} - {""}
    wrong = {
        "subject is no parameter": subject - parameters,
        "subject is no field of the result": subject - fields,
        "identity is no parameter": set(tool.identity) - parameters,
        "required is no field of the result": set(tool.required) - fields,
        "placeholder is no field of the result": placeholders(tool.sentence) - fields,
        "required is missing in the sentence": set(tool.required) - placeholders(tool.sentence),
        "cost is no Decimal or int from 0 on": set() if _is_cost(tool.cost) else {str(tool.cost)},
        **(_wrong_write(tool, subject, parameters) if tool.writes else _wrong_read(tool)),
    }
    if problems := [f"{what}: {sorted(names)}" for what, names in wrong.items() if names]:
        raise BadDeclaration(f"@tool {tool.name}: {'; '.join(problems)}")


def _is_cost(cost: object) -> bool:
    """A float is none, since sums of money are exact."""
    if isinstance(cost, Decimal):
        return cost.is_finite() and cost >= 0
    return cost is None or (type(cost) is int and cost >= 0)


def _wrong_read(tool: Tool) -> dict[str, set[str]]:
    only = ("identity", "check", "find", "question")
    return {"only a write has": {name for name in only if getattr(tool, name)}}


def _wrong_write(tool: Tool, subject: set[str], parameters: set[str]) -> dict[str, set[str]]:
    assert tool.returns is not None
    receipt = set() if issubclass(tool.returns, Receipt) else {tool.returns.__name__}
    return {
        "subject is missing in identity": subject - set(tool.identity),
        "a write must return a Receipt": receipt,
        "outside needs": {"find"} if tool.outside and not tool.find else set(),
        "a write needs": set() if tool.question else {"question"},
        "question asks for no parameter": placeholders(tool.question) - parameters,
        "identity is missing in the question": question_lacks(tool, tool.question),
    }


def question_lacks(tool: Tool, question: str) -> set[str]:
    """What makes a write this action and is not in its question; an amount shows its currency."""
    asked = placeholders(question)
    return set(tool.identity) - asked - ({"currency"} if "amount" in asked else set())
