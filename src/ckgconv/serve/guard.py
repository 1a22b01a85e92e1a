"""What stands before the addresses: checks of host, origin, size and number of requests, and the headers of answers.

A page of another site may make a browser send requests here. It cannot read the answers: there is no CORS. A name that
its owner points to this machine (DNS rebinding) fails at the check of the host: an address in figures and the names of
this machine are accepted, and others only where the user names them.
"""

import asyncio
import ipaddress
import json
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from ckgconv.serve.limits import Limits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
FILE_ADDRESS = "/api/predict-file"
# Of the form around an uploaded file.
FORM_BYTES = 2**14
# Read of a body that is too large, so that the refusal reaches whoever is still sending.
LINGER_BYTES, LINGER_SECONDS = 2**20, 1.0


class Refused(Exception):
    """A request that is answered here, with a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Guard:
    """Wraps an application; `names` are the host names under which it may be asked, besides addresses in figures."""

    def __init__(self, app: App, limits: Limits, names: frozenset[str]) -> None:
        self.app, self.limits, self.names = app, limits, names
        self.active = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # there are no websockets, and nothing happens at start and end
        reply = _with_headers(send)
        counted = scope["method"] not in ("GET", "HEAD")
        if counted:
            self.active += 1
        try:
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            self._check(headers, counted)
            body = await self._body(scope, headers, receive)
            await self.app(scope, _replay(body, receive), reply)
        except Refused as refusal:
            await _refuse(reply, refusal)
        finally:
            self.active -= counted

    def _check(self, headers: dict[str, str], counted: bool) -> None:
        host = headers.get("host", "")
        if not known_host(host, self.names):
            raise Refused(421, "The host of the address is not known here: name it with --name, or use the IP address.")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise Refused(403, "The request comes from the page of another site, which is not answered.")
        if counted and self.active > self.limits.requests:
            raise Refused(503, "The server has too many requests at the moment: try again in a few seconds.")

    async def _body(self, scope: MutableMapping[str, Any], headers: dict[str, str], receive: Receive) -> bytes:
        """The whole body, which stays below the limit of its address."""
        most = self.limits.json_bytes
        if scope["path"] == FILE_ADDRESS:
            most = self.limits.file_bytes + FORM_BYTES
        too_large = Refused(413, f"The request has more than {most:,} bytes: send it in parts.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18 or int(length) > most:
            if length.isdecimal() and len(length) <= 18 and int(length) <= most + LINGER_BYTES:
                await _discard(receive)
            raise too_large
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                return await _read(receive, most, too_large)
        except TimeoutError:
            raise Refused(408, f"The request did not arrive within {self.limits.body_seconds:g} s.") from None


def known_host(header: str, names: frozenset[str]) -> bool:
    """Whether a Host header has an address in figures or one of the names, with or without a port."""
    try:
        parts = urlsplit(f"//{header}")
        host = (parts.hostname or "").rstrip(".").lower()
        _ = parts.port  # raises where it is no number
    except ValueError:
        return False
    if parts.netloc != header or parts.username is not None or not host:
        return False
    if host in names:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _read(receive: Receive, most: int, too_large: Refused) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "The connection was closed.")
        body += message.get("body", b"")
        if len(body) > most:
            await _discard(receive)
            raise too_large
        if not message.get("more_body", False):
            return bytes(body)


async def _discard(receive: Receive) -> None:
    """Read on for a moment: a connection that is closed with data unread is reset, and its answer may be lost."""
    left = LINGER_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _replay(body: bytes, receive: Receive) -> Receive:
    """Gives the application the body once; later it hears of the end of the connection."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(send: Send) -> Send:
    async def reply(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            present = {name.lower() for name, _ in message.get("headers", [])}
            if b"cache-control" not in present:
                own.append((b"cache-control", b"no-store"))
            message["headers"] = [*message.get("headers", []), *own]
        await send(message)

    return reply


async def _refuse(send: Send, refusal: Refused) -> None:
    body = json.dumps({"error": str(refusal)}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers.append((b"content-length", str(len(body)).encode()))
    if refusal.status == 503:
        headers.append((b"retry-after", b"5"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
