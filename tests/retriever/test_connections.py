"""Connections that never come to an end, too many of them, and bodies beyond all bounds."""

import asyncio
import contextlib
import json
import socket
import threading
import time

import pytest
import uvicorn

from zoo.retriever import connections
from zoo.retriever.connections import Connections, Intake, Pool, TooMuchError
from zoo.retriever.server import listening

HEAD = b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


async def echo(scope, receive, send):
    """Answers with the length of the body, and how often it was received."""
    message = await receive()
    await connections.refuse(send, 200, str(len(message["body"])))


@contextlib.contextmanager
def served(app=echo, hosts=None, address="127.0.0.1"):
    """The address of a server in a thread."""
    with contextlib.closing(listening(address, 0)) as server:
        config = uvicorn.Config(
            Intake(app, hosts, 2**20), http=Connections, log_level="critical", lifespan="off"
        )
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [server]})
        thread.start()
        try:
            yield server.getsockname()[:2]
        finally:
            running.should_exit = running.force_exit = True
            thread.join(20)


def said(connection):
    """The status and the body of an answer, when the server has closed the connection."""
    connection.settimeout(10)
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(2**16):
            found += part
    head, _, body = found.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def answered(connection):
    """Whether `echo` answers to two bytes, on a connection that stays open."""
    found = b""
    while not found.endswith(b"}") and (part := connection.recv(2**16)):
        found += part
    return found.endswith(b'{"error": "2"}')


def asked(address, body=b"{}"):
    with socket.create_connection(address) as connection:
        length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        connection.sendall(HEAD + length + body)
        return said(connection)


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        (b"", "the headers of a request must come in 0.3 seconds"),
        (b"POST /ask HTTP/1.1\r\nHost: loc", "the headers of a request must come in 0.3 seconds"),
        (HEAD + b"Content-Length: 99\r\n\r\n{", "the body did not come in time"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", "the body did not come in time"),
    ],
)
def test_half_a_request_is_ended(monkeypatch, start, sentence):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.3)
    with served() as address, socket.create_connection(address) as connection:
        connection.sendall(start)
        began = time.monotonic()
        assert said(connection) == (408, sentence)
        assert 0.2 < time.monotonic() - began < 5
        assert asked(address) == (200, "2")


def test_a_body_that_drips_is_ended(monkeypatch):
    """One byte at a time comes for ever, without a pause that a time-out of pauses would see."""
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.5)
    with served() as address, socket.create_connection(address) as connection:
        connection.sendall(HEAD + b"Content-Length: 999\r\n\r\n")
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - began < 5:
                connection.sendall(b" ")
                time.sleep(0.05)
        assert time.monotonic() - began < 3


def test_a_kept_connection_has_its_time_again(monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.4)
    with served() as address, socket.create_connection(address) as connection:
        for _ in range(3):
            connection.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")
            assert answered(connection)
            time.sleep(0.25)
        time.sleep(0.5)  # idle, which is not half a request
        connection.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")
        assert answered(connection)
        connection.sendall(b"GET /he")
        assert said(connection)[0] == 408


def test_of_too_many_connections_the_last_are_told_so(monkeypatch):
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 5)
    with served() as address, contextlib.ExitStack() as held:
        for _ in range(5):
            held.enter_context(socket.create_connection(address))
        time.sleep(0.2)
        with socket.create_connection(address) as late:
            assert said(late) == (503, "too many connections are open; try again in a few seconds")
        held.close()
        time.sleep(0.2)
        assert asked(address) == (200, "2")


def test_large_bodies_that_never_end_take_bounded_memory(monkeypatch):
    monkeypatch.setattr(connections, "MAX_WAITING", 2**19)
    with served() as address, contextlib.ExitStack() as held:
        for _ in range(3):  # each keeps 2¹⁹ / 4 of its room for ever
            connection = held.enter_context(socket.create_connection(address))
            connection.sendall(HEAD + b"Content-Length: 999999\r\n\r\n" + b" " * (2**16 + 2**17))
        time.sleep(0.3)
        status, sentence = asked(address, b" " * 2**18)
        assert (status, sentence[:21]) == (503, "too many large bodies")
        assert asked(address, b" " * 2**16) == (200, "65536")  # a question still comes through
        held.close()
        time.sleep(0.3)
        assert asked(address, b" " * 2**18) == (200, str(2**18))


def test_a_body_beyond_its_bound_is_refused_before_it_has_come():
    with served() as address, socket.create_connection(address) as connection:
        connection.sendall(HEAD + b"Content-Length: 99999999\r\n\r\n")
        assert said(connection)[0] == 413


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"\0" * 99])
def test_what_is_no_http_gets_json(sent):
    with served() as address, socket.create_connection(address) as connection:
        connection.sendall(sent + b"\r\n\r\n")
        assert said(connection) == (400, "Invalid HTTP request received.")


def test_ipv6():
    head = HEAD.replace(b"localhost", b"[::1]:80") + b"Connection: close\r\n"
    with (
        served(hosts=("::1",), address="::1") as address,
        socket.create_connection(address) as connection,
    ):
        connection.sendall(head + b"Content-Length: 2\r\n\r\n{}")
        assert said(connection) == (200, "2")


def test_a_pool_counts_what_is_beyond_the_free_bytes():
    pool = Pool(10)
    free = connections.SMALL
    pool.take(0, free)
    pool.take(free, 4)
    pool.take(free + 4, 6)
    with pytest.raises(TooMuchError):
        pool.take(0, free + 1)
    pool.give_back(free + 10)
    pool.take(0, free + 10)


def test_a_server_that_ends_answers_no_half_request():
    async def ended():
        never = asyncio.get_running_loop().create_future()
        scope = {"type": "http", "method": "POST", "headers": []}
        task = asyncio.create_task(Intake(echo, None, 99)(scope, lambda: never, None))
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert asyncio.run(ended()) is None


def test_a_kept_connection_sends_at_once():
    with (
        listening("127.0.0.1", 0) as server,
        socket.create_connection(server.getsockname()),
        server.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
