"""The demo's doors: which files it reads and serves, to whom, and how much it takes."""

import contextlib
import json
import os
import socket
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from PIL import Image

from demo import limits, page

PUBLIC = ("find_images", "find_captions", "describe_gallery")
UPLOADS = ("/own", "/picture")
OUTSIDE = ("absolute", "gallery", "up", "up from an upload", "relative", "scheme", "model")
META = {"_type": "gradio.FileData"}


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


def _own(http, photo, key="", name="bird.jpg"):
    values = {"name": name, "among_own": key}
    return http.post("/own", params=values, content=photo.read_bytes())


def test_own_photos_are_asked_by_their_key_alone(http, served, photo):
    private = Path(served[2])
    before = sorted(private.rglob("*"))
    added = _own(http, photo).json()
    key = added["key"]
    assert _own(http, photo, key).json()["item"] == 1  # of one name, and both stay
    found = http.get("/ask", params={"q": "a red bird", "among_own": key}).json()
    assert len(found["results"]) == 2
    address = "/photo/thumbnail/1"
    assert http.get(address, params={"among_own": key}).headers["content-type"] == "image/jpeg"
    for wrong in ("guess", key[:-1], "../" + key):
        answer = http.get("/ask", params={"q": "a red bird", "among_own": wrong})
        assert (answer.status_code, answer.json()["error"]) == (
            400,
            "These photos are deleted. Add them again.",
        )
        assert http.get(address, params={"among_own": wrong}).status_code == 404
    assert http.post("/forget", params={"among_own": key}).status_code == 200
    assert http.get(address, params={"among_own": key}).status_code == 404
    assert sorted(private.rglob("*")) == before


@pytest.mark.parametrize("path", UPLOADS)
def test_pictures_that_are_sent_are_bounded(http, served, photo, path):
    before = sorted(Path(served[2]).rglob("*"))
    answer = http.post(path, content=bytes(limits.MAX_BYTES + 1))
    assert answer.status_code == 413
    answer = http.post(path, content=b"no picture")
    assert answer.status_code == 400
    assert answer.json()["error"] == "That image cannot be used: not an image."
    assert http.post(path, content=b"").status_code == 400
    assert sorted(Path(served[2]).rglob("*")) == before


def test_a_picture_asks_for_captions(http, service, photo):
    found = http.post("/picture", content=photo.read_bytes()).json()
    expected = service.find_captions(photo)
    assert [one["name"] for one in found["results"]] == [one["name"] for one in expected["results"]]


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/web/../page.py", 404),
        ("/web/%2e%2e/page.py", 404),
        ("/web//etc/passwd", 404),
        ("/web/app.js", 200),
        ("/photo/large/../../x", 404),
        ("/photo/large/-1", 404),
        ("/photo/large/18", 404),
        ("/photo/large/x", 404),
        ("/photo/other/1", 404),
        ("/photo/large/1?among=%2e", 404),
        ("/ask?q=a+bird&view=none", 400),
        ("/ask?q=a+bird&other=1", 400),
        ("/ask?q=", 400),
        ("/similar?item=x", 400),
        ("/photos?offset=-1", 400),
    ],
)
def test_what_the_page_cannot_ask_is_refused(http, address, status):
    answer = http.get(address)
    assert answer.status_code == status
    if status == 400:
        assert answer.json()["error"].endswith(".")


def test_the_page_may_fetch_nothing_elsewhere(http):
    policy = http.get("/").headers["content-security-policy"]
    assert policy.startswith("default-src 'self'; img-src 'self' data: blob:;")


def test_a_defect_of_a_route_stays_in_the_log(http, served, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(served[1].service.gallery, "questions", fail)
    answer = http.get("/ask", params={"q": "a bird"})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "/secret/path" in caplog.text


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


def test_with_a_token_the_page_starts_and_asks_for_it(gaussians, tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    built = page.build(gaussians)
    address = built.launch(wait=False, quiet=True, token="a-long-secret")
    with contextlib.closing(built):
        assert httpx.get(address).status_code == 401
        knowing = httpx.get(address, headers={"Authorization": "Bearer a-long-secret"})
        assert knowing.status_code == 200


FILE = "/gradio_api/file="


def test_an_upload_is_served_and_only_to_be_saved(http):
    sent = http.post(
        "/gradio_api/upload",
        files={"files": ("../../evil.html", b"<script>alert(1)</script>", "text/html")},
    )
    (path,) = sent.json()
    assert ".." not in path
    answer = http.get(FILE + path)
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize("host", ["198.51.101.7", "huggingface.co", "127.0.0.1:9"])
def test_no_public_address_is_fetched(http, host):
    """Gradio fetches them: without our line it tries the connection and answers 502."""
    for scheme in ("http", "https"):
        assert http.get(f"{FILE}{scheme}://{host}/photo.png").status_code == 403


def test_too_large_an_upload_is_refused_before_it_is_kept(http):
    sent = http.post("/gradio_api/upload", files={"files": ("big.png", bytes(11 * 2**20))})
    assert sent.status_code in (400, 413)


def test_it_listens_on_this_machine_alone(served):
    address = urlsplit(served[0])
    assert address.hostname == "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses this machine's address
        own = probe.getsockname()[0]
    if own.startswith("127."):
        pytest.skip("this machine has no other address")
    with pytest.raises(OSError), socket.create_connection((own, address.port), timeout=2):
        pass


def test_the_page_names_no_path_of_the_machine(http, birds, run_folder):
    config = http.get("/config").text
    assert str(birds) not in config
    assert str(run_folder) not in config


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_another_sites_name_for_this_machine_is_not_answered(http, host):
    """A page elsewhere may name its own host and resolve it to 127.0.0.1 (DNS rebinding)."""
    for path in ("/", "/config", "/gradio_api/info"):
        answer = http.get(path, headers={"Host": host})
        assert answer.status_code == 400
        assert "access-control-allow-origin" not in answer.headers
    own = urlsplit(str(http.base_url)).port
    assert http.get("/config", headers={"Host": f"localhost:{own}"}).status_code == 200
