"""A build, a save, an update and an encoding remove nothing that this program did not write."""

import json
import os
import shutil

import numpy as np
import pytest
from PIL import Image

import zoo
from colour_model import colour_gaussians
from halo_search.cli.search import main
from halo_search.errors import InputError
from halo_search.files.written import read_sealed, sealed
from halo_search.index import built

pytestmark = pytest.mark.usefixtures("packaged_once", "without_towers")

FOLDERS = ("index", "towers-x", "data-1")
FILES = ("names.json", "part-000000.parquet")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    zoo.save_preset(colour_gaussians(["red", "green"]), folder)
    return folder


@pytest.fixture
def photos(tmp_path):
    (tmp_path / "photos").mkdir()
    for name, colour in {"a": (250, 0, 0), "b": (0, 250, 0)}.items():
        Image.new("RGB", (9, 9), colour).save(tmp_path / "photos" / f"{name}.png")
    return tmp_path / "photos"


@pytest.fixture
def retriever(model):
    return zoo.Retriever.build(model, {"mean": np.eye(3), "log_variance": np.zeros((3, 3))})


def contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*")}


def foreign(out, name):
    """Something of the user's: a folder with a photo, or a file."""
    out.mkdir(exist_ok=True)
    if name in FOLDERS:
        (out / name).mkdir()
        (out / name / "wedding.jpg").write_bytes(b"mine")
    else:
        (out / name).write_bytes(b'{"mine": 1}')
    return rf"out: holds {name}, which this program did not write"


@pytest.mark.parametrize("name", [*FOLDERS, *FILES, "notes.txt", "search.json"])
def test_a_first_build_and_a_save_stop_and_name_it(name, model, photos, retriever, tmp_path):
    out = tmp_path / "out"
    said, before = foreign(out, name), contents(out)
    writers = {
        "build": lambda: main(["build", str(photos), str(out), "--model", str(model)]),
        "encode": lambda: main(["encode", str(photos), str(out), "--model", str(model)]),
        "save": lambda: retriever.save(out),
        "index": lambda: retriever.index.save(out),
    }
    for write in writers.values():
        with pytest.raises(InputError, match=said):
            write()
        assert contents(out) == before
        assert not (out / ".lock").exists()


@pytest.fixture(scope="module")
def finished(model, tmp_path_factory):
    root = tmp_path_factory.mktemp("finished")
    (root / "photos").mkdir()
    Image.new("RGB", (9, 9)).save(root / "photos" / "a.png")
    out = str(root / "out")
    main(["build", str(root / "photos"), out, "--model", str(model)])
    return root


@pytest.mark.parametrize("name", ["index-2", "towers-x", "model.keras"])
def test_an_update_and_a_save_over_an_index_stop_and_name_it(name, finished, retriever, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished / "out", out)
    said = foreign(out, name)
    before = contents(out)
    for write in (lambda: main(["update", str(out)]), lambda: retriever.save(out)):
        with pytest.raises(InputError, match=said):
            write()
        assert contents(out) == before
    assert len(zoo.Retriever.load(out)) == 1


def test_our_own_leftovers_are_removed(finished, tmp_path):
    """Of a build that was killed: what it had listed, whole or half."""
    out = tmp_path / "out"
    shutil.copytree(finished / "out", out)
    manifest = read_sealed(out / "search.json")
    manifest["written"] += ["index-2", "towers-y"]
    (out / "search.json").write_text(json.dumps(sealed(manifest)))
    (out / "index-2").mkdir()
    (out / "towers-y").mkdir()
    (out / "towers-y" / "half.onnx").write_bytes(b"half")
    half = out / "index" / ".tmp-0123456789abcdef-names.json"
    half.write_bytes(b"half")
    os.utime(half, (0, 0))  # nobody has written to it for an hour
    main(["update", str(out)])
    setup = built.read_setup(out)
    named = {setup["index"], setup["parts"]["folder"], setup["towers"]} - {None}
    assert {path.name for path in out.iterdir() if path.is_dir()} == named
    assert not list(out.rglob(".tmp-*"))


def test_an_index_of_an_older_version_is_left_alone(finished, retriever, tmp_path):
    out = tmp_path / "out"
    (out / "index").mkdir(parents=True)
    (out / "search.json").write_text('{"model": "m", "index": "index", "shards": "embeddings"}')
    before = contents(out)
    said = r"search\.json, .* an older version did; choose another folder, or build it again"
    photos = str(finished / "photos")
    for write in (
        lambda: retriever.save(out),
        lambda: main(["build", photos, str(out), "--model", "toy_birds_pfe"]),
        lambda: main(["update", str(out)]),
        lambda: zoo.Retriever.load(out),
    ):
        with pytest.raises(InputError, match=said):
            write()
    assert contents(out) == before


def test_a_save_where_it_was_loaded_from_keeps_how_it_was_built(finished, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished / "out", out)
    before = built.read_setup(out)
    zoo.Retriever.load(out).save(out)
    after = built.read_setup(out)
    for key in ("model", "model_sha256", "towers", "parts", "build"):
        assert after.get(key) == before.get(key)
    main(["update", str(out)])
    retriever = zoo.Retriever.load(out)
    retriever.add({"mean": np.eye(3), "log_variance": np.zeros((3, 3))}, names=["x", "y", "z"])
    retriever.save(out)
    assert "parts" not in built.read_setup(out)
    question = {"mean": np.eye(3)[:1], "log_variance": np.zeros((1, 3))}
    assert sorted(zoo.Retriever.load(out).ask(question, k=4).names) == ["a.png", "x", "y", "z"]


def test_a_build_that_has_not_ended_says_so(tmp_path):
    written = built.Written(tmp_path / "out", built.SETUP)
    built.fresh(written, built.PARTS)
    with pytest.raises(InputError, match="its build has not ended; run it again to resume"):
        zoo.Retriever.load(tmp_path / "out")
    assert os.listdir(tmp_path / "out") == ["search.json"]
