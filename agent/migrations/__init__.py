"""The agent's own schema, step by step: one Alembic file `<revision>_<words>.py` a change."""

from pathlib import Path

from tools.database import Branch

AGENT_BRANCH = Branch("agent", Path(__file__).parent)
