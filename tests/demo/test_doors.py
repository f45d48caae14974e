"""The demo's doors: only files of its own folder of uploads are read, and bodies are bounded."""

import json
import os
import socket
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from PIL import Image

from demo import page

PUBLIC = ("find_images", "find_captions", "describe_gallery", "draw_map")
OUTSIDE = ("absolute", "gallery", "up", "up from an upload", "relative", "scheme", "model")
META = {"_type": "gradio.FileData"}


@pytest.fixture(scope="module")
def http(served):
    with httpx.Client(base_url=served[0], timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def uploaded(http, photo):
    """The server's path of a picture that was uploaded."""
    sent = http.post("/gradio_api/upload", files={"files": ("bird.jpg", photo.read_bytes())})
    return sent.json()[0]


@pytest.fixture(scope="module")
def paths(served, uploaded, photo, run_folder, tmp_path_factory):
    """Names of a picture that nobody has uploaded, as a client may write them."""
    outside = tmp_path_factory.mktemp("outside") / "secret.png"
    Image.new("RGB", (40, 40), (200, 30, 30)).save(outside)
    private = Path(served[2])
    inside = private / ("a" * 64)
    inside.mkdir()
    (inside / "link.png").symlink_to(outside)
    (private / ("b" * 64)).symlink_to(outside.parent, target_is_directory=True)
    loose = private / "loose.png"
    loose.write_bytes(outside.read_bytes())
    deep = private / ("c" * 64) / "deep" / "secret.png"
    deep.parent.mkdir(parents=True)
    deep.write_bytes(outside.read_bytes())
    up = os.path.relpath(outside, private)
    named = {
        "absolute": str(outside),
        "gallery": str(photo),
        "up": f"{private}/{up}",
        "up from an upload": f"{Path(uploaded).parent}/../{up}",
        "link": str(inside / "link.png"),
        "linked folder": str(private / ("b" * 64) / "secret.png"),
        "no upload": str(loose),
        "too deep": str(deep),
        "relative": os.path.relpath(outside),
        "scheme": f"file://{outside}",
        "address": "http://127.0.0.1:9/photo.png",
        "unknown upload": f"{private}/{'d' * 64}/secret.png",
        "nul": "/etc/passwd\0.png",
        "model": str(run_folder / "model.keras"),
    }
    yield named
    (inside / "link.png").unlink()
    (private / ("b" * 64)).unlink()
    loose.unlink()
    deep.unlink()


def _payloads(path):
    return [
        {"path": path},
        {"path": path, "meta": META},
        {"path": path, "url": f"/gradio_api/file={path}", "orig_name": "bird.png", "size": 1},
        {"root": [{"path": path}]},
        {"value": {"path": path, "meta": META}, "__type__": "update"},
    ]


def _asked(http, function, data):
    """`(success, output)` of one event of the page, as a browser asks it."""
    session = uuid.uuid4().hex
    body = {"data": data, "fn_index": function, "session_hash": session, "event_data": None}
    joined = http.post("/gradio_api/queue/join", json=body)
    if joined.status_code != 200:
        return False, joined.text
    address = f"/gradio_api/queue/data?session_hash={session}"
    with http.stream("GET", address) as stream:
        for line in stream.iter_lines():
            message = json.loads(line[5:]) if line.startswith("data:") else {}
            if message.get("msg") == "process_completed":
                return message["success"], message["output"]
    raise AssertionError("the stream ended without an answer")


def _events(http):
    """Every event with its inputs: `(id, name, [(component's type, its value)])`."""
    config = http.get("/config").json()
    kinds = {one["id"]: (one["type"], one["props"].get("value")) for one in config["components"]}
    for one in config["dependencies"]:
        if one["backend_fn"]:
            yield one["id"], one["api_name"], [kinds[i] for i in one["inputs"]]


def test_the_uploaded_picture_is_answered(http, uploaded):
    """So the tests below would see an answer."""
    events = {name: (i, inputs) for i, name, inputs in _events(http)}
    function, inputs = events["find_captions"]
    values = [value for _, value in inputs]
    values[0] = {"path": uploaded, "meta": META}
    success, output = _asked(http, function, values)
    assert success, output
    json.dumps(output).index("uncertainty")


def test_photos_of_ones_own_are_read_and_leave_nothing_behind(http, served, uploaded):
    """Gradio's own component left an empty file for each."""
    (function,) = [i for i, _, inputs in _events(http) if [kind for kind, _ in inputs] == ["file"]]
    before = sorted(Path(served[2]).rglob("*"))
    success, output = _asked(http, function, [[{"path": uploaded, "meta": META}] * 2])
    assert success, output
    assert "2 photos in" in json.dumps(output)
    assert sorted(Path(served[2]).rglob("*")) == before


@pytest.mark.parametrize("said", OUTSIDE)
def test_an_image_without_meta_is_an_upload_too(http, paths, said):
    """Gradio's components of images do not look at it."""
    started = http.post("/gradio_api/call/v2/find_captions", json={"image": {"path": paths[said]}})
    answer = http.get(f"/gradio_api/call/find_captions/{started.json()['event_id']}").text
    assert "event: error" in answer


def test_every_event_reads_uploads_alone(http, paths):
    """A picture named without "meta" was read wherever it lay."""
    names, taken = set(), []
    absolute, address = paths["absolute"], paths["address"]
    tried = [*_payloads(absolute), {"path": address}, {"path": address, "meta": META}]
    for function, name, inputs in _events(http):
        names.add(name)
        for place, (kind, _) in enumerate(inputs):
            if kind == "state":  # what the server holds itself
                continue
            one_only = [{"path": address, "meta": META}]
            for payload in tried if kind in ("image", "file") and place == 0 else one_only:
                values = [value for _, value in inputs]
                values[place] = payload
                success, output = _asked(http, function, values)
                if success:
                    taken.append((name, function, place, payload, output))
    assert set(PUBLIC) <= names
    assert taken == []


def test_only_uploads_are_served(http, paths, uploaded):
    assert http.get(f"/gradio_api/file={uploaded}").status_code == 200
    for said, path in paths.items():
        if said in ("nul", "no upload", "too deep"):  # no address; in Gradio's own folder
            continue
        answer = http.get(f"/gradio_api/file={path}")
        assert answer.status_code in (403, 404), said


@pytest.mark.parametrize("path", ["queue/join", "call/find_images"])
def test_every_body_but_an_upload_is_bounded(served, path):
    address = urlsplit(served[0])
    head = f"POST /gradio_api/{path} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {page.MAX_BODY + 1}\r\n\r\n{{"
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        connection.sendall(head.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
