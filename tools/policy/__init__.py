"""The shop's words to the model and, from its policy files, to the customer."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Document:
    """A Markdown file: the `version` of its front matter and the text below it."""

    version: str
    text: str


@cache
def instructions() -> Document:
    """What the model is told with every request."""
    return read(FOLDER / "instructions.md")


def read(path: Path) -> Document:
    """Raises ValueError when the front matter is missing or names no version."""
    head, _, text = path.read_text(encoding="utf-8").removeprefix("---\n").partition("\n---\n")
    matter = yaml.safe_load(head) if text else None
    if not isinstance(matter, dict) or "version" not in matter:
        raise ValueError(f"{path.name} must begin with a front matter that names its version.")
    return Document(version=str(matter["version"]), text=text.strip())
