"""What the vendor keeps of a conversation: the items of each response and of what led to it."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

from offline_model.errors import ApiRefusal

Item = dict[str, Any]

MOST = 1000  # responses; the oldest is forgotten first


class ResponseStore:
    """Whole conversations by the id of their last response, in memory.

    Instructions and tools are no items: they are not kept, as the API does not carry them over.
    """

    def __init__(self, most: int = MOST) -> None:
        self._kept: dict[str, tuple[Item, ...]] = {}
        self._most = most
        self._lock = Lock()

    def keep(self, response_id: str, items: Sequence[Item]) -> None:
        with self._lock:
            self._kept[response_id] = tuple(items)
            if len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]

    def conversation(self, response_id: str | None) -> tuple[Item, ...]:
        """The items up to a response, its own included; none where nothing went before.

        Raises the API's refusal where the id is not known, or no longer.
        """
        if not response_id:
            return ()
        if response_id not in self._kept:
            raise ApiRefusal(
                f"Previous response with id '{response_id}' not found.",
                "previous_response_id",
                "previous_response_not_found",
            )
        return self._kept[response_id]

    def holds(self, item_id: str) -> bool:
        """Whether an item of that id was kept."""
        kept = list(self._kept.values())
        return any(item.get("id") == item_id for items in kept for item in items)
