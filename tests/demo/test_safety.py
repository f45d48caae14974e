"""What the server gives away: nothing but its own page and what was sent to it."""

import socket
from urllib.parse import urlsplit

import httpx
import pytest

from demo import cards, verdict_card
from demo.map_plot import figure, items_of

FILE = "/gradio_api/file="


@pytest.fixture(scope="module")
def http(served):
    with httpx.Client(base_url=served[0], timeout=20) as client:
        yield client


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


def test_texts_are_escaped(gaussians, monkeypatch):
    evil = "<img src=x onerror=alert(1)>\"'&"
    result = {
        "rank": 1,
        "item": 0,
        "name": evil,
        "similarity": 1.0,
        "fits": 0.4,
        "uncertainty": 0.1,
        "uncertainty_percentile": 10.0,
        "right": None,
    }
    answer = {
        "verdict": "unsure",
        "probability": 0.4,
        "reason": evil,
        "fitting": 0,
        "first_k": 3,
        "uncertainty": 0.1,
        "uncertainty_percentile": 10.0,
        "meaning": evil,
        "results": [result],
    }
    text = {
        "caption": evil,
        "answer": answer,
        "asked": evil + "!",
        "unknown_words": [evil],
    }
    monkeypatch.setattr(gaussians, "captions", [evil] * len(gaussians.captions))
    monkeypatch.setattr(gaussians, "image_names", [evil] * len(gaussians.image_names))
    pieces = [
        cards.note(evil),
        cards.results(gaussians, answer, "images"),
        cards.results(gaussians, answer, "captions"),
        verdict_card.answer(gaussians, text, ([evil, evil], [0])),
        verdict_card.contrast(gaussians, [text]),
        verdict_card.image_answer(gaussians, answer),
    ]
    for piece in pieces:
        assert "<img src=x" not in piece
        assert "&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;&amp;" in piece
    drawn = figure(gaussians, items_of(gaussians))
    labels = [
        data[0] for trace in drawn.data if trace.customdata is not None for data in trace.customdata
    ]
    assert labels
    assert all("<" not in label for label in labels)
