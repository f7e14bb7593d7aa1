"""A server on 127.0.0.1 in a thread of the test, for what stands where a vendor or a shop does."""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Generic, TypeVar

Behaviour = TypeVar("Behaviour")
Server = TypeVar("Server", bound="LoopbackServer[Any]")


class LoopbackServer(ThreadingHTTPServer, Generic[Behaviour]):
    """Behaviours say how requests are answered: one a request, in order, the last one for good.

    `broken` is what went wrong in the server itself; `released` ends what is held.
    """

    daemon_threads = True

    def __init__(
        self, handler: type[BaseHTTPRequestHandler], behaviours: Sequence[Behaviour]
    ) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.broken: list[BaseException] = []
        self.released = threading.Event()
        self._behaviours = list(behaviours)
        self._lock = threading.Lock()

    def behave(self, *behaviours: Behaviour) -> None:
        """How the next requests are answered."""
        self._behaviours = list(behaviours)

    def next_behaviour(self) -> Behaviour:
        with self._lock:
            several = len(self._behaviours) > 1
            return self._behaviours.pop(0) if several else self._behaviours[0]

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, ConnectionError):
            self.broken.append(error)


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """The server while the block runs; what went wrong in itself fails the test."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
    assert server.broken == []
