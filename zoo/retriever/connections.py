"""Connections of a server that anybody may open: bounded in number, in time and in bytes.

uvicorn waits for ever for the headers and the body of a request, and starts as many connections as
come. `Connections` bounds the headers' time and the number, `Intake` a body's time and bytes. What
either refuses gets `{"error": a sentence}`.
"""

import asyncio
import contextlib
import json
import resource
from collections.abc import AsyncIterator, Callable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 512
HEADER_SECONDS = 10  # from a connection's beginning, or its next request's first byte
BODY_SECONDS = 20  # for a body, and one more for every
LEAST_RATE = 2**16  # bytes that came
MAX_WAITING = 48 * 2**20  # bytes of all bodies that are kept at once, each from here on:
SMALL = 2**16
MAX_VALUES = 2**19  # of JSON, at most; the base64 of a picture is one


class Connections(H11Protocol):
    """uvicorn's protocol, whose headers come in time, and of which there are not too many."""

    waiting = None

    def connection_made(self, transport):
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            self.refuse(503, "too many connections are open; try again in a few seconds")
        else:
            self._wait_for_headers()

    def data_received(self, data):
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self.waiting is None:  # the next request of a connection that is kept
            self._wait_for_headers()

    def on_response_complete(self):
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._wait_for_headers()

    def connection_lost(self, error):
        self._stop_waiting()
        super().connection_lost(error)

    def send_400_response(self, msg):
        self.refuse(400, msg)

    def refuse(self, status, sentence):
        """Answers without a request, and closes."""
        body = json.dumps({"error": sentence}).encode()
        head = f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _wait_for_headers(self):
        self._stop_waiting()
        self.waiting = self.loop.call_later(HEADER_SECONDS, self._too_late)

    def _stop_waiting(self):
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def _too_late(self):
        self.waiting = None
        if not self.transport.is_closing():
            self.refuse(408, f"the headers of a request must come in {HEADER_SECONDS} seconds")


def most_connections() -> int:
    """How many connections may be open: half of the files that this process may open, at most."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, files // 2)


class TooLateError(Exception):
    """A body did not come in its time."""


class TooLargeError(Exception):
    """A body is larger than allowed."""


class TooMuchError(Exception):
    """All bodies together are larger than allowed."""


class GoneError(Exception):
    """Nobody waits for an answer any more."""


class Pool:
    """The bytes of all bodies that are kept at once.

    A body's first `SMALL` bytes are free, so that a few large ones that never end keep no question
    out; there are `MAX_CONNECTIONS` at most.
    """

    def __init__(self, most=None):
        self.most, self.held = MAX_WAITING if most is None else most, 0

    def take(self, before, size):
        """Takes room for `size` bytes behind `before` of the same body.

        Raises:
            TooMuchError: if there is none.
        """
        count = max(0, before + size - SMALL) - max(0, before - SMALL)
        if self.held + count > self.most:
            raise TooMuchError
        self.held += count

    def give_back(self, size):
        """Gives back what a body of `size` bytes took."""
        self.held -= max(0, size - SMALL)


async def in_time(receive, started, size):
    """The next message of a body that has `size` bytes so far.

    Args:
        receive: of ASGI.
        started: the loop's time when the body began.

    Raises:
        TooLateError: if it does not come in `BODY_SECONDS`, and a second for `LEAST_RATE` bytes.
    """
    try:
        async with asyncio.timeout_at(started + BODY_SECONDS + size / LEAST_RATE):
            return await receive()
    except TimeoutError:
        raise TooLateError from None


@contextlib.asynccontextmanager
async def body_of(scope: dict, receive: Callable, most: int, pool: Pool) -> AsyncIterator[bytes]:
    """The whole body of a request, which has its room in the pool while the block runs.

    Args:
        scope, receive: of ASGI. Of GET and HEAD nothing is read.
        most: bytes of a body.
        pool: of all bodies.

    Raises:
        TooLargeError: if it has more than `most` bytes, or does not say how many in digits.
        TooLateError: as `in_time`.
        TooMuchError: if the pool has no room.
        GoneError: if the client or the server ends first.
    """
    announced = dict(scope["headers"]).get(b"content-length", b"0")
    if not announced.isdigit() or int(announced[:20]) > most:
        raise TooLargeError
    parts = []
    try:
        if scope["method"] not in ("GET", "HEAD"):
            await _read(receive, most, pool, parts)
        parts[:] = [b"".join(parts)]
        yield parts[0]
    finally:
        pool.give_back(sum(map(len, parts)))


async def _read(receive, most, pool, parts):
    started, size, more = asyncio.get_running_loop().time(), 0, True
    while more:
        try:
            message = await in_time(receive, started, size)
        except asyncio.CancelledError:  # the server ends; half a request needs no answer
            raise GoneError from None
        if message["type"] == "http.disconnect":
            raise GoneError
        part, more = message.get("body", b""), message.get("more_body", False)
        if size + len(part) > most:
            raise TooLargeError
        pool.take(size, len(part))
        parts.append(part)
        size += len(part)


class Intake:
    """ASGI middleware that hands on whole requests for this server, and refuses all others.

    Args:
        app: what answers.
        hosts: names in a request's Host header that are answered, which keeps pages of other sites
            from asking a server of this machine (DNS rebinding); None for all.
        most: bytes of a body.
    """

    def __init__(self, app, hosts, most):
        self.app, self.hosts, self.most, self.pool = app, hosts, most, Pool()

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = dict(scope["headers"])
        if self.hosts is not None and host_of(headers) not in self.hosts:
            sentence = "this server does not answer to that name; see --host"
            return await refuse(send, 400, sentence, close=True)
        try:
            async with body_of(scope, receive, self.most, self.pool) as body:
                if scope["method"] == "POST":
                    _check_json(headers, body)
                return await self.app(scope, replayed(body, receive), send)
        except _RefusedError as refused:
            return await refuse(send, *refused.args)
        except GoneError:
            return None
        except TooLargeError:
            sentence = f"a body may have {self.most:,} bytes at most"
            return await refuse(send, 413, sentence, close=True)
        except TooLateError:
            return await refuse(send, 408, "the body did not come in time", close=True)
        except TooMuchError:
            sentence = "too many large bodies are on their way; try again in a few seconds"
            return await refuse(send, 503, sentence, close=True)


class _RefusedError(Exception):
    """A status and a sentence."""


def _check_json(headers, body):
    """Refuses what is not announced as JSON, or would become too many objects of Python."""
    kind = headers.get(b"content-type", b"").decode("latin-1")
    if kind.partition(";")[0].strip().lower() != "application/json":
        received = f"received {kind!r}" if kind else "it is missing"
        sentence = f"the header Content-Type must be application/json; {received}"
        raise _RefusedError(415, sentence)
    if sum(body.count(mark) for mark in (b",", b"[", b"{")) > MAX_VALUES:
        raise _RefusedError(413, "the body holds too many values")


def host_of(headers):
    """The name in a Host header, without its port; of an IPv6 address without its brackets."""
    host = headers.get(b"host", b"").decode("latin-1").strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


async def refuse(send, status, sentence, close=False):
    """Sends an answer of ASGI with a sentence."""
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if close:  # the rest of a body that nobody reads may still come
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def replayed(body, receive):
    """`receive` of ASGI for a body that was read before."""
    sent = False

    async def again():
        nonlocal sent
        if sent:
            return await receive()  # the end of the connection
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
