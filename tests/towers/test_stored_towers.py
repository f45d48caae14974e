"""Questions by the tower beside an index: the answers of Keras, without Keras; also by HTTP."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest

import zoo
from halo_search import presets
from halo_search.cli.search import main
from halo_search.errors import InputError
from halo_search.retriever import Retriever
from halo_search.towers.onnx import OnnxTower
from processes import python
from zoo.data import toy_birds

QUESTIONS = [
    "a small bird with a red crown",
    "bird",
    "a photo of a blue bird, please",
    "a bird with a zebra's xylophone.",
    "red crown and yellow belly and black wings",
    "qwx zzxy",
    "",
]
SETUP, MODEL = "search.json", "toy_birds_pfe"
# Imports of any of these fail, as where they are not installed.
WITHOUT = """
import sys
for name in ("tensorflow", "keras", "tf_keras", "matplotlib", "keras_hub"):
    sys.modules[name] = None
import halo_search.cli.main
halo_search.cli.main.main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def folder(towers_once, tmp_path_factory):
    """An index of drawn birds, with its tower."""
    home = tmp_path_factory.mktemp("birds")
    toy_birds.generate(home / "data", seed=3, num_classes=8, images_per_class=6)
    photos = next((home / "data").rglob("*.jpg")).parent.parent
    main(["build", str(photos), str(home / "index"), "--model", MODEL, "--include-training"])
    return home / "index"


@pytest.fixture(scope="module")
def with_towers(folder, tmp_path_factory):
    """An index by the same model as a folder, which has towers of its own beside it."""
    out = tmp_path_factory.mktemp("with_towers") / "index"
    photos = next((folder.parent / "data").rglob("*.jpg")).parent.parent
    model = str(presets.folder_of(MODEL))
    main(["build", str(photos), str(out), "--model", model, "--include-training"])
    return out


@pytest.fixture(scope="module", params=["packaged towers", "its own towers"])
def both(request, folder):
    """Its retriever by stored towers, and by Keras."""
    if request.param != "packaged towers":
        folder = request.getfixturevalue("with_towers")
    return Retriever.load(folder), Retriever.load(folder, zoo.from_preset(MODEL))


def test_answers_are_those_of_keras(both):
    plain, keras = both
    assert isinstance(plain.tower("captions"), OnnxTower)
    for found, expected in zip(plain.ask(QUESTIONS), keras.ask(QUESTIONS), strict=True):
        assert found.ids.tolist() == expected.ids.tolist()
        assert (found.verdict, found.reason) == (expected.verdict, expected.reason)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-4, atol=1e-4)
        assert (found.fits is None) == (expected.fits is None)
        if found.fits is not None:
            np.testing.assert_allclose(found.fits, expected.fits, atol=1e-4)
        assert found.names == expected.names
        assert found.first_k() == expected.first_k()


def test_pictures_are_asked_alike(folder, both):
    plain, keras = both
    photo = sorted((folder.parent / "data").rglob("*.jpg"))[0]
    found, expected = plain.ask(photo), keras.ask(photo)
    assert isinstance(plain.tower("images"), OnnxTower)
    assert found.ids.tolist() == expected.ids.tolist()
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="item 0"):
        plain.tower("images").of_files([b"no picture"])


def test_a_query_needs_neither_tensorflow_nor_keras(folder, both):
    words = ("search", "query", folder, *QUESTIONS[:3], "--json")
    done = python("-c", WITHOUT, *words, MPLBACKEND="")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    expected = both[1].ask(QUESTIONS[:3])
    assert [one["names"] for one in answers] == [one.names for one in expected]
    assert [one["verdict"] for one in answers] == [one.verdict for one in expected]


def asked_of(folder):
    retriever = Retriever.load(folder)
    retriever.ask([np.zeros((9, 9, 3), "uint8")], 3)
    retriever.ask("a bird", 3)


def test_every_damaged_file_is_named_and_none_is_raw(with_towers, tmp_path):
    rng = np.random.default_rng(0)
    whole = shutil.copytree(with_towers, tmp_path / "index")
    named = json.loads((whole / SETUP).read_text())
    parts = [named["index"], named["towers"]]
    files = [whole / SETUP, *(one for part in parts for one in (whole / part).rglob("*.*"))]
    files = [path for path in files if path.is_file() and path.name != ".lock"]
    assert len(files) > 8
    for path in files:
        before = path.read_bytes()
        for damage in range(4):
            at = int(rng.integers(len(before)))
            changed = before[:at] + bytes([before[at] ^ 1 << int(rng.integers(8))])
            changed += before[at + 1 :] if damage else b""
            path.write_bytes(changed)
            with pytest.raises(InputError, match=r"\w"):
                asked_of(whole)
        path.unlink()
        with pytest.raises(InputError, match=r"\w"):
            asked_of(whole)
        path.write_bytes(before)
    asked_of(whole)


def test_what_is_open_answers_whatever_becomes_of_its_folder(folder, both, tmp_path):
    whole = shutil.copytree(folder, tmp_path / "index")
    found = Retriever.load(whole)
    shutil.rmtree(whole)
    asked = ["a small bird", "a red crown"], [np.full((20, 30, 3), 99, "uint8")]
    for questions in asked:
        for one, other in zip(found.ask(questions), both[0].ask(questions), strict=True):
            assert one.ids.tolist() == other.ids.tolist()
            np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4, atol=1e-4)


FORK = """
import os, sys
import numpy as np
from halo_search.retriever import Retriever
retriever = Retriever.load(sys.argv[1])
questions = [f"a small bird {n}" for n in range(200)]
expected = [one.ids.tolist() for one in retriever.ask(questions)]
child = os.fork()
if not child:
    os._exit(expected != [one.ids.tolist() for one in retriever.ask(questions)])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_answers_too(folder):
    python("-c", FORK, folder, PYTHONPATH=os.pathsep.join(sys.path))


@pytest.fixture
def server(folder):
    """`halo search serve` of that index, where neither TensorFlow nor Keras is installed."""
    words = ["search", "serve", str(folder), "--port=0"]
    process = subprocess.Popen(
        [sys.executable, "-c", WITHOUT, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "MPLBACKEND": ""},
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


def test_questions_are_answered_and_sigterm_ends_it(server):
    for body, expected in ((b'{"question": "a small bird"}', 200), (b"{", 422)):
        status, answer = send(server.address, body)
        assert status == expected
        assert ("error" in answer) == (status != 200)
    port = int(server.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=60)
    assert server.returncode == 0
    assert "Traceback" not in said
