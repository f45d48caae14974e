"""A package that is not installed is one error, which names the extra that brings it."""

import pathlib
import re
import runpy
import sys
import tomllib
import types

import numpy as np
import pytest

from demo.__main__ import main as demo
from export import warmup
from halo_search.collection.cluster import encode_on_cluster
from halo_search.collection.parts import Encoded, write_part
from halo_search.errors import MissingPackageError, require
from halo_search.files.stores import files_below
from halo_search.files.vector_files import read_vectors
from zoo import encoders
from zoo.data.text.clip_tokenizer import ClipTokenizer
from zoo.encoders import weight_arrays
from zoo.metrics import read_instance_labels
from zoo.models.frozen import write_onnx

ROOT = pathlib.Path(__file__).parent.parent
NO_ITEMS = Encoded([], {})
RECURRENT = types.SimpleNamespace(is_recurrent=True)  # all of a tower that is asked for


@pytest.fixture
def remove(monkeypatch):
    """A function that makes a package one that is not installed."""

    def hide(package):
        known = [name for name in sys.modules if name.startswith(f"{package}.")]
        for name in (package, *known):
            monkeypatch.setitem(sys.modules, name, None)

    return hide


def import_lance():
    import halo_search.index.lance  # noqa: F401


PLACES = {
    "a cluster": ("ray", "cluster", lambda: encode_on_cluster("photos", "toy_birds_pfe", "out")),
    "a CLIP tokenizer": ("keras_hub", "models", lambda: ClipTokenizer({"a": 0}, [], max_words=5)),
    "a BERT backbone": ("keras_hub", "models", lambda: encoders.bert(None, 7, 5, num_layers=1)),
    "a CLIP image backbone": ("keras_hub", "models", lambda: encoders.clip_image("tiny")),
    "a CLIP text backbone": ("keras_hub", "models", lambda: encoders.clip_text("tiny")),
    "a gallery on the disk": ("lancedb", "large", import_lance),
    "an encoded collection": ("pyarrow", "arrow", lambda: write_part("x", NO_ITEMS, "float32")),
    "an object store": ("pyarrow", "arrow", lambda: list(files_below("s3://bucket/photos"))),
    "the demo's page": ("gradio", "demo", lambda: demo([])),
    "COCO's instances": ("pycocotools", "models", lambda: read_instance_labels("x.json", [1])),
    "answers for programs": (
        "fastapi",
        "serve",
        lambda: runpy.run_module("halo_search.server.application"),
    ),
    "an export to ONNX": ("tf2onnx", "models", lambda: write_onnx(RECURRENT, "x")),
    "PyTorch's weights": ("torch", "torch", lambda: weight_arrays._read_torch("x.pth")),
    "an export": ("tensorflow_serving", "models", lambda: warmup.write_warmup(ROOT, {})),
}


@pytest.mark.parametrize(("package", "extra", "use"), PLACES.values(), ids=PLACES)
def test_what_needs_an_extra_names_it(package, extra, use, remove, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("halo_search.index.lance")]:
        monkeypatch.delitem(sys.modules, name)
    remove(package)
    with pytest.raises(MissingPackageError) as raised:
        use()
    assert str(raised.value) == (
        f'the package {package} is not installed: pip install ".[{extra}]" in the checkout, or '
        f'"halo-zoo[{extra}]" once it is released'
    )


def test_vectors_in_a_parquet_file_name_the_extra(tmp_path, remove):
    (tmp_path / "vectors.parquet").write_bytes(b"PAR1")
    remove("pyarrow")
    with pytest.raises(MissingPackageError, match=r"^the package pyarrow .*\.\[arrow\]"):
        read_vectors(tmp_path / "vectors.parquet")


def test_it_is_caught_as_an_import_error_too(remove):
    remove("gradio")
    with pytest.raises(ImportError, match="gradio"):
        require("gradio", extra="demo")


def test_a_package_that_is_there_is_given_or_fails_as_it_does(tmp_path, monkeypatch):
    assert require("numpy", extra="none").float32 is np.float32
    (tmp_path / "halo_broken.py").write_text("import halo_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="halo_not_there") as raised:
        require("halo_broken", extra="none")
    assert not isinstance(raised.value, MissingPackageError)


def test_every_extra_that_an_error_names_is_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].keys()
    rooms = ("halo_search", "zoo", "export", "demo", "recipes")
    sources = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    named = {
        extra
        for path in sources
        for extra in re.findall(r'require\("[\w.]+", extra="(\w+)"\)', path.read_text())
    }
    assert named == {extra for _, extra, _ in PLACES.values()}
    assert named <= extras
