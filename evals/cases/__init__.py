"""Cases: conversations as data, one a file, and what must be true of each turn.

`schema.json` says what a case may hold. `core` asks about the fan-out of calls, whatever the
shop's policy; `shop` is a clone's own.
"""

import glob
import json
from collections.abc import Hashable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from agent.problems import Problem
from evals.case import Case, Fault, Turn
from evals.truth import Truth

FOLDER = Path(__file__).parent
POLICY = files("tools.policy")

Place = Sequence[str | int]


class CaseFile:
    """A case and where in its file each part of it stands, for whoever has to mend it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            text = path.read_text(encoding="utf-8")
            self._root = yaml.compose(text, Loader=_Loader)
            content = yaml.load(text, Loader=_Loader)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise Problem(self._unreadable(error)) from None
        problems = jsonschema.Draft202012Validator(_schema()).iter_errors(content)
        if problem := jsonschema.exceptions.best_match(problems):
            raise self.problem(list(problem.absolute_path), problem.message)
        faults = content.get("faults", {}).items()
        content["faults"] = {order: _fault(stated) for order, stated in faults}
        self.case = Case(name=f"{path.absolute().parent.name}/{path.stem}", **content)

    def check(self, truth: Truth) -> None:
        """Raises Problem for what cannot be true in this shop."""
        if self.case.customer not in truth.customers:
            raise self.problem(["customer"], f"the shop has no customer {self.case.customer!r}")
        for number, turn in enumerate(self.case.turns):
            self._check_turn(turn, ["turns", number], truth)

    def problem(self, place: Place, message: str) -> Problem:
        where = ".".join(map(str, place)) or "the case"
        line = _line(self._root, place)
        return Problem(f"{self._path}, line {line}: {where}: {message}. No case was run.")

    def _check_turn(self, turn: Turn, place: Place, truth: Truth) -> None:
        own = {order for order, facts in truth.orders.items() if facts.owner == self.case.customer}
        for order_id, fields in turn.facts.items():
            here = [*place, "facts", order_id]
            if order_id not in own:
                raise self.problem(here, f"{self.case.customer} has no order {order_id!r}")
            for field in fields:
                if not truth.orders[order_id].values[field]:
                    raise self.problem(here, f"the order has no {field} in the shop")
        if turn.policy and not (POLICY / f"{turn.policy}.md").is_file():
            raise self.problem([*place, "policy"], f"the shop has no policy {turn.policy!r}")
        for order_id in sorted(turn.derived.order_ids - own):
            message = f"{self.case.customer} has no order {order_id!r}"
            raise self.problem([*place, "derived"], message)
        for order_id, kind in turn.failures.items():
            if (kind == "not_found") == (order_id in own):
                message = f"{kind} cannot be true of {order_id!r} for {self.case.customer}"
                raise self.problem([*place, "failures", order_id], message)

    def _unreadable(self, error: Exception) -> str:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or getattr(error, "strerror", None) or "no UTF-8"
        return f"{self._path}{where}: this case cannot be read ({what}). No case was run."


def find(pattern: str = "*", name: str | None = None) -> list[CaseFile]:
    """The cases whose name fits, in the order of their names; a pattern may also be of paths.

    Raises Problem for a case file with a mistake, and where nothing fits.
    """
    known = {f"{path.parent.name}/{path.stem}": path for path in sorted(FOLDER.glob("*/*.yaml"))}
    paths = [path for key, path in known.items() if fnmatchcase(key, pattern)]
    paths = paths or [Path(path) for path in sorted(glob.glob(pattern)) if path.endswith(".yaml")]
    if name is not None:
        paths = [path for path in paths if name in (path.stem, f"{path.parent.name}/{path.stem}")]
    if not paths:
        raise Problem(f"No case fits {name or pattern!r}. No case was run.")
    return [CaseFile(path) for path in paths]


@cache
def _schema() -> Any:
    return json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))


def _fault(stated: Any) -> Fault:
    return Fault.model_validate({"kind": stated} if isinstance(stated, str) else stated)


def _line(node: yaml.Node | None, place: Place) -> int:
    """The line of the deepest part of a place that the file has."""
    line = 0
    for step in [None, *place]:
        if step is not None:
            node = _child(node, step)
        if node is None:
            break
        line = node.start_mark.line
    return line + 1


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        child: yaml.Node = node.value[step]
        return child
    return None


class _Loader(yaml.SafeLoader):
    """Keys are text: the order `00123` must not become the number 83. None may stand twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        for place, key in enumerate(keys):
            if key in keys[:place]:
                mark = node.value[place][0].start_mark
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands twice", mark)
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}
