"""What the model writes: words and templates, never values."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

LONGEST = 200_000  # characters of a last message; a longer one is read no further


class CardDraft(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    call_id: str
    text: str


class Draft(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    locale: str
    opening: str
    cards: list[CardDraft]
    closing: str


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("title", None)
        for field in part["properties"].values():
            field.pop("title", None)
    return schema


RESPONSE_FORMAT: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "schema": _closed(Draft.model_json_schema()), "strict": True},
}


def read(text: str) -> Draft | None:
    """The draft in a model's last message; None when it is not the JSON object that was asked for,
    or endless.

    A code fence around the object is forgiven: it changes no meaning.
    """
    if len(text) > LONGEST:
        return None
    bare = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        return Draft.model_validate_json(bare)
    except ValidationError:
        return None


def wordless(draft: Draft) -> Draft:
    """The draft without its words: which results it speaks of, in which order."""
    cards = [CardDraft(call_id=card.call_id, text="") for card in draft.cards]
    return Draft(locale="", opening="", cards=cards, closing="")
