"""The door of the offline model: what comes in as HTTP, what goes out."""

import json
from typing import Any
from uuid import uuid4

import httpx2

from offline_model import responses
from offline_model.errors import ApiRefusal
from offline_model.sse import EventStream

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


class OfflineTransport(httpx2.AsyncBaseTransport):
    """Answers `POST …/responses` as the vendor's API would, without a network.

    `fragment` is the number of characters in a streamed delta. One transport serves any number of
    requests at once: it keeps nothing between them.
    """

    def __init__(self, *, fragment: int = 7) -> None:
        if fragment < 1:
            raise ValueError("fragment must be at least one character")
        self._fragment = fragment

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        try:
            return self._answer(request, body)
        except ApiRefusal as refusal:
            return _response(request, refusal.status, json=refusal.body)

    def _answer(self, request: httpx2.Request, body: bytes) -> httpx2.Response:
        _admit(request)
        sent = _parsed(body)
        reply = responses.reply(sent)
        if not sent.get("stream"):
            return _response(request, 200, json=reply.whole())
        events = EventStream(reply.events(self._fragment))
        headers = {"content-type": "text/event-stream; charset=utf-8"}
        return _response(request, 200, stream=events, headers=headers)


def _admit(request: httpx2.Request) -> None:
    path, method = request.url.path, request.method
    if not path.endswith("/responses"):
        raise ApiRefusal(f"Invalid URL ({method} {path})", status=404)
    if method != "POST":
        raise ApiRefusal(f"Invalid method for URL ({method} {path})", status=405)
    if not request.headers.get("authorization", "").removeprefix("Bearer").strip():
        raise ApiRefusal(NO_KEY, status=401)


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
