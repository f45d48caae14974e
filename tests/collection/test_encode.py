"""Sources, parts on the disk, and an encoding that resumes and follows its source."""

import functools
import io
import os
import re

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from rich.console import Console
from rich.progress import Progress

from colour_model import colour_gaussians
from halo_search import collection
from halo_search.collection import Collection, Encoded, encode_items, parts
from halo_search.collection.encoding import DTYPES
from halo_search.embeddings.arrays import parts_of
from halo_search.errors import InputError
from processes import python
from zoo import embeddings
from zoo.data import images
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


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for row, colour in enumerate(COLOURS):
        (folder / f"{row}.png").write_bytes(encoded_picture(colour))
    return folder


def encode(items, encoder, folder, identity=None, **more):
    return collection.encode(items, encoder, folder, identity or {}, progress=False, **more)


def expected_means(paths, model):
    pixels = [images.prepare(tf.io.read_file(str(path)), SIZE).numpy() for path in paths]
    return np.asarray(model.encode_images(np.stack(pixels)).mean())


def test_a_folder_gives_the_vectors_of_encode_images(model, photos, tmp_path):
    (photos / "backup.tar").write_bytes(b"no source")
    items = collection.pictures(photos)
    found = encode(items, Tower(model, "images", batch_size=2), tmp_path / "out", part_size=2)
    whole, files = found.whole(), sorted(photos.glob("*.png"))
    assert whole.names == [path.name for path in files]
    np.testing.assert_allclose(whole.arrays["mean"], expected_means(files, model), atol=1e-6)
    expected = embeddings.uncertainty(whole.arrays, "log_det")
    np.testing.assert_allclose(whole.uncertainty, expected, rtol=1e-5)
    np.testing.assert_array_equal(found.uncertainty([0, 3]), whole.uncertainty[[0, 3]])
    assert [len(part.names) for _, part in found.read()] == [2, 2, 1]
    assert [part.names for _, part in found.read([1, 4])] == [["1.png"], ["4.png"]]
    assert found.manifest["count"] == {"seen": 6, "taken": 5, "left": {".tar": 1}}


@pytest.mark.parametrize("name", ["captions.txt", "captions.csv"])
def test_captions_of_a_table_and_of_lines(model, tmp_path, name):
    path = tmp_path / name
    path.write_text("\n".join(["caption"] * name.endswith("csv") + TEXTS))
    items = collection.read_source(path, "captions")
    found = encode(items, Tower(model, "captions"), tmp_path / "out", part_size=2).whole()
    assert found.names == TEXTS
    np.testing.assert_allclose(found.arrays["mean"], model.encode_captions(TEXTS).mean(), atol=1e-6)


def test_what_cannot_be_read_is_set_aside_with_its_reason(model, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    whole, noise = encoded_picture(COLOURS[0], "JPEG"), io.BytesIO()
    Image.effect_noise((64, 64), 90).save(noise, "JPEG")
    broken = {"b.jpg": noise.getvalue()[:-900], "c.png": b"", "d.png": b"no picture"}
    for name, data in {"a.jpg": whole, **broken, "e.jpg": whole}.items():
        (photos / name).write_bytes(data)
    items, tower, out = collection.pictures(photos), Tower(model, "images"), tmp_path / "out"
    with pytest.raises(InputError, match=r"b\.jpg: a damaged image \(1 of 2 items of a part"):
        encode(items, tower, out, skip_bad=False, part_size=2)
    assert parts.read_part(out / "part-000000.parquet").names == ["a.jpg"], "lost what was encoded"
    with pytest.raises(InputError, match=r"b\.jpg: a damaged image \(2 of 2 items of a part"):
        encode(items, tower, out, skip_bad=False, part_size=2)
    assert sorted(path.name for path in out.glob("*.parquet")) == ["part-000000.parquet"]
    for _ in range(2):  # the second call tries none of them again
        done = encode(items, tower, out, part_size=2)
        assert done.whole().names == ["a.jpg", "e.jpg"]
        reasons = {"b.jpg": "a damaged image", "c.png": "an empty file", "d.png": "not an image"}
        assert dict(done.rejected()) == reasons
        left = {"cannot be read": 3}
        assert done.manifest["count"] == {"seen": 5, "taken": 2, "left": left}
    with pytest.raises(InputError, match=r"b\.jpg: a damaged image"):
        encode(items, tower, out, skip_bad=False)  # what was left out before is no less broken
    with pytest.raises(InputError, match=r"c\.png: an empty file; none of the 1 items"):
        encode(items.take([2]), tower, tmp_path / "none")


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_part_gives_back_every_kind_of_embedding(tmp_path, dtype, suffix):
    rng = np.random.default_rng(0)
    kinds = [
        {"mean": rng.normal(size=(3, 4))},
        {"mean": rng.normal(size=(3, 4)), "log_variance": rng.normal(size=(3, 4))},
        {"mean": rng.normal(size=(3, 4)), "log_concentration": rng.normal(size=3)},
        {"elements": rng.normal(size=(3, 2, 4)), "mask": rng.random((3, 2)) < 0.5},
    ]
    items = collection.Items("texts", ["a", "d", "ä", "c"], range(4), ["1", "2", "3", "4"])
    for number, arrays in enumerate(kinds):
        path, arrays = tmp_path / f"{number}{suffix}", parts_of(arrays)
        uncertainty = rng.normal(size=3).astype(np.float32) if number else None
        encoded = Encoded(["a", "ä", "c"], arrays, uncertainty, [("d", "why")])
        parts.write_part(path, encoded, dtype, items, suffix)
        found = parts.read_part(path)
        stored = (["a", "ä", "c"], ["1", "3", "4"], [["d", "why", "2"]])
        assert parts.read_names(path) == (*stored, {})
        assert found.arrays.keys() == arrays.keys()
        for key, values in arrays.items():
            expected = values if key == "mask" else values.astype(dtype)
            np.testing.assert_array_equal(found.arrays[key], expected)
            assert found.arrays[key].dtype == expected.dtype
        assert (found.uncertainty is None) == (uncertainty is None)
        if number:
            np.testing.assert_array_equal(found.uncertainty, uncertainty)


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_a_damaged_vector_is_found(tmp_path, suffix):
    path, mean = tmp_path / f"part{suffix}", np.random.default_rng(0).normal(size=(1, 99))
    parts.write_part(path, Encoded(["a"], {"mean": mean}), "float32", suffix=suffix)
    whole = bytearray(path.read_bytes())
    whole[whole.index(mean.astype("float32").tobytes()) + 7] ^= 1
    path.write_bytes(whole)
    with pytest.raises(InputError, match="not a part of embeddings"):
        parts.read_part(path)


class Numbers:
    """Encodes texts of numbers, and notes which."""

    def __init__(self, stop_at=None):
        self.asked, self.stop_at = [], stop_at

    def __call__(self, items, advance=lambda count: None):
        if self.stop_at in items.values:
            raise KeyboardInterrupt
        self.asked.extend(items.values)
        advance(len(items))
        mean = np.array([[float(value), 1.0] for value in items.values])
        return Encoded(list(items.names), {"mean": mean})


def numbers(*values):
    return collection.captions([str(value) for value in values])


def test_a_stopped_encoding_resumes(tmp_path):
    items, model = numbers(*range(10)), {"model": "m"}
    with pytest.raises(KeyboardInterrupt):
        encode(items, Numbers("7"), tmp_path, model, part_size=4)
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["part-000000.parquet"]
    with pytest.raises(InputError, match="its encoding has not ended"):
        Collection(tmp_path)
    encoder = Numbers()
    found = encode(items, encoder, tmp_path, model, part_size=4)
    assert encoder.asked == ["4", "5", "6", "7", "8", "9"]
    np.testing.assert_array_equal(found.whole().arrays["mean"][:, 0], range(10))
    with pytest.raises(InputError, match=r"other work \(model differ\)"):
        encode(items, encoder, tmp_path, {"model": "n"})
    damaged = tmp_path / "part-000001.parquet"
    damaged.write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match="not a part of embeddings"):
        found.whole()
    damaged.unlink()
    again = encode(items, Numbers(), tmp_path, model)
    assert sorted(again.whole().arrays["mean"][:, 0]) == list(range(10))


def test_parts_of_both_formats_are_one_collection(tmp_path):
    encode(numbers(0, 1), Numbers(), tmp_path, {"model": "m"})
    encoder = Numbers()
    found = encode(numbers(0, 1, 2), encoder, tmp_path, {"model": "m"}, suffix=".npz")
    assert encoder.asked == ["2"]
    assert {path.name for path in tmp_path.glob("part-*")} == {
        "part-000000.parquet",
        "part-000001.npz",
    }
    np.testing.assert_array_equal(found.whole().arrays["mean"][:, 0], range(3))
    assert found.whole([2]).names == ["2"]


def test_a_terminal_is_told_items_a_second_and_the_time_left(tmp_path, monkeypatch):
    shown, now = io.StringIO(), iter(range(10**6))
    console = Console(file=shown, force_terminal=True, width=100)
    bar = functools.partial(Progress, console=console, auto_refresh=False, get_time=now.__next__)
    monkeypatch.setattr("halo_search.collection.progress.Progress", bar)
    collection.encode(numbers(*range(9)), Numbers(), tmp_path, {}, part_size=2)
    assert re.search(r"9/9 \d+\.\d/s\S* \S*0:00:00", shown.getvalue())


def test_parts_follow_their_source_and_are_never_changed(tmp_path, capsys):
    first = encode(numbers(1, 2, 2, 3), Numbers(), tmp_path)
    before, encoder = first.whole(), Numbers()
    second = encode(numbers(2, 4, 3, 2), encoder, tmp_path)
    assert encoder.asked == ["4"]
    assert "1 new, 0 changed, 1 gone" in capsys.readouterr().out
    assert second.ids.tolist() == [1, 2, 3, 4]
    assert second.whole().names == ["2", "2", "3", "4"]
    then = Collection(tmp_path, first.parts)  # as the first state numbered them
    np.testing.assert_array_equal(then.whole([0, 3]).arrays["mean"], before.arrays["mean"][[0, 3]])
    third = encode(numbers(1, 2, 2, 3), Numbers(), tmp_path)
    assert third.whole().names == ["1", "2", "2", "3"]
    assert third.ids.tolist() == [0, 1, 2, 3]
    fewer = encode(numbers(1, 2, 3), Numbers(), tmp_path)
    assert fewer.ids.tolist() == [0, 1, 3], "of those that are alike the first stays"


def test_a_model_of_another_path_is_the_same_by_its_hash(tmp_path):
    encode(numbers(1), Numbers(), tmp_path, {"model": "here", "model_sha256": "a"})
    encoder = Numbers("1")
    found = encode(numbers(1), encoder, tmp_path, {"model": "moved", "model_sha256": "a"})
    assert found.manifest["model"] == "moved"
    with pytest.raises(InputError, match="model_sha256 differ"):
        encode(numbers(1), encoder, tmp_path, {"model": "moved", "model_sha256": "b"})


def test_rows_of_a_file_of_vectors(tmp_path):
    class Rows:
        reads, side = "vectors", "images"

        def of_files(self):
            raise AssertionError

        def of_vectors(self, vectors, advance):
            return {"mean": np.asarray(vectors)}

        def uncertainty(self, arrays):
            return None

    path, array = tmp_path / "a.npy", np.arange(1, 21, dtype="float32").reshape(10, 2)
    np.save(path, array)
    items = collection.vectors(path)
    found = encode(items, Rows(), tmp_path / "out", part_size=4).whole()
    np.testing.assert_array_equal(found.arrays["mean"], array)
    assert found.names[:2] == ["image 0", "image 1"]
    with pytest.raises(InputError, match="expected rows below 10; received"):
        encode_items(Rows(), collection.Items("rows", ["a"], [10], [""], path=str(path)))
    with pytest.raises(InputError, match="expected 10 names, found 1"):
        collection.vectors(path, names=["a"])


def test_sources_and_folders_that_are_none(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        Collection(tmp_path)
    (tmp_path / "manifest.json").write_text("[")
    with pytest.raises(InputError, match="this is not valid JSON"):
        Collection(tmp_path)
    with pytest.raises(InputError, match="holds no image"):
        collection.read_source(tmp_path)
    (tmp_path / "a.csv").write_text("image\nb.png\n")
    with pytest.raises(InputError, match="this model reads no vectors"):
        collection.read_source(tmp_path / "a.csv", names=["a"])
    with pytest.raises(InputError, match="needs --cluster"):
        encode(numbers(1), Numbers(), "gs://bucket/parts")
    with pytest.raises(InputError, match="--shard-size must be at least 1"):
        encode(numbers(1), Numbers(), tmp_path / "new", part_size=0)


@pytest.mark.parametrize("name", ["part-000000.npz", "embeddings", "manifest.json", "a.txt"])
def test_what_is_not_ours_stays_and_is_named(tmp_path, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text('{"parts": []}')
    with pytest.raises(InputError, match=f"holds {name}, which this program did not write"):
        encode(numbers(1, 2), Numbers(), out)
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text() == '{"parts": []}'
    encode(numbers(1, 2), Numbers(), tmp_path / "own")
    (tmp_path / "own" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds notes\.txt, which this program did not write"):
        encode(numbers(1, 3), Numbers(), tmp_path / "own")


WITHOUT_THREADS = """
import os, pathlib, sys
import pyarrow.parquet  # whose import starts one for its memory
from halo_search.collection import parts
before = len(os.listdir("/proc/self/task"))
assert len(parts.read_part(pathlib.Path(sys.argv[1]) / "a.parquet").names) == 3
assert len(os.listdir("/proc/self/task")) == before
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are listed on Linux only")
def test_a_process_that_has_read_parquet_ends_quietly(tmp_path):
    """Threads of Arrow that hold a buffer of Python's abort the process when it ends."""
    encoded = Encoded(["a", "b", "c"], {"mean": np.eye(3, dtype=np.float32)})
    parts.write_part(tmp_path / "a.parquet", encoded, "float32")
    python("-c", WITHOUT_THREADS, tmp_path)


def test_a_type_that_cannot_hold_a_number_is_an_error(tmp_path):
    items = collection.captions(["small", "large"])
    made = Encoded(["small", "large"], {"mean": np.array([[1.0], [7e4]], np.float32)})
    with pytest.raises(InputError, match="--dtype float16: cannot hold the numbers of large"):
        collection.encode(items, lambda *_: made, tmp_path / "out", {"side": "captions"}, "float16")
