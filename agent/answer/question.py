"""The question of a confirmation."""

from collections.abc import Mapping
from typing import Any

from tools.tool import Tool


def question(
    tool: Tool, arguments: Mapping[str, Any], language: str, *, again: bool = False
) -> str:
    return f"{tool.name} {dict(arguments)}?"
