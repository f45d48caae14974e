"""Clusters of worker processes on this machine."""

import json
import socket


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def clusters(workers=2):
    """TF_CONFIG of each of some workers on this machine."""
    hosts = [f"127.0.0.1:{port}" for port in free_ports(workers)]
    return [
        json.dumps({"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}})
        for index in range(workers)
    ]
