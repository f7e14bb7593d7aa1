"""The transport between a model's client and its server: only whole responses get through.

It reads a response to its end, holds it to its protocol, and tells it again with calls in one piece
each. What a client would make of half a response never arises. An answer that is an error goes
through as it is, so that the client asks again where it knows to.
"""

import asyncio
import codecs
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from agent.strict import SEAL, SPACE, sealed, unique
from agent.wire import record
from agent.wire.assemble import WRONG_FORM, Assembler, Body, NoEvents, OnNamed, StreamInterrupted
from agent.wire.protocols import DONE, SIZE, Events, Protocol, of_path

LONGEST = 900  # seconds for one response, however lively it is
REST = 0.1  # seconds for what comes behind the last event
UNIQUE = json.JSONDecoder(object_pairs_hook=unique)
UNSUITED = ("content-length", "content-encoding", "transfer-encoding", "content-type")


@dataclass
class Guard(httpx2.AsyncBaseTransport):
    """Wraps the transport that asks.

    stall: seconds that may pass without a byte. on_named: is told the id and tool of a call as
    soon as they are known; nothing has run, and the response may still break off. recordings: the
    folder for streams as they came, without their values; None: nothing is written.

    A broken response raises StreamInterrupted when its body is read.
    """

    inner: httpx2.AsyncBaseTransport
    stall: float = 120
    on_named: OnNamed = lambda call_id, name: None
    recordings: Path | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._begun(request)
        protocol = of_path(request.url.path)
        if protocol is None:
            return response
        if not response.is_success:
            await self._keep_refused(protocol, request, response)
            return response
        streamed = "json" not in response.headers.get("content-type", "").lower()
        headers = [(n, v) for n, v in response.headers.items() if n.lower() not in UNSUITED]
        kind = "text/event-stream; charset=utf-8" if streamed else "application/json"
        return httpx2.Response(
            response.status_code,
            headers=[*headers, ("content-type", kind)],
            stream=_Told(response, self._told(protocol, response, streamed)),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def _begun(self, request: httpx2.Request) -> httpx2.Response:
        try:
            async with asyncio.timeout(self.stall):
                return await self.inner.handle_async_request(request)
        except TimeoutError:
            raise httpx2.ReadTimeout("No answer began in time.", request=request) from None

    async def _keep_refused(
        self, protocol: Protocol, request: httpx2.Request, response: httpx2.Response
    ) -> None:
        if self.recordings and response.status_code in (400, 422):
            sent = [(await request.aread()).decode(errors="replace")]
            await record.keep(self.recordings, f"{protocol.name}-refused", sent)

    async def _told(
        self, protocol: Protocol, response: httpx2.Response, streamed: bool
    ) -> AsyncIterator[bytes]:
        source = _Bounded(response, self.stall)
        if streamed:
            body = await self._assembled(protocol, source)
            mend(protocol, body)
            for frame in protocol.frames(body):
                yield frame
        else:
            content = b"".join([chunk async for chunk in source])
            body = check_unstreamed(protocol, content)
            yield json.dumps(body).encode() if mend(protocol, body) else content

    async def _assembled(self, protocol: Protocol, source: "_Bounded") -> Body:
        assembler = protocol.assembler(self.on_named)
        received: list[str] = []
        try:
            async for data in Events(source):
                if not source.ended:
                    received.append(data)
                    source.ended = take(assembler, data)
            if not received:
                raise NoEvents("The server's answer holds no event.")
            return assembler.whole()
        except StreamInterrupted as error:
            error.usage = assembler.usage
            raise
        finally:
            if self.recordings:
                await record.keep(self.recordings, protocol.name, received)


@dataclass
class _Told(httpx2.AsyncByteStream):
    """What the client reads: nothing until all is there.

    OpenAI's reads on behind the end, to keep the connection, and finds nothing more.
    """

    response: httpx2.Response
    frames: AsyncIterator[bytes]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.frames

    async def aclose(self) -> None:
        await self.response.aclose()


@dataclass
class _Bounded:
    """A body's bytes within all bounds, else StreamInterrupted.

    ended: what comes now is read for the connection's sake, and briefly.
    """

    response: httpx2.Response
    stall: float
    ended: bool = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, text = 0, codecs.getincrementaldecoder("utf-8-sig")()  # a mark before it is no event
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST
        chunks = self.response.aiter_bytes()
        while (chunk := await self._next(chunks, until - loop.time())) is not None:
            size += len(chunk)
            if size > SIZE:
                raise StreamInterrupted(f"The response is larger than {SIZE // 10**6} MB.")
            try:
                yield text.decode(chunk).encode()
            except UnicodeDecodeError:
                raise StreamInterrupted("The response is not UTF-8 text.") from None
            until = min(until, loop.time() + REST) if self.ended else until

    async def _next(self, chunks: AsyncIterator[bytes], left: float) -> bytes | None:
        try:
            async with asyncio.timeout(min(self.stall, left)):
                return await anext(chunks, None)
        except (TimeoutError, httpx2.TransportError, httpx2.DecodingError) as error:
            if self.ended:
                return None
            if isinstance(error, TimeoutError):
                raise StreamInterrupted("The response stopped coming.") from None
            name = type(error).__name__
            raise StreamInterrupted(f"The connection broke off ({name}).") from error


def take(assembler: Assembler, data: str) -> bool:
    """Gives an assembler the data of one event; whether it was the last one that matters."""
    if data.startswith(DONE):
        return True
    try:
        event = UNIQUE.decode(data)
    except (ValueError, RecursionError):
        raise StreamInterrupted("An event is not JSON.") from None
    assembler.take(event)
    return assembler.ended


def check_unstreamed(protocol: Protocol, content: bytes) -> Body:
    """A body that came whole, held to the rules. Raises StreamInterrupted."""
    try:
        body: Body = UNIQUE.decode(content.decode())
        protocol.check(body)
    except (*WRONG_FORM, RecursionError):
        raise StreamInterrupted("The server's answer does not have its protocol's form.") from None
    return body


def mend(protocol: Protocol, body: Body) -> bool:
    """Puts what a client stumbles over into a form that it reads: arguments, and counts of tokens.

    Whether there was any of it.
    """
    counts = counted(body.get("usage"))
    found: bool = counts != body.get("usage")
    if found:
        body["usage"] = counts
    for holder, name in protocol.arguments(body):
        given = holder[name]
        text = given if isinstance(given, str) else json.dumps(given)
        if SEAL in (arguments := sealed(text)) or not text.strip(SPACE):
            found = True
            holder[name] = arguments if protocol.name == "messages" else json.dumps(arguments)
    return found


def counted(usage: Any) -> Any:
    """Counts as whole numbers; one that is none, or beyond all bounds, counts nothing."""
    if isinstance(usage, dict):
        return {name: counted(value) for name, value in usage.items()}
    if isinstance(usage, bool) or not isinstance(usage, int | float):
        return usage
    return int(usage) if 0 <= usage < 2**40 else 0


class Network(httpx2.AsyncBaseTransport):
    """Asks through a client of its own, so that proxies of the environment count.

    A client that is given a transport would leave them out.
    """

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._client.send(request, stream=True, follow_redirects=False)

    async def aclose(self) -> None:
        await self._client.aclose()
