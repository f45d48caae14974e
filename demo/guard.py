"""Filters requests: only the page's own, for this host, of a bounded size.

Gradio bounds each upload. It bounds neither their sum nor a JSON body, and it answers whatever name
a request calls the server by, which lets a page of another site ask a server of this machine (DNS
rebinding). It serves files of the working folder, and fetches addresses that a request names.
"""

import asyncio
import contextlib
import json
import re
from pathlib import Path

from demo import routes
from demo.cards import escape
from demo.uploads import is_upload
from zoo.retriever.connections import (
    GoneError,
    Pool,
    TooLargeError,
    TooLateError,
    TooMuchError,
    body_of,
    in_time,
    replayed,
)

MAX_BODY = 2**20  # bytes of a request that is no upload
MAX_KEPT = 500 * 2**20  # bytes of all uploads that are kept at once
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LINKS = re.compile(rb'<meta\s+(?:name="twitter:|property="og:)[^>]*>')


def hosts_of(address):
    """The names that a server on an address answers to; None for any."""
    return _LOOPBACK if address in ("127.0.0.1", "localhost", "::1") else None


class Guard:
    """ASGI middleware in front of Gradio.

    Args:
        app: what answers.
        hosts: names in a request's Host header that are answered; None for all.
        uploads: folder of what was uploaded.
        title: of the page, for what shows a link to it.
    """

    def __init__(self, app, hosts, uploads, title):
        self.app, self.hosts, self.uploads = app, hosts, Path(uploads)
        self.coming = 0  # bytes of uploads that are under way
        self.pool = Pool()
        self.head = f'<meta property="og:title" content="{escape(title)}">'.encode()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":  # the page opens no WebSocket
            return await send({"type": "websocket.close", "code": 1008})
        headers, path = dict(scope["headers"]), scope["path"]
        if not self._knows(headers.get(b"host", b"").decode("latin-1")):
            return await _refuse(send, 421, "This server does not answer to that name.")
        try:
            if scope["method"] == "POST" and path == routes.UPLOAD:
                return await self._upload(scope, receive, send)
            async with body_of(scope, receive, MAX_BODY, self.pool) as body:
                return await self._answer(scope, receive, send, body)
        except GoneError:
            return None
        except TooLargeError:
            sentence = f"A request may have {MAX_BODY // 2**20} MB at most, without its files."
            return await _refuse(send, 413, sentence, close=True)
        except TooLateError:
            sentence = "The request did not come in time. Send it again."
            return await _refuse(send, 408, sentence, close=True)
        except TooMuchError:
            sentence = "Too many requests are on their way. Try again in a few seconds."
            return await _refuse(send, 503, sentence, close=True)

    async def _answer(self, scope, receive, send, body):
        """Hands a request on whose body is read, if the page makes such requests."""
        path = scope["path"]
        if not routes.is_known(scope["method"], path):
            return await _refuse(send, 404, "There is nothing here.")
        file = path.removeprefix(routes.FILE)
        if file != path and not is_upload(self.uploads, file):
            return await _refuse(send, 403, "Only what was uploaded here is served.")
        if scope["method"] == "POST":
            if not _is_object(body):
                return await _refuse(send, 400, "A request has to be a JSON object.")
            receive = replayed(body, receive)
        if path == "/":
            send = _rewritten(send, self.head)
        return await self.app(scope, receive, send)

    async def _upload(self, scope, receive, send):
        """Hands an upload on while the sum of all that are kept stays within its bound."""
        refusal = 507, "Too many uploads are kept here now. They go after an hour."
        left = MAX_KEPT - self._kept() - self.coming
        if left < 0:
            return await _refuse(send, *refusal)
        taken, more, started = 0, True, asyncio.get_running_loop().time()

        async def bounded():
            nonlocal taken, more
            message = await (in_time(receive, started, taken) if more else receive())
            more = message.get("more_body", False)
            size = len(message.get("body", b""))
            taken += size
            self.coming += size
            if taken > left:
                raise _TooMuchError
            return message

        try:
            return await self.app(scope, bounded, send)
        except _TooMuchError:
            return await _refuse(send, *refusal)
        finally:
            self.coming -= taken

    def _knows(self, host):
        name = re.sub(r":\d+$", "", host.lower())
        return self.hosts is None or name in self.hosts

    def _kept(self):
        """The bytes of all uploads; a file may go meanwhile."""
        kept = 0
        for path in self.uploads.rglob("*"):
            with contextlib.suppress(OSError):
                kept += path.lstat().st_size
        return kept


class _TooMuchError(Exception):
    """An upload is larger than may be kept."""


def _is_object(body):
    """Whether a body is a whole JSON object; thousands of brackets are none."""
    try:
        return isinstance(json.loads(body, parse_constant=_no_number), dict)
    except (ValueError, RecursionError):
        return False


def _no_number(name):
    raise ValueError(f"{name} is no JSON")


def _rewritten(send, head):
    """Gradio's own title and picture for links are left out of the page, for the demo's title."""
    start, parts = None, []

    async def write(message):
        nonlocal start
        if message["type"] == "http.response.start":
            start = message
            return
        parts.append(message.get("body", b""))
        if message.get("more_body"):
            return
        body = _LINKS.sub(b"", b"".join(parts)).replace(b"</head>", head + b"</head>", 1)
        kept = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        start["headers"] = [*kept, (b"content-length", str(len(body)).encode())]
        await send(start)
        await send({"type": "http.response.body", "body": body})

    return write


async def _refuse(send, status, sentence, close=False):
    body = json.dumps({"detail": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if close:  # the rest of a body that nobody reads may still come
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
