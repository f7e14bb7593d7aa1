"""The shop's schema, step by step: one Alembic file `<revision>_<words>.py` a change."""

from pathlib import Path

from sqlalchemy import Connection

from tools.database import Branch

_HERE = Path(__file__).parent


def _load_demo(connection: Connection) -> None:
    # Not at the top: the importer and Babel are needed once in a database's life.
    from tools.shop.importer import read_shop_file, write_shop

    for name in ("customers.json", "orders.json"):
        write_shop(connection, read_shop_file(_HERE.parent / "demo" / name))


SHOP_BRANCH = Branch("shop", _HERE, seed=_load_demo)
