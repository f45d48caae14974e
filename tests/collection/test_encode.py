"""Sources of every kind, shards on the disk, and an encoding that goes on where it was stopped."""

import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tarfile
import time

import numpy as np
import pyarrow
import pytest
import tensorflow as tf
from PIL import Image
from pyarrow import parquet

from colour_model import colour_gaussians
from zoo import collection, embeddings
from zoo.cli.bounds import DTYPES
from zoo.collection import Collection, Encoded, Work, containers, direct, shards
from zoo.collection.shards import shard_name
from zoo.data import images
from zoo.embeddings.arrays import parts_of
from zoo.errors import InputError
from zoo.models import Tower

COLOURS = [(250, 0, 0), (0, 250, 0), (0, 0, 250), (200, 0, 0), (90, 90, 90)]
TEXTS = ["red", "green", "blue", "a red bird", "grey"]
SIZE = 8


def encoded_picture(colour, kind="PNG"):
    file = io.BytesIO()
    Image.new("RGB", (12, 10), colour).save(file, kind)
    return file.getvalue()


@pytest.fixture(scope="module")
def model():
    return colour_gaussians(TEXTS)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """The same five pictures as a folder and in each kind of container, in one order."""
    root = tmp_path_factory.mktemp("pictures")
    contents = [encoded_picture(colour) for colour in COLOURS]
    (root / "folder").mkdir()
    for row, data in enumerate(contents):
        (root / "folder" / f"{row}.png").write_bytes(data)
    with tarfile.open(root / "photos.tar", "w") as archive:
        for row, data in enumerate(contents):
            for name, part in ((f"{row}.png", data), (f"{row}.json", b"{}")):
                member = tarfile.TarInfo(name)
                member.size = len(part)
                archive.addfile(member, io.BytesIO(part))
    with tf.io.TFRecordWriter(str(root / "photos.tfrecord-00000-of-00001")) as writer:
        for row, data in enumerate(contents):
            values = {"image": data, "key": f"{row}.png".encode()}
            features = {
                key: tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
                for key, value in values.items()
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    cells = [{"bytes": data, "path": None} for data in contents]  # as `datasets` has them
    names = [f"{row}.png" for row in range(len(contents))]
    parquet.write_table(pyarrow.table({"image": cells, "key": names}), root / "photos.parquet")
    return root


def expected_means(paths, model):
    pixels = [images.prepare(tf.io.read_file(str(path)), SIZE).numpy() for path in paths]
    return np.asarray(model.encode_images(np.stack(pixels)).mean())


@pytest.mark.parametrize(
    ("source", "flags"),
    [
        ("folder", {"shard_size": 2}),
        ("photos.tar", {}),
        ("photos*.tar", {}),
        ("photos.tfrecord-00000-of-00001", {"names_column": "key"}),
        ("photos.parquet", {"names_column": "key"}),
    ],
)
def test_every_source_gives_the_vectors_of_encode_images(model, pictures, tmp_path, source, flags):
    pieces = collection.plan(pictures / source, "images", **flags)
    encoder = Tower(model, "images", batch_size=2)
    collection.encode(pieces, encoder, tmp_path, {"model": "m"}, progress=False)
    whole = Collection(tmp_path)
    assert whole.names(range(len(whole))) == [f"{row}.png" for row in range(5)]
    means = collection.joined([shard.arrays for shard in whole.shards()])["mean"]
    files = [pictures / "folder" / f"{row}.png" for row in range(5)]
    np.testing.assert_allclose(means, expected_means(files, model), atol=1e-6)
    for shard in whole.shards():
        expected = embeddings.uncertainty(shard.arrays, "log_det")
        np.testing.assert_allclose(shard.uncertainty, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["captions.txt", "captions.csv", "captions.tar", "c.parquet"])
def test_captions_of_every_source(model, tmp_path, name):
    path = tmp_path / name
    if name.endswith("txt"):
        path.write_text("\n".join(TEXTS))
    elif name.endswith("csv"):
        path.write_text("caption\n" + "\n".join(TEXTS))
    elif name.endswith("parquet"):
        parquet.write_table(pyarrow.table({"caption": TEXTS}), path)
    else:
        with tarfile.open(path, "w") as archive:
            for row, text in enumerate(TEXTS):
                member = tarfile.TarInfo(f"{row}.txt")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
    pieces = collection.plan(path, "captions", shard_size=2)
    out = tmp_path / "out"
    collection.encode(pieces, Tower(model, "captions"), out, {}, progress=False)
    found = collection.joined([shard.arrays for shard in Collection(out).shards()])["mean"]
    np.testing.assert_allclose(found, model.encode_captions(TEXTS).mean(), atol=1e-6)


def test_what_cannot_be_read_is_set_aside_with_its_reason(model, pictures, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    whole, noise = encoded_picture(COLOURS[0], "JPEG"), io.BytesIO()
    Image.effect_noise((64, 64), 90).save(noise, "JPEG")
    broken = {"b.jpg": noise.getvalue()[:-900], "c.png": b"", "d.png": b"no picture"}
    for name, data in {"a.jpg": whole, **broken, "e.jpg": whole}.items():
        (photos / name).write_bytes(data)
    pieces = collection.plan(photos, "images", shard_size=2)
    encoder, out = Tower(model, "images"), tmp_path / "out"
    with pytest.raises(InputError, match=r"b\.jpg: a damaged image \(1 of the 2 items of a shard"):
        collection.encode(pieces, encoder, out, {}, skip_bad=False, progress=False)
    collection.encode(pieces, encoder, out, {}, progress=False)
    done = Collection(out)
    assert done.names(range(len(done))) == ["a.jpg", "e.jpg"]
    reasons = {"b.jpg": "a damaged image", "c.png": "an empty file", "d.png": "not an image"}
    assert dict(done.rejected()) == reasons
    assert done.manifest["rejected"] == 3
    only = [collection.Work(0, "files", ("c.png",), (str(photos / "c.png"),))]
    with pytest.raises(InputError, match=r"c\.png: an empty file; none of the 1 items"):
        collection.encode(only, encoder, tmp_path / "none", {}, progress=False)


def test_a_container_that_ends_too_early_gives_what_it_holds(pictures, tmp_path):
    cut = {
        "photos.tar": 3500,
        "cut.tar": 3000,
        "photos.tfrecord-00000-of-00001": 300,
        "photos.parquet": 300,
    }
    for name, size in cut.items():
        path = tmp_path / name
        whole = "photos.tar" if name == "cut.tar" else name
        path.write_bytes((pictures / whole).read_bytes()[:size])
        *good, (last, contents, reason) = containers.read(path, "images")
        assert len(good) < 5
        assert all(why is None for _, _, why in good)
        assert (last, contents) == (str(path), None)
        assert "damaged" in reason or "not a Parquet file" in reason
    with pytest.raises(InputError, match="TensorFlow cannot read it: File system scheme 's4'"):
        list(containers.read("s4://bucket/photos.tfrecord", "images"))
    with pytest.raises(InputError, match="expected a column 'photo', found image, key"):
        list(containers.read(pictures / "photos.parquet", "images", "photo"))
    with pytest.raises(InputError, match="expected a feature 'photo', found image, key"):
        list(containers.read(pictures / "photos.tfrecord-00000-of-00001", "images", "photo"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_shard_gives_back_every_kind_of_embedding(tmp_path, dtype):
    rng = np.random.default_rng(0)
    kinds = [
        {"mean": rng.normal(size=(3, 4))},
        {"mean": rng.normal(size=(3, 4)), "log_variance": rng.normal(size=(3, 4))},
        {"elements": rng.normal(size=(3, 2, 4)), "mask": rng.random((3, 2)) < 0.5},
    ]
    for number, arrays in enumerate(kinds):
        arrays = parts_of(arrays)
        uncertainty = rng.normal(size=3).astype(np.float32) if number else None
        encoded = Encoded(["a", "ä", "c"], arrays, uncertainty, [("d", "why")] * number)
        shards.write_shard(tmp_path, number, encoded, dtype)
        path = tmp_path / shards.shard_name(number)
        found = shards.read_shard(path)
        assert found.names == ["a", "ä", "c"] == shards.read_names(path)
        assert found.arrays.keys() == arrays.keys()
        for key, values in arrays.items():
            expected = values if key == "mask" else values.astype(dtype)
            np.testing.assert_array_equal(found.arrays[key], expected)
            assert found.arrays[key].dtype == expected.dtype
        assert (found.uncertainty is None) == (uncertainty is None)
        if number:
            np.testing.assert_array_equal(found.uncertainty, uncertainty)
        assert shards.read_notes(path) == {"items": 3, "rejected": number}


def test_a_stopped_encoding_goes_on(tmp_path):
    asked = []

    def encoder(work, advance, stop_at=None):
        if stop_at in work.items:
            raise KeyboardInterrupt
        asked.extend(work.items)
        return Encoded(list(work.names), {"mean": np.array([[float(i), 1.0] for i in work.items])})

    def encode(items, encoder, identity):
        pieces = collection.of_items("texts", items, items, shard_size=4)
        collection.encode(pieces, encoder, tmp_path, identity, progress=False)

    items = [str(number) for number in range(10)]
    with pytest.raises(KeyboardInterrupt):
        encode(items, lambda work, advance: encoder(work, advance, "7"), {"model": "m"})
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["shard-000000.parquet"]
    with pytest.raises(InputError, match="its encoding has not ended"):
        Collection(tmp_path)
    asked.clear()
    encode(items, encoder, {"model": "m"})
    assert asked == ["4", "5", "6", "7", "8", "9"]
    whole = Collection(tmp_path)
    means = collection.joined([shard.arrays for shard in whole.shards()])["mean"]
    np.testing.assert_array_equal(means[:, 0], range(10))
    assert whole.names([9, 0, 4]) == ["9", "0", "4"]
    for other, identity in ((items[:-1], {"model": "m"}), (items, {"model": "n"})):
        with pytest.raises(InputError, match="other work"):
            encode(other, encoder, identity)
    damaged = tmp_path / "shard-000001.parquet"
    damaged.write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match="not a shard of embeddings"):
        whole.shard(1)
    damaged.unlink()
    encode(items, encoder, {"model": "m"})
    np.testing.assert_array_equal(whole.shard(1).arrays["mean"][:, 0], [4, 5, 6, 7])


def test_sources_and_folders_that_are_none(tmp_path):
    with pytest.raises(InputError, match="expected what `encode` wrote"):
        Collection(tmp_path)
    (tmp_path / "manifest.json").write_text("[")
    with pytest.raises(InputError, match="not a manifest of shards"):
        Collection(tmp_path)
    with pytest.raises(InputError, match=r"no file of this pattern is a \.tar, \.tfrecord"):
        collection.plan(tmp_path / "*.png", "images")
    with pytest.raises(InputError, match="holds no image"):
        collection.plan(tmp_path, "images")
    (tmp_path / "a.csv").write_text("image\nb.png\n")
    with pytest.raises(InputError, match="names can be chosen of"):
        collection.plan(tmp_path / "a.csv", "images", names_column="key")
    with pytest.raises(InputError, match="this model reads none"):
        collection.plan(tmp_path / "a.csv", "images", names=["a"])


def test_the_job_says_what_is_encoded(model, pictures, tmp_path):
    pieces = collection.plan(pictures / "folder", "images", shard_size=3)
    collection.encode(pieces, Tower(model, "images"), tmp_path, {"model": "m"}, progress=False)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["model"] == "m"
    assert manifest["items"] == 5
    assert [entry["items"] for entry in manifest["files"]] == [3, 2]


def test_another_worker_takes_the_place_of_a_killed_one_at_once(tmp_path, monkeypatch):
    """The second worker ends when all shards of the first are there."""
    pieces = [Work(number, "texts") for number in range(6)]
    shard = lambda number: tmp_path / shard_name(number)  # noqa: E731

    def work(job, share):
        if share[0].number == 1:
            while not all(shard(number).exists() for number in (0, 2, 4)):
                time.sleep(0.01)
        for one in share:
            shard(one.number).touch()
            if one.number == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    fork = multiprocessing.get_context("fork")
    monkeypatch.setattr(direct.multiprocessing, "get_context", lambda kind: fork)
    monkeypatch.setattr(direct, "_work", work)
    began = time.monotonic()
    assert direct._attempt({"folder": tmp_path}, pieces, 2, lambda: None) == 0
    assert len(list(tmp_path.iterdir())) == 6
    assert time.monotonic() - began < 20


WITHOUT_THREADS = """
import os, pathlib, sys
from zoo.collection import containers, shards
folder = pathlib.Path(sys.argv[1])
before = len(os.listdir("/proc/self/task"))
assert len(shards.read_shard(folder / shards.shard_name(0)).names) == 3
assert len(list(containers.read(folder / "texts.parquet", "captions", "caption", None))) == 3
assert len(os.listdir("/proc/self/task")) == before
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are listed on Linux only")
def test_a_process_that_has_read_parquet_ends_quietly(tmp_path):
    """Threads of Arrow that hold a buffer of Python's abort the process when it ends."""
    encoded = Encoded(["a", "b", "c"], {"mean": np.eye(3, dtype=np.float32)})
    shards.write_shard(tmp_path, 0, encoded)
    table = pyarrow.table({"caption": ["red", "green", "blue"]})
    parquet.write_table(table, tmp_path / "texts.parquet")
    subprocess.run(
        [sys.executable, "-c", WITHOUT_THREADS, tmp_path],
        env={**os.environ, "HALO_LAZY": "1"},
        check=True,
        timeout=60,
    )
