"""The notebooks run from top to bottom, with the asserts that they hold."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.name, marks=[pytest.mark.long] if "evals" in path.name else [])
        for path in sorted(ROOT.glob("notebooks/*.ipynb"))
    ],
)
# The kernel's client asks for an event loop in a way that newer Pythons deprecate.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_each_notebook_runs(name: str) -> None:
    notebook = nbformat.read(ROOT / "notebooks" / name, as_version=4)
    resources = {"metadata": {"path": str(ROOT)}}
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources)
    await client.async_execute()
