"""Archives that are damaged or say wrong sizes are refused in a sentence, at once."""

import gzip
import io
import zipfile

import h5py
import keras
import numpy as np
import pytest

import zoo
from pixel_model import pixel_model
from zoo.confidence import Probes
from zoo.data.loaders.regions import open_array
from zoo.data.text.clip_tokenizer import read_clip_tokenizer
from zoo.encoders.weight_arrays import open_weights
from zoo.errors import InputError
from zoo.files.array_files import read_array, read_arrays
from zoo.files.vector_files import read_vectors
from zoo.metrics.annotations import read_ids
from zoo.training.resume import Resume


def test_what_numpy_wrote_is_read(tmp_path):
    arrays = {
        "a": np.arange(6).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "scalar": np.float16(3),
        "text": np.array("a text"),
        "empty": np.zeros((0, 4), bool),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", **arrays)
        found = read_arrays(tmp_path / "x.npz")
        assert found.keys() == arrays.keys()
        for name, values in arrays.items():
            np.testing.assert_array_equal(found[name], values)
            assert found[name].dtype == values.dtype
    found["a"][0, 0] = 7  # may be changed


def _member(shape, data, dtype="<f8"):
    stream = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + data


def _zip(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


def _flipped(path):
    np.savez_compressed(path, a=np.random.default_rng(0).normal(size=500))
    data = bytearray(path.read_bytes())
    data[200:300] = bytes(100)
    path.write_bytes(bytes(data))


def _objects(path):
    np.savez(path, a=np.array([{}, None], object))


BAD = {
    "flipped bytes": _flipped,
    "no archive": lambda path: path.write_bytes(b"abc"),
    "empty": lambda path: path.write_bytes(b""),
    "objects": _objects,
    "a huge shape": lambda path: _zip(path, a=_member((10**15,), bytes(16))),
    "an overflowing shape": lambda path: _zip(path, a=_member((2**62, 2**62), bytes(16))),
    "a negative shape": lambda path: _zip(path, a=_member((-2, -1), bytes(16))),
    "no header": lambda path: _zip(path, a=b"text"),
}


@pytest.mark.parametrize("what", BAD)
def test_damaged_archives(what, tmp_path):
    path = tmp_path / "x.npz"
    BAD[what](path)
    for read in (read_arrays, Probes.load):
        with pytest.raises(InputError, match=r"x\.npz") as refused:
            read(path)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("read", [read_ids, read_array], ids=["ids", "array"])
def test_an_array_of_a_huge_shape_takes_no_memory(read, tmp_path):
    (tmp_path / "x.npy").write_bytes(_member((10**13,), bytes(64), "<i8"))
    with pytest.raises(InputError, match=r"x\.npy: cannot be read"):
        read(tmp_path / "x.npy")


@pytest.mark.parametrize(
    "read", [read_array, lambda path: read_vectors(path, "images"), open_array]
)
@pytest.mark.parametrize(
    "change",
    [
        (b"{", b"("),
        (b"}", b" "),
        (b"(4, 3, 2)", b"(4, 3, 2'"),
        (b"3,", b"3\xff"),
        (b"False", b"1***2"),
    ],
    ids=str,
)
def test_a_damaged_header_is_refused_in_a_sentence(read, change, tmp_path):
    """NumPy reads the header as Python, and raises what Python's tokenizer does."""
    path = tmp_path / "x.npy"
    np.save(path, np.ones((4, 3, 2), np.float32))
    path.write_bytes(path.read_bytes().replace(*change, 1))
    with pytest.raises(ValueError) as refused:
        read(path)
    assert type(refused.value) in (InputError, ValueError)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("damage", [_flipped, BAD["a huge shape"], BAD["objects"]])
def test_archives_of_vectors_and_of_weights(damage, tmp_path):
    path = tmp_path / "x.npz"
    damage(path)
    with pytest.raises(InputError, match=r"x\.npz"):
        read_vectors(f"{path}:a", "images")
    with pytest.raises(InputError, match=r"x\.npz"):
        open_weights(path)[0]["a"]


def _weights_of(path, change):
    """A preset at a path, and as a `.keras` file, whose weights a function changes."""
    model = pixel_model()
    zoo.save_preset(model, path)
    model.save(path.with_suffix(".keras"))
    with h5py.File(path / "model.weights.h5", "r+") as file:
        names = []
        file.visititems(lambda name, item: names.append(name) if hasattr(item, "size") else None)
        name = next(name for name in names if file[name].size > 100)
        change(file, name)
    with zipfile.ZipFile(path.with_suffix(".keras")) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["model.weights.h5"] = (path / "model.weights.h5").read_bytes()
    with zipfile.ZipFile(path.with_suffix(".keras"), "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def _elsewhere(file, name):
    shape = file[name].shape
    del file[name]
    file.create_dataset(name, shape, "f4", external=[("/etc/passwd", 0, 4 * np.prod(shape))])


def test_weights_that_lie_elsewhere(tmp_path):
    _weights_of(tmp_path / "preset", _elsewhere)
    for name in ("preset", "preset.keras"):
        with pytest.raises(InputError, match="lies in another file"):
            zoo.from_preset(tmp_path / name)


def _model():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def test_a_checkpoint_of_damaged_bytes_is_passed_over(tmp_path):
    resume = Resume(tmp_path)
    resume.set_model(_model())
    resume.save(1)
    _flipped(tmp_path / "train-00002.npz")
    with pytest.warns(UserWarning, match="cannot be read and is passed over"):
        assert Resume(tmp_path).restore(_model()) == 1


def test_merges_of_damaged_bytes(tmp_path):
    path = tmp_path / "bpe.txt.gz"
    data = bytearray(gzip.compress(b"".join(b"a%d b\n" % i for i in range(999))))
    data[20:400] = bytes(380)
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="cannot be read"):
        read_clip_tokenizer(path)


def _probes(**changed):
    rng = np.random.default_rng(0)
    given = {
        "images": {"mean": rng.normal(size=(9, 4)), "log_variance": rng.normal(size=(9, 4))},
        "captions": {"mean": rng.normal(size=(9, 4)), "log_variance": rng.normal(size=(9, 4))},
        "image_labels": np.arange(9),
        "caption_labels": np.arange(9),
        **changed,
    }
    return Probes.of(**given)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"images": {"mean": np.ones((9, 4))}}, "must have the same parts"),
        ({"images": {n: np.ones((9, 5)) for n in ("mean", "log_variance")}}, "must have one shape"),
        ({"images": {n: np.full((9, 4), np.nan) for n in ("mean", "log_variance")}}, "finite"),
        ({"image_labels": np.arange(8)}, r"must be of shape \(9,\)"),
        ({"image_labels": np.arange(9) + 0.5}, "whole numbers or texts"),
        ({"caption_images": np.arange(8)}, "must be 9 whole numbers"),
        ({"caption_images": np.full(9, np.nan)}, "must be 9 whole numbers"),
        ({"whole": np.ones(8, bool)}, "must be 9 truth values"),
    ],
)
def test_probes_of_other_shapes_are_refused(changed, says):
    with pytest.raises(ValueError, match=says):
        _probes(**changed)
