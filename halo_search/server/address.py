"""The address that a server listens on, looked at before anything is opened for it."""

import socket

from halo_search.errors import InputError

UNREAD = 30  # seconds after which a client that reads nothing is left


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens on an address, of IPv4 or IPv6, or on a name's first one; an InputError
    if there is no such address, or it is taken."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
        server = socket.create_server(address, family=family)
        # Its connections inherit this, which asyncio sets only of sockets with a protocol. Else an
        # answer's body waits 40 ms for a client that keeps its connection.
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * UNREAD)
        return server
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"--host {host} --port {port}: {reason}") from error
