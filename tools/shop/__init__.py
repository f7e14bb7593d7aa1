"""The shop: what it holds (`models`), how it is asked (`protocol`), where it lives (`sql`, `http`).

Which one a deployment has is decided here, and nowhere else.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import HttpUrl, SecretStr

    from tools.database import Database
    from tools.shop.protocol import Shop


def open_shop(database: "Database", url: "HttpUrl | None", token: "SecretStr | None") -> "Shop":
    """The shop behind the API at `url`, or without one the shop in the database.

    Nothing is asked before the first use.
    """
    if url is None:
        from tools.shop.sql import SqlShop

        return SqlShop(database)
    from tools.shop.http import HttpShop

    return HttpShop(str(url), token)


async def close_shop(shop: "Shop") -> None:
    """Closes the connections of a shop that has any, and then a `close` method."""
    if close := getattr(shop, "close", None):
        await close()
