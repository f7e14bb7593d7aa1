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
from functools import cache
from os.path import isfile
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from agent.problems import Problem
from evals.case import Case
from evals.cases.checks import Place, impossible
from evals.truth import Truth

FOLDER = Path(__file__).parent
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
        problems = jsonschema.Draft202012Validator(_schema()).iter_errors(content)
        if problem := jsonschema.exceptions.best_match(problems):
            raise self.problem(*_wrong(problem))
        self.case = Case(name=f"{path.absolute().parent.name}/{path.stem}", **content)

    def check(self, truth: Truth) -> None:
        """Raises Problem for what cannot be true in this shop."""
        for wrong in impossible(self.case, truth):
            raise self.problem(*wrong)

    def problem(self, place: Place, message: str) -> Problem:
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
    paths = [path for key, path in _known().items() if fnmatchcase(key, pattern)]
    named = [pattern] if isfile(pattern) else sorted(glob.glob(pattern))
    paths = paths or [Path(path) for path in named if path.endswith(".yaml")]
    if name is not None:
        paths = [path for path in paths if name in (path.stem, f"{path.parent.name}/{path.stem}")]
    if not paths:
        raise Problem(f"No case fits {pattern if name is None else name!r}. No case was run.")
    found = {(file := CaseFile(path)).case.name: file for path in paths}
    if len(found) < len(paths):
        raise Problem(f"Two of the files {pattern!r} have the same name. No case was run.")
    return list(found.values())


def _known() -> dict[str, Path]:
    return {f"{path.parent.name}/{path.stem}": path for path in sorted(FOLDER.glob("*/*.yaml"))}


@cache
def _schema() -> Any:
    return json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))


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
        line, node = _child(node, step) or (line, None)
    return line + 1


def _child(node: yaml.Node | None, step: str | int) -> tuple[int, yaml.Node] | None:
    pairs: list[Any] = []
    if isinstance(node, yaml.MappingNode):
        pairs = [(key.value, key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        pairs = [(place, value, value) for place, value in enumerate(node.value)]
    found = ((at.start_mark.line, value) for name, at, value in pairs if name == step)
    return next(found, None)


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
        keys = [key.value for key, _ in node.value]
        for place, key in enumerate(keys):
            if not isinstance(key, str) or key in keys[:place]:
                what = f"{key!r} stands twice" if isinstance(key, str) else "a key must be text"
                mark = node.value[place][0].start_mark
                raise yaml.constructor.ConstructorError(None, None, what, mark)
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}


for _tag, _pattern in {
    "bool": "true|false",
    "null": "null|~|",
    "int": "-?(0|[1-9][0-9]*)",
    "float": r"-?(0|[1-9][0-9]*)\.[0-9]+",
}.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), None)
