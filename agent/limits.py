"""How many calls at once a tool's service is asked."""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from tools.tool import Tool


@dataclass
class Limits:
    """Calls at once to each tool's service; a semaphore belongs to one event loop."""

    _by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Semaphore]] = field(
        default_factory=WeakKeyDictionary
    )

    def of(self, tool: Tool) -> AbstractAsyncContextManager[Any]:
        if tool.limit is None:
            return nullcontext()
        semaphores = self._by_loop.setdefault(asyncio.get_running_loop(), {})
        return semaphores.setdefault(tool.name, asyncio.Semaphore(tool.limit))
