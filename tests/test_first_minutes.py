"""README's install line and code block: what the line brings is all that the block needs."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from documented_install import ROOT, absent, blocks, install_line, run_without
from halo_search.photos import FOLDER

CODE = blocks(ROOT / "README.md", "python")[0]
PRINTED = blocks(ROOT / "README.md", "text")[0]
EXTRAS = re.fullmatch(r"\.\[(.+)\]", install_line()[2])[1].split(",")
_REFUSED = """
import halo_search
from halo_search.errors import MissingPackageError
import sys
for name in sys.argv[1:]:
    try:
        halo_search.Retriever.build(name, halo_search.packaged_photos())
    except MissingPackageError as error:
        print(error)
try:
    import zoo
except ImportError as error:
    print(error)
"""
_BUILT = """
from halo_search.cli.search import main
built = ["build", ".", "out", "--model", "photos_pfe", "--include-training"]
main(built)
main(built)
main(["query", "out", "a dog", "-k", "3"])
"""


def variables(home):
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "HALO_CACHE", "XDG_CACHE_HOME"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "HOME": str(home)}


def test_the_line_is_that_of_every_page():
    pages = ("docs/index.md", "docs/start/install.md", "docs/start/quickstart.md")
    line = " ".join(install_line()[:2]) + f' "{install_line()[2]}"'
    for page in pages:
        assert line in (ROOT / page).read_text("utf-8"), page


@pytest.mark.slow
def test_the_block_runs_without_what_the_line_does_not_bring(tmp_path):
    modules = absent(EXTRAS)
    assert {"keras", "tensorflow", "keras_hub", "pycocotools", "pyarrow"} <= modules
    assert not {"onnxruntime", "faiss", "gradio"} & modules
    lent = {**variables(tmp_path), "PYTHONPATH": str(ROOT)}
    done = run_without(modules, CODE, tmp_path, lent)
    assert done.stdout == PRINTED


@pytest.mark.slow
def test_a_gallery_is_built_updated_and_asked_without_it_too(tmp_path):
    lent = {**variables(tmp_path), "PYTHONPATH": str(ROOT)}
    for path in sorted(FOLDER.glob("*.jpg"))[:4]:
        (tmp_path / path.name).symlink_to(path)
    done = run_without(absent(EXTRAS), _BUILT, tmp_path, lent)
    assert "(asked: dog)" in done.stdout.splitlines()[-4], done.stdout
    assert [path.name for path in (tmp_path / "out" / "embeddings").glob("part-*")] == [
        "part-000000.npz"
    ]


@pytest.mark.slow
def test_what_needs_keras_names_the_extra_in_one_sentence(tmp_path):
    lent = {**variables(tmp_path), "PYTHONPATH": str(ROOT)}
    names = ["toy_birds_pcme", "siglip_base_patch16_224"]
    code = f"import sys; sys.argv[1:] = {names}{_REFUSED}"
    done = run_without(absent(EXTRAS), code, tmp_path, lent)
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stdout + done.stderr[-2000:]
    sentence = 'the package keras is not installed: pip install ".[models]" in the checkout'
    assert all(sentence in line for line in lines), lines


@pytest.mark.very_slow
def test_the_line_and_the_block_in_a_fresh_environment(tmp_path):
    """The line word for word in a new environment, the block and a question to `halo demo`."""
    environment, home, outside = (tmp_path / name for name in ("venv", "home", "outside"))
    home.mkdir()
    outside.mkdir()
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    there = os.pathsep.join([str(environment / "bin"), os.environ["PATH"]])
    installing = {**variables(os.environ["HOME"]), "PATH": there}
    subprocess.run(install_line(), cwd=ROOT, env=installing, check=True)
    alone = {**variables(home), "PATH": there}
    (outside / "block.py").write_text(CODE, "utf-8")
    done = subprocess.run(
        ["python", "block.py"], cwd=outside, env=alone, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr[-2000:]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    demo = subprocess.Popen(["halo", "demo", "--port", str(port)], cwd=outside, env=alone)
    try:
        answer = _asked(demo, f"http://127.0.0.1:{port}/gradio_api/call/find_images")
    finally:
        demo.terminate()
        demo.wait(60)
    assert answer.startswith("event: complete")
    assert '"verdict": "likely"' in answer


def _asked(process, address, seconds=300):
    """What a demo answers to a question, as soon as it answers."""
    data = json.dumps({"data": ["two people riding horses on the beach", None, 3, None]}).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, f"the demo ended with {process.returncode}"
        try:
            with urllib.request.urlopen(request, timeout=60) as started:
                event = json.load(started)["event_id"]
            with urllib.request.urlopen(f"{address}/{event}", timeout=60) as answered:
                return answered.read().decode("utf-8")
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.5)
    raise AssertionError(f"no answer at {address} within {seconds} s")
