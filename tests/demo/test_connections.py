"""Half-sent requests to the demo end, and connections are bounded, as those of `halo serve`."""

import asyncio
import contextlib
import json
import socket
import time
from urllib.parse import urlsplit

import pytest

from demo.guard import Guard
from zoo.retriever import connections

HEAD = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
UPLOAD = HEAD.replace(b"application/json", b"multipart/form-data; boundary=b")
UPLOAD %= b"/gradio_api/upload"
BODY = b"Content-Length: 999\r\n\r\n{"


def connected(served):
    url = urlsplit(served[0])
    return socket.create_connection((url.hostname, url.port), timeout=10)


def said(connection):
    """The status and the JSON of an answer after which the server has closed the connection."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(2**16):
            found += part
    head, _, body = found.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize(
    "start",
    [
        b"",
        HEAD % b"/gradio_api/queue/join" + BODY,
        UPLOAD + b"Content-Length: 999\r\n\r\n--b\r\nContent-Disposition: form-data; na",
    ],
    ids=["nothing", "body", "upload"],
)
def test_half_a_request_is_ended(served, monkeypatch, start):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.3)
    with connected(served) as connection:
        began = time.monotonic()
        connection.sendall(start)
        assert said(connection)[0] == 408
        assert 0.2 < time.monotonic() - began < 5


def test_the_last_of_too_many_connections_are_refused(served, monkeypatch):
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 0)
    with connected(served) as connection:
        assert said(connection)[0] == 503


def test_the_sum_of_bodies_is_bounded(tmp_path):
    guard, sent = Guard(None, None, tmp_path, "birds"), []
    guard.pool.most = 1000

    async def receive():
        return {"type": "http.request", "body": b"a" * 2**17, "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/gradio_api/queue/join", "headers": []}
    asyncio.run(guard(scope, receive, send))
    assert sent[0]["status"] == 503
    assert guard.pool.held == 0
