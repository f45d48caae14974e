"""What a server of the zoo adds to uvicorn's and Starlette's limits: a bound on a body."""

import asyncio
from collections.abc import Sequence

from zoo.errors import require

require("starlette", extra="serve")

from starlette.exceptions import HTTPException  # noqa: E402

MAX_CONNECTIONS = 512  # uvicorn's `limit_concurrency`; the next ones get 503
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def hosts_of(address: str, allowed: Sequence[str] = ()) -> list[str]:
    """The names that `TrustedHostMiddleware` lets pass at `--host`: on loopback no other site's
    (DNS rebinding), elsewhere any unless some are `--allowed-host`."""
    own = ["127.0.0.1", "localhost", "[::1]"] if address in LOOPBACK or allowed else ["*"]
    return [*own, *allowed]


class BoundedBody:
    """ASGI middleware: refuses a body of more than `most` bytes with status 413; `but` maps paths
    to bounds of their own."""

    def __init__(self, app, most, but=()):
        self.app, self.most, self.but = app, most, but

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["path"] in self.but:
            return await self.app(scope, receive, send)
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        size = int(announced[:20]) if announced.isdigit() else 0
        come = 0

        async def bounded():
            nonlocal come
            message = await receive() if size <= self.most else {}
            come += len(message.get("body", b""))
            if max(size, come) > self.most:
                raise HTTPException(413, f"a body may have {self.most:,} bytes at most")
            return message

        try:
            return await self.app(scope, bounded, send)
        except asyncio.CancelledError:  # the server ends while a client still sends its body
            return None
