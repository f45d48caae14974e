"""A mistyped path or model ends before Keras is imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BUILD = ("search", "build", str(ROOT / "zoo" / "photos"), "OUT", "--model", "photos_pfe")
FOLDER = "no such folder of images, or CSV or TSV file"
MODEL = "no such model: 'phtos_pfe'; a model must be one of the presets "
SETUP = "nowhere/search.json: there is no such file; expected what `build` wrote"
WRONG = {
    ("search", "build", "nowhere", "OUT", "--model", "photos_pfe"): f"nowhere: {FOLDER}",
    (*BUILD[:-1], "phtos_pfe"): f"--model: {MODEL}",
    (*BUILD, "--pairs", "nowhere"): "--pairs nowhere: no such file or folder",
    (*BUILD, "--probes", "nowhere"): "--probes nowhere: no such run folder or preset",
    ("search", "update", "nowhere"): SETUP,
    ("search", "query", "nowhere", "dog"): SETUP,
    ("search", "serve", "nowhere"): SETUP,
    ("demo", "--photos", "nowhere"): f"nowhere: {FOLDER}",
    ("demo", "phtos_pfe"): MODEL,
    ("evaluate", "nowhere.npz"): "nowhere.npz: there is no such file",
    ("evaluate", "--model", "photos_pfe", "--pairs", "nowhere"): "--pairs nowhere: no such file",
    ("export", "phtos_pfe", "OUT"): MODEL,
    ("report", "nowhere"): "no such run folder: nowhere",
    ("confidence", "probes", "nowhere"): "no such run folder: nowhere",
    ("train", "pcme_cub", "--data-dir", "nowhere"): "--data-dir nowhere: no such file or folder",
    ("train", "own_pairs", "--data-dir=nowhere"): "--data-dir nowhere: no such file or folder",
}
RUN = """if True:
    import contextlib, io, json, sys
    for name in ("keras", "tensorflow", "faiss", "gradio"):
        sys.modules[name] = None  # importing it raises ImportError
    import halo_zoo
    for words in json.loads(sys.argv[1]):
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            try:
                halo_zoo.main(words)
            except SystemExit as ended:
                print(json.dumps([ended.code, shown.getvalue()]))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """`{words: [exit code, standard error]}`, all of one process in an empty folder."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps([*WRONG])],
        cwd=tmp_path_factory.mktemp("empty"),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(WRONG, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_mistyped_name_ends_before_keras_is_imported(said, words):
    code, error = said[words]
    assert code == 2
    assert error.startswith(f"error: {WRONG[words]}")
    assert error.count("\n") == 1


def test_the_nearest_preset_is_named(said):
    assert said["demo", "phtos_pfe"][1].endswith("; did you mean 'photos_pfe'?\n")
