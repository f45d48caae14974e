import io
import zipfile

import h5py
import numpy as np
import pytest

import zoo
from pixel_model import pixel_model
from zoo.confidence import Probes
from zoo.errors import InputError
from zoo.files.array_files import read_arrays


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
    "objects": _objects,
    "a huge shape": lambda path: _zip(path, a=_member((10**15,), bytes(16))),
}


@pytest.mark.parametrize("what", BAD)
def test_damaged_archives(what, tmp_path):
    path = tmp_path / "x.npz"
    BAD[what](path)
    for read in (read_arrays, Probes.load):
        with pytest.raises(InputError, match=r"x\.npz") as refused:
            read(path)
        assert "\n" not in str(refused.value)


def _weights_of(path, change):
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
