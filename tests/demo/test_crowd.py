"""Many users at once beside one who sends hostile bodies; and memory over many questions."""

import gc
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import httpx
import pytest
from gradio_client import Client

USERS = 20


def _hostile(rng):
    """A request that nobody's page sends: `(address, body)`."""
    address = "/gradio_api/" + rng.choice(
        ["call/find_images", "call/find_captions", "queue/join", "run/upload", "upload", "cancel"]
    )
    body = rng.choice(
        [
            b"{",
            b"[" * 300_000,
            b"\xff" * 1000,
            b'{"data": [' + b"1," * 200_000 + b"1]}",
            b'{"data": ["' + b"a" * 2**20 + b'"]}',
            b'{"data": [{"path": "/etc/passwd"}, null, 3, 1]}',
            b'{"data": [{"path": "x", "meta": 7}], "fn_index": 0, "session_hash": "s"}',
            b'{"data": [[[[[]]]]], "fn_index": -1, "session_hash": "s"}',
            b'{"data": [], "fn_index": 1e9, "session_hash": "s", "event_data": {"a": NaN}}',
            b'{"data": {"0": 1}, "session_hash": {"$gt": ""}, "fn_index": []}',
        ]
    )
    return address, body


@pytest.mark.very_slow  # tests/retriever/test_stored_towers.py has clients beside a hostile one
@pytest.mark.parametrize("questions", [2, 10])
def test_twenty_users_beside_one_that_is_hostile(served, questions):
    captions = served[1].gallery.captions
    expected = {text: served[1].find_images(text, results=2)["answer"] for text in captions[:20]}
    over, statuses = Event(), []

    def attack():
        rng = random.Random(0)
        with httpx.Client(base_url=served[0], timeout=60) as http:
            while not over.is_set():
                address, body = _hostile(rng)
                statuses.append(http.post(address, content=body).status_code)

    def visit(user):
        own = Client(served[0], verbose=False, httpx_kwargs={"timeout": 120})
        texts = [captions[(user + number) % 20] for number in range(questions)]
        asked = {"results": 2, "api_name": "/find_images"}
        return [(text, own.predict(caption=text, **asked)["answer"]) for text in texts]

    with ThreadPoolExecutor(USERS + 1) as pool:
        attacker = pool.submit(attack)
        try:
            found = [one for visits in pool.map(visit, range(USERS)) for one in visits]
        finally:
            over.set()
        attacker.result(timeout=60)
    assert len(found) == USERS * questions
    for text, answer in found:
        assert answer["verdict"] == expected[text]["verdict"]
        assert [one["item"] for one in answer["results"]] == [
            one["item"] for one in expected[text]["results"]
        ]
    assert len(statuses) > 20
    assert 500 not in statuses


def _resident():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


@pytest.mark.very_slow
def test_memory_stays_over_many_visitors(served, photo):
    """Each uploads a picture and asks once. Gradio keeps the state of the last visitors alone."""
    sizes = []
    with httpx.Client(base_url=served[0], timeout=60) as http:
        events = http.get("/config").json()["dependencies"]
        (event,) = [one["id"] for one in events if one["api_name"] == "find_captions"]
        for number in range(1200):
            content = photo.read_bytes() + number.to_bytes(2, "big")
            path = http.post("/gradio_api/upload", files={"files": ("a.jpg", content)}).json()[0]
            image = {"path": path, "meta": {"_type": "gradio.FileData"}}
            body = {"data": [image, "csd", 3, 1], "fn_index": event, "session_hash": f"s{number}"}
            assert http.post("/gradio_api/queue/join", json=body).status_code == 200
            answer = http.get("/gradio_api/queue/data", params={"session_hash": f"s{number}"})
            assert '"success":true' in answer.text
            if number % 300 == 299:
                gc.collect()
                sizes.append(_resident())
    print("MiB after every 300 visitors:", [round(size) for size in sizes])
    assert sizes[3] - sizes[1] < 30
