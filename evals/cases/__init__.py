"""Cases: conversations as data, one a file, and what must be true of each turn.

`schema.json` says what a case may hold. `core` asks about the fan-out of calls, whatever the
shop's policy; `shop` about the demo shop and its policy. A folder that holds a `shop.json` or
`shop.csv` is played in that shop, any other in the demo shop.
"""

import glob
import json
import re
from collections.abc import Hashable, Sequence
from fnmatch import fnmatchcase
from os.path import isfile
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from agent.problems import Problem
from evals.case import Case
from evals.cases.checks import Place, impossible
from evals.truth import Truth

FOLDER = Path(__file__).parent
SCHEMA = Draft202012Validator(json.loads((FOLDER / "schema.json").read_text(encoding="utf-8")))
LARGEST = 100_000  # bytes of a file


class CaseFile:
    """A case and where in its file each part of it stands, for whoever has to mend it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            if path.stat().st_size > LARGEST:
                raise UnicodeError
            text = path.read_text(encoding="utf-8")
            loader = _Loader(text)
            self._root = loader.get_single_node()
            content: Any = loader.construct_document(self._root) if self._root else None
            json.dumps(content, ensure_ascii=False).encode()  # an escape may be half a character
        except (OSError, UnicodeError, RecursionError, yaml.YAMLError) as error:
            raise Problem(self._unreadable(error)) from None
        if problem := best_match(SCHEMA.iter_errors(content)):
            raise self._problem(*_wrong(problem))
        self.case = Case(name=_name(path), **content)

    def check(self, truth: Truth) -> None:
        """Raises Problem for what cannot be true in this shop."""
        for wrong in impossible(self.case, truth):
            raise self._problem(*wrong)

    def _problem(self, place: Place, message: str) -> Problem:
        where = ".".join(map(str, place)) or "the case"
        line = _line(self._root, place)
        return Problem(f"{self._path}, line {line}: {where}: {message}. No case was run.")

    def _unreadable(self, error: Exception) -> str:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or getattr(error, "strerror", None)
        what = what or f"no UTF-8, nested too deeply, or longer than {LARGEST} bytes"
        return f"{self._path}{where}: this case cannot be read ({what}). No case was run."


def find(pattern: str = "*", name: str | None = None) -> list[CaseFile]:
    """The cases whose name fits, in the order of their names; a pattern may also be of paths.

    Raises Problem for a case file with a mistake, and where nothing fits.
    """
    known = {_name(path): path for path in sorted(FOLDER.glob("*/*.yaml"))}
    named = [pattern] if isfile(pattern) else sorted(glob.glob(pattern))
    paths = [path for key, path in known.items() if fnmatchcase(key, pattern)]
    paths = paths or [Path(path) for path in named if path.endswith(".yaml")]
    if name is not None:
        paths = [path for path in paths if name in (path.stem, _name(path))]
    if not paths:
        raise Problem(
            f"No case fits {pattern if name is None else name!r}; the names are those of the files"
            f" in {FOLDER}, such as core/two-orders. No case was run."
        )
    found = {(file := CaseFile(path)).case.name: file for path in paths}
    if len(found) < len(paths):
        raise Problem(f"Two of the files {pattern!r} have the same name. No case was run.")
    return list(found.values())


def _name(path: Path) -> str:
    return f"{path.absolute().parent.name}/{path.stem}"


def _wrong(problem: Any) -> tuple[Sequence[str | int], str]:
    """A field that nobody knows is told at its own place, not at that of what holds it."""
    place = list(problem.absolute_path)
    if problem.validator == "additionalProperties" and problem.schema.get("properties"):
        unknown = next(key for key in problem.instance if key not in problem.schema["properties"])
        return [*place, unknown], "there is no such field"
    return place, problem.message


def _line(node: yaml.Node | None, place: Place) -> int:
    """The line of the deepest part of a place that the file has."""
    line = node.start_mark.line if node else 0
    for step in place:
        parts: dict[str | int, tuple[yaml.Node, yaml.Node]] = {}
        if isinstance(node, yaml.MappingNode):
            parts = {key.value: (key, value) for key, value in node.value}
        elif isinstance(node, yaml.SequenceNode):
            parts = {place: (value, value) for place, value in enumerate(node.value)}
        if step not in parts:
            break
        key, node = parts[step]
        line = key.start_mark.line
    return line + 1


class _Loader(yaml.SafeLoader):
    """YAML as a person reads it, with the values that JSON has.

    `no`, 2026-01-01, 12:30 and 00123 are text, no truth value, day or number. Keys are text as
    well, and none may stand twice. What is said once is said in its place: there are no aliases.
    """

    yaml_implicit_resolvers = {}  # noqa: RUF012

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.constructor.ConstructorError(None, None, "it holds an alias", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        made: dict[Hashable, Any] = {}
        for key, value in node.value:
            is_text = isinstance(key.value, str)
            if not is_text or key.value in made:
                what = f"{key.value!r} stands twice" if is_text else "a key must be text"
                raise yaml.constructor.ConstructorError(None, None, what, key.start_mark)
            made[key.value] = self.construct_object(value, deep=True)
        return made


for _tag, _pattern in {
    "bool": "true|false",
    "null": "null|~|",
    "int": "-?(0|[1-9][0-9]*)",
    "float": r"-?(0|[1-9][0-9]*)\.[0-9]+",
}.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), None)
