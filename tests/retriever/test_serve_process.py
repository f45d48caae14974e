"""`halo search serve` as a process: clients side by side, hostile bodies between, and its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import zoo

ROOT = Path(zoo.__file__).parents[1]
HOSTILE = (
    b"",
    b"{",
    b"[" * 50_000,
    b'{"question": "a", "k": -1}',
    b"\xff" * 1000,
    b'{"image": "x"}',
)

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path):
    photos = np.random.default_rng(0).integers(0, 256, (30, 64, 64, 3), dtype="uint8")
    zoo.Retriever.build("toy_birds_pfe", photos).save(tmp_path / "gallery")
    code = "import halo_zoo; halo_zoo.main()"
    command = [sys.executable, "-c", code, "search", "serve", str(tmp_path / "gallery"), "--port=0"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    process.address = process.stdout.readline().rpartition(" at ")[2].strip()
    yield process
    process.kill()
    process.wait()


def send(address, body):
    request = urllib.request.Request(
        f"{address}/ask", body, {"Content-Type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_clients_are_answered_beside_a_hostile_one_and_sigterm_ends_it(server):
    wrong = []

    def client(number):
        for turn in range(5):
            question = f"a small bird {number} of {turn}"
            status, answer = send(server.address, json.dumps({"question": question}).encode())
            if status != 200 or answer["question"] != question or len(answer["ids"]) != 10:
                wrong.append((status, answer))

    def hostile():
        for body in HOSTILE * 3:
            status, answer = send(server.address, body)
            if status != 422 or set(answer) != {"error"}:
                wrong.append((status, answer))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(10)]
    threads.append(threading.Thread(target=hostile))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    port = int(server.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=60)
    assert server.returncode == 0
    assert "Traceback" not in said
