"""What reaches the server: requests for this host, of a bounded size, and a bounded sum of uploads.

Gradio bounds each upload. It bounds neither their sum nor a JSON body, and it answers whatever name
a request calls the server by, which lets a page of another site ask a server of this machine (DNS
rebinding).
"""

import json
import re
from pathlib import Path

from demo.cards import escape

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
        self.head = f'<meta property="og:title" content="{escape(title)}">'.encode()

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        headers = dict(scope["headers"])
        if not self._knows(headers.get(b"host", b"").decode("latin-1")):
            return await _refuse(send, 421, "This server does not answer to that name.")
        if scope["type"] == "websocket" or scope["method"] not in ("POST", "PUT", "PATCH"):
            if scope["path"] == "/":
                send = _rewritten(send, self.head)
            return await self.app(scope, receive, send)
        if scope["path"].endswith("/upload"):
            if self._kept() > MAX_KEPT:
                return await _refuse(
                    send, 507, "Too many uploads are kept here now. They go after an hour."
                )
            return await self.app(scope, receive, send)
        body = await _body(receive, headers)
        if body is None:
            return await _refuse(
                send, 413, f"A request may have {MAX_BYTES_SAID} at most, without its files."
            )
        return await self.app(scope, _replayed(body, receive), send)

    def _knows(self, host):
        name = re.sub(r":\d+$", "", host.lower())
        return self.hosts is None or name in self.hosts

    def _kept(self):
        return sum(path.stat().st_size for path in self.uploads.rglob("*") if path.is_file())


MAX_BYTES_SAID = f"{MAX_BODY // 2**20} MB"


async def _body(receive, headers):
    """The whole body, or None if it is too large."""
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > MAX_BODY:
        return None
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            break
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_BODY:
            return None
    return body


def _replayed(body, receive):
    sent = False

    async def again():
        nonlocal sent
        if sent:
            return await receive()  # the end of the connection
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


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


async def _refuse(send, status, sentence):
    body = json.dumps({"detail": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
