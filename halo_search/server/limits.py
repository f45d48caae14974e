"""What a server of the zoo adds to uvicorn's and Starlette's limits: a body's bound, a token."""

import asyncio
import base64
import binascii
import hmac
from collections.abc import Sequence

from halo_search.errors import require

require("starlette", extra="serve")

from starlette.exceptions import HTTPException  # noqa: E402
from starlette.responses import JSONResponse  # noqa: E402

MAX_CONNECTIONS = 512  # uvicorn's `limit_concurrency`; the next ones get 503
SECONDS = 60  # in which a body has to come
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def hosts_of(address: str, allowed: Sequence[str] = ()) -> list[str]:
    """The names that `TrustedHostMiddleware` lets pass at `--host`: on loopback no other site's
    (DNS rebinding), elsewhere any unless some are `--allowed-host`."""
    names = ["127.0.0.1", "localhost", "[::1]"] if address in LOOPBACK or allowed else ["*"]
    return [*names, *allowed]


class BoundedBody:
    """ASGI middleware: refuses a body of more than `most` bytes with status 413, one that comes
    too slowly with 408; paths in `but` have bounds of their own."""

    def __init__(self, app, most, but=()):
        self.app, self.most, self.but = app, most, but

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["path"] in self.but:
            return await self.app(scope, receive, send)
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        size = int(announced[:20]) if announced.isdigit() else 0
        come, end, has_ended = 0, asyncio.get_running_loop().time() + SECONDS, False

        async def bounded():
            nonlocal come, has_ended
            if has_ended:
                return await receive()
            message = {}
            try:
                async with asyncio.timeout_at(end):
                    message = await receive() if size <= self.most else {}
            except TimeoutError:
                reason = f"a body must come within {SECONDS} s"
                raise HTTPException(408, reason, {"Connection": "close"}) from None
            has_ended = not message.get("more_body")
            come += len(message.get("body", b""))
            if max(size, come) > self.most:
                raise HTTPException(413, f"a body may have {self.most:,} bytes at most")
            return message

        try:
            return await self.app(scope, bounded, send)
        except asyncio.CancelledError:  # the server ends while a client still sends its body
            return None


class Token:
    """ASGI middleware: answers to who sends the token as `Authorization: Bearer TOKEN`, or as the
    password that a browser asks for; to others 401. Paths in `but` are open."""

    def __init__(self, app, token, but=()):
        self.app, self.token, self.but = app, token.encode(), but

    async def __call__(self, scope, receive, send):
        is_open = scope["type"] == "lifespan" or scope.get("path") in self.but
        if is_open or self._knows(dict(scope["headers"]).get(b"authorization", b"")):
            return await self.app(scope, receive, send)
        ask = {"WWW-Authenticate": 'Basic realm="Halo Zoo: the token is the password"'}
        error = {"error": "expected the token: Authorization: Bearer TOKEN"}
        return await JSONResponse(error, 401, ask)(scope, receive, send)

    def _knows(self, header):
        """Whether a header has the token, as a bearer or as a password; in constant time."""
        kind, _, given = header.partition(b" ")
        if kind.lower() == b"basic":
            try:
                given = base64.b64decode(given, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif kind.lower() != b"bearer":
            return False
        return hmac.compare_digest(given.strip(), self.token)
