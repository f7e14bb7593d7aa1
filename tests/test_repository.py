"""What a person who clones the repository relies on: locks, targets, settings, licence, version."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
RUNTIME = ROOT / "requirements" / "runtime.txt"

# What somebody who only runs the agent never needs.
NOT_FOR_RUNTIME = {
    "fastapi", "grpcio", "hypothesis", "import-linter", "ipykernel", "ipython", "jupyter-client",
    "jupyter-core", "langgraph-api", "langgraph-cli", "langgraph-runtime-inmem", "mypy",
    "nbclient", "nbformat", "notebook", "numpy", "pandas", "pip", "pytest", "pytest-asyncio",
    "ruff", "starlette", "tornado", "uv", "uvicorn",
}  # fmt: skip


def pins(lock: Path) -> dict[str, str]:
    """Each package of a lock with the lines that belong to it, hashes included."""
    blocks = re.split(r"\n(?=\S)", lock.read_text().strip())
    return {canonicalize_name(Requirement(block.split("\\")[0]).name): block for block in blocks}


def version(block: str) -> str:
    return str(Requirement(block.split("\\")[0]).specifier)


def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["project"]  # type: ignore[no-any-return]


def variables_of_the_example() -> set[str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    return {line.removeprefix("#").split("=")[0] for line in lines if re.match(r"#?[A-Z_]+=", line)}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_pins_one_version_of_each_package_by_hash(lock: Path) -> None:
    for name, block in pins(lock).items():
        assert re.fullmatch(r"==[^,*]+", version(block)), name
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", block), f"{name} has no hash"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_names_no_index_no_address_and_no_path(lock: Path) -> None:
    text = lock.read_text()
    assert not re.search(r"://|^\s*-(?!-hash=)|^\s*--(?!hash=)|[ =]/\w", text, re.MULTILINE)
    assert " @ " not in text


def test_no_two_locks_name_different_versions() -> None:
    seen: dict[str, tuple[str, str]] = {}
    for lock in LOCKS:
        for name, block in pins(lock).items():
            first, expected = seen.setdefault(name, (lock.name, version(block)))
            assert version(block) == expected, f"{name} differs between {first} and {lock.name}"


def test_the_runtime_brings_no_test_notebook_or_server_package() -> None:
    assert not pins(RUNTIME).keys() & NOT_FOR_RUNTIME


def test_the_locks_hold_what_pyproject_asks_for() -> None:
    asked = project()
    runtime = pins(RUNTIME)
    everything = {name: block for lock in LOCKS for name, block in pins(lock).items()}
    extras = asked["optional-dependencies"].values()
    for locked, requirements in ((runtime, [asked["dependencies"]]), (everything, extras)):
        for requirement in (Requirement(text) for group in requirements for text in group):
            pin = version(locked[canonicalize_name(requirement.name)]).removeprefix("==")
            assert requirement.specifier.contains(pin), f"{requirement} is locked at {pin}"


def test_make_alone_explains_each_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    [phony] = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    explained = dict(re.findall(r"^  (\S+) +(\S.*)$", shown, re.MULTILINE))
    assert set(explained) == set(phony.split()) - {"FORCE"}
    assert all(len(text.split()) > 2 for text in explained.values())


def test_the_example_environment_names_exactly_the_settings_and_langsmiths_own() -> None:
    from agent.settings import Settings

    prefix = Settings.model_config["env_prefix"]
    settings = {
        str(field.validation_alias or f"{prefix}{name.upper()}")
        for name, field in Settings.model_fields.items()
    }
    langsmith = {f"LANGSMITH_{name}" for name in ("TRACING", "API_KEY", "ENDPOINT", "PROJECT")}
    assert variables_of_the_example() == settings | langsmith


def test_the_example_environment_sets_nothing_until_a_person_does() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    assert all(not line or line.startswith("#") for line in lines)


def test_the_licence_is_the_one_that_the_package_names() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert text.startswith(f"{project()['license']} License")
    assert "the support-agent authors" in text


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    headings = re.findall(r"^## \[(\S+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == project()["version"]
