"""What the server gives away: nothing but its own page and what was sent to it."""

import socket
from urllib.parse import urlsplit

import httpx
import pytest

from demo import cards
from demo.map_plot import figure, items_of

FILE = "/gradio_api/file="


@pytest.fixture(scope="module")
def secret(tmp_path_factory):
    path = tmp_path_factory.mktemp("outside") / "secret.txt"
    path.write_text("the secret")
    return path


@pytest.fixture(scope="module")
def http(served):
    with httpx.Client(base_url=served[0], timeout=20) as client:
        yield client


def _ways(path, private):
    """Ways to name a file to a server that it should not give."""
    up = "../" * 12
    rest = str(path).lstrip("/")
    return [
        FILE + str(path),
        FILE + up + rest,
        FILE + private + "/" + up + rest,
        FILE + "%2e%2e%2f" * 12 + rest,
        FILE + "..%252f" * 12 + rest,
        FILE + "file://" + str(path),
        FILE + "/" + str(path),
        "/file=" + str(path),
        "/file/" + str(path),
        "/gradio_api/file/" + up + rest,
        "/static/" + up + rest,
        "/assets/" + up + rest,
        "/svelte/" + up + rest,
        "/theme.css/" + up + rest,
        "/gradio_api/stream/x/0/0/" + up + rest,
        "/gradio_api/custom_component/x/client/" + up + rest,
        "/custom_component/x/client/" + up + rest,
    ]


def _get(served, way):
    """The answer to a path exactly as it stands: clients would tidy it up first."""
    address = urlsplit(served[0])
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        request = f"GET {way} HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        answer = b""
        while block := connection.recv(65536):
            answer += block
    return answer


def test_no_route_reads_a_file_outside(served, secret):
    for way in _ways(secret, served[2]):
        answer = _get(served, way)
        assert b"the secret" not in answer, way
    for path in ("/etc/passwd", "/proc/self/environ"):
        for way in _ways(path, served[2]):
            answer = _get(served, way)
            assert b"root:" not in answer, way
            assert b"GRADIO_TEMP_DIR" not in answer, way


def test_it_is_no_proxy(served):
    for address in (served[0] + "/config", "http://192.0.2.1/", "https://example.hf.space/config"):
        answer = _get(served, "/gradio_api/proxy=" + address)
        assert answer.split(b" ")[1] != b"200", address


def test_not_even_the_gallery_folder_or_the_model_is_served(served, photo, run_folder):
    for path in (photo, run_folder / "config.json", run_folder / "model.keras"):
        status = _get(served, FILE + str(path)).split(b" ")[1]
        assert status in (b"403", b"404"), path


def test_an_upload_is_served_and_only_to_be_saved(http, secret):
    sent = http.post(
        "/gradio_api/upload",
        files={"files": ("../../evil.html", b"<script>alert(1)</script>", "text/html")},
    )
    (path,) = sent.json()
    assert ".." not in path
    answer = http.get(FILE + path)
    assert answer.status_code == 200  # so the tests above would have seen a file that is served
    assert answer.headers["content-disposition"].startswith("attachment")


def _call(http, name, data):
    started = http.post(f"/gradio_api/call/{name}", json={"data": data})
    if started.status_code != 200:
        return started.text
    event = started.json()["event_id"]
    return http.get(f"/gradio_api/call/{name}/{event}").text


@pytest.mark.parametrize("kind", ["path", "address", "both", "data"])
def test_a_client_cannot_name_a_file_or_an_address_as_its_upload(http, secret, kind):
    address = "http://127.0.0.1:9/photo.png"
    image = {
        "path": {"path": str(secret), "meta": {"_type": "gradio.FileData"}},
        "address": {"path": address, "url": address, "meta": {"_type": "gradio.FileData"}},
        "both": {"path": str(secret), "url": address, "meta": {"_type": "gradio.FileData"}},
        "data": {"url": "data:image/png;base64,AAAA", "meta": {"_type": "gradio.FileData"}},
    }[kind]
    answer = _call(http, "find_captions", [image, "match_probability", 3, 100])
    assert "event: error" in answer or '"error"' in answer
    assert "similarity" not in answer
    assert "the secret" not in answer
    if kind == "address":
        assert "Send an image, not an address" in answer


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


def test_texts_are_escaped(gaussians, monkeypatch):
    evil = "<img src=x onerror=alert(1)>\"'&"
    found = {
        "words": evil,
        "caption": evil,
        "uncertainty": 0.1,
        "change": -0.1,
    }
    reference = gaussians.references["captions"]
    answer = {
        "results": [
            {
                "rank": 1,
                "item": 0,
                "name": evil,
                "similarity": 1.0,
                "match_probability": 0.5,
                "uncertainty": 0.1,
                "uncertainty_percentile": 10.0,
            }
        ]
    }
    monkeypatch.setattr(gaussians, "captions", [evil] * len(gaussians.captions))
    text = {
        "without_each_word": [found],
        "additions_that_narrow_it_down": [found],
        "omissions_that_narrow_it_down": [found],
    }
    pieces = [
        cards.note(evil),
        cards.words(text, reference),
        cards.suggestions(text, reference),
        cards.results(gaussians, answer, "images"),
        cards.results(gaussians, answer, "captions"),
    ]
    for piece in pieces:
        assert "<img src=x" not in piece
        assert "&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;&amp;" in piece
    monkeypatch.setattr(gaussians, "image_names", [evil] * len(gaussians.image_names))
    drawn = figure(gaussians, items_of(gaussians))
    labels = [
        data[0] for trace in drawn.data if trace.customdata is not None for data in trace.customdata
    ]
    assert labels
    assert all("<" not in label for label in labels)
