"""The shop's words: its instructions to the model, and the sections of its policy.

A section is a Markdown file with `id`, `version` and `title` in its front matter, and below that
what the customer reads, word for word. `returns.ru.md` is the section of `returns.md` in Russian.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from tools.tool import BadDeclaration

FOLDER = Path(__file__).parent
INSTRUCTIONS = "instructions"
OWN = ""  # the language of a file that names none


@dataclass(frozen=True)
class Document:
    """A Markdown file: what its front matter says, and the text below it."""

    version: str
    text: str
    id: str = ""
    title: str = ""


Section = Mapping[str, Document]
"""One topic by language; `OWN` is always there."""


@cache
def instructions() -> Document:
    """What the model is told with every request. Raises BadDeclaration for a broken file."""
    return _read(FOLDER / f"{INSTRUCTIONS}.md", "version")


@cache
def sections(folder: Path = FOLDER) -> Mapping[str, Section]:
    """The policy by the ids of its sections. Raises BadDeclaration, with a sentence, for a file
    without a proper front matter, an id that two files have, and a translation of nothing.
    """
    found: dict[str, dict[str, Document]] = {}
    for path in sorted(folder.glob("*.md")):
        name, _, language = path.stem.partition(".")
        if name == INSTRUCTIONS:
            continue
        document = _read(path, "id", "version", "title")
        languages = found.setdefault(document.id, {})
        if language in languages:
            raise unusable(path, f"another file has the id {document.id!r} too")
        languages[language] = document
    for id_, languages in found.items():
        if OWN not in languages:
            raise BadDeclaration(f"The policy section {id_!r} is only a translation: add {id_}.md.")
    return found


def version() -> str:
    """All that the agent goes by, for the metadata of a run: each file with its version."""
    files = {INSTRUCTIONS: instructions().version}
    for id_, languages in sections().items():
        files |= {f"{id_}.{lang}".rstrip("."): doc.version for lang, doc in languages.items()}
    return ", ".join(f"{name} {version}" for name, version in files.items())


def _read(path: Path, *needed: str) -> Document:
    try:
        head, end, text = path.read_text("utf-8").removeprefix("---\n").partition("\n---\n")
        matter = yaml.safe_load(head) if end else None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise unusable(path, f"it cannot be read ({type(error).__name__})") from None
    if not isinstance(matter, dict) or not all(matter.get(name) for name in needed):
        raise unusable(path, f"it must begin with a front matter that names {', '.join(needed)}")
    if not text.strip():
        raise unusable(path, "there is no text below its front matter")
    return Document(text=text.strip(), **{name: str(matter[name]) for name in needed})


def unusable(path: Path, why: str) -> BadDeclaration:
    """What is raised for a file of this folder; `why` goes on with the sentence."""
    return BadDeclaration(f"The policy file {path.name} cannot be used: {why}.")
