"""What the customer is asked before a write."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from agent.answer.render import fields_in, fill
from tools.locales import locale
from tools.tool import Tool


def question(
    tool: Tool, arguments: Mapping[str, Any], language: str, *, again: bool = False
) -> str:
    """The question of a write in a language, English where it has none.

    arguments: as the tool's schema read them, or the same as plain JSON. again: whether there is a
    receipt for the same already.
    """
    speech = locale(language)
    checked = dict(tool.validate(to_json(arguments).decode()))
    asked = speech.sentence("questions", tool.name) or tool.question
    money = checked.get("currency")
    values = {name: speech.value(checked[name], money) for name in fields_in(asked)}
    form = speech.sentence("questions", "again") if again else None
    return fill(form or "{question}", {"question": fill(asked, values)})
