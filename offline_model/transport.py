"""The door of the offline model: what comes in as HTTP, what goes out."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol
from uuid import uuid4

import httpx2

from offline_model import chat, responses
from offline_model.conversation import Think
from offline_model.errors import ApiRefusal
from offline_model.planner import plan
from offline_model.sse import EventStream
from offline_model.store import ResponseStore

NO_KEY = (
    "You didn't provide an API key. You need to provide your API key in an Authorization header "
    "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank "
    "username) if you're accessing the API from your browser and are prompted for a username and "
    "password."
)
NO_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using "
    "your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not "
    "valid JSON.)"
)


class Reply(Protocol):
    """What a protocol answers: `whole` as one JSON object, or as the `frames` of a stream."""

    def whole(self) -> dict[str, Any]: ...

    def frames(self, fragment: int) -> Iterator[bytes]: ...


PROTOCOLS: dict[str, Callable[[dict[str, Any], ResponseStore, Think], Reply]] = {
    "/responses": responses.reply,
    "/chat/completions": chat.reply,
}


class OfflineTransport(httpx2.AsyncBaseTransport):
    """Answers `POST …/responses` and `POST …/chat/completions` as the vendor's API would, without
    a network.

    `fragment` is the number of characters in a streamed delta. One transport serves any number of
    requests at once; it keeps the last responses that it was not asked to forget, so that a
    request may go on from one by `previous_response_id`. `think` decides what the model says next.
    """

    def __init__(self, *, fragment: int = 7, think: Think = plan) -> None:
        if fragment < 1:
            raise ValueError("fragment must be at least one character")
        self._fragment = fragment
        self._think = think
        self._store = ResponseStore()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        try:
            return self._answer(request, body)
        except ApiRefusal as refusal:
            return _response(request, refusal.status, json=refusal.body)

    def _answer(self, request: httpx2.Request, body: bytes) -> httpx2.Response:
        protocol = _admitted(request)
        sent = _parsed(body)
        reply = PROTOCOLS[protocol](sent, self._store, self._think)
        if not sent.get("stream"):
            return _response(request, 200, json=reply.whole())
        frames = EventStream(reply.frames(self._fragment))
        headers = {"content-type": "text/event-stream; charset=utf-8"}
        return _response(request, 200, stream=frames, headers=headers)


def _admitted(request: httpx2.Request) -> str:
    """Which protocol a request speaks."""
    path, method = request.url.path, request.method
    protocol = next((end for end in PROTOCOLS if path.endswith(end)), None)
    if protocol is None:
        raise ApiRefusal(f"Invalid URL ({method} {path})", status=404)
    if method != "POST":
        raise ApiRefusal(f"Invalid method for URL ({method} {path})", status=405)
    if not request.headers.get("authorization", "").removeprefix("Bearer").strip():
        raise ApiRefusal(NO_KEY, status=401)
    return protocol


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        sent = json.loads(body)
    except ValueError as error:
        raise ApiRefusal(NO_JSON) from error
    if not isinstance(sent, dict):
        raise ApiRefusal(NO_JSON)
    return sent


def _response(request: httpx2.Request, status: int, **content: Any) -> httpx2.Response:
    headers = {"x-request-id": f"req_{uuid4().hex}", **content.pop("headers", {})}
    return httpx2.Response(status, headers=headers, request=request, **content)
