import errno
import io
import os
import tracemalloc
import zipfile

import h5py
import ml_dtypes
import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

import zoo
from halo_search.confidence import Probes
from halo_search.errors import InputError
from halo_search.files.array_files import open_memmap, read_array, read_arrays
from halo_search.files.decoding import decoded, fit
from halo_search.files.json_files import pack, unpack
from halo_search.files.tables import read_table
from halo_search.files.vector_files import read_vectors
from pixel_model import pixel_model


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


def test_the_array_is_there_with_all_its_room(tmp_path):
    array = open_memmap(tmp_path / "a.npy", "float32", (1000, 300))
    assert not array.any()
    assert (tmp_path / "a.npy").stat().st_blocks * 512 >= array.nbytes
    array[3] = 7
    array.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy")[3], 7)
    assert open_memmap(tmp_path / "empty.npy", "float32", (0, 3)).shape == (0, 3)


def test_an_archive_is_not_taken_for_an_array(tmp_path):
    with open(tmp_path / "several.npy", "wb") as file:
        np.savez(file, one=np.ones(3))
    with pytest.raises(InputError, match="expected one array, found an archive of several"):
        read_array(tmp_path / "several.npy")


def test_no_room_is_an_error_that_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor, start, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"No space left on device \(4 MiB are needed\)"):
        open_memmap(tmp_path / "a.npy", "float32", (1 << 20,))
    assert not list(tmp_path.iterdir())


def test_an_array_is_deflated_and_comes_back():
    many = np.arange(3000, dtype="<f4") % 7
    packed = pack(many)
    np.testing.assert_array_equal(unpack(np.ndarray, packed), many)
    assert len(packed["deflated"]) < 1000


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"image,caption\na,nan\nb,NULL\nc,<NA>\nd, none \n", [None] * 4),
        (b"image,caption\na,Nan bread\nb,none of them\n", ["Nan bread", "none of them"]),
        ("image,caption\na,b\n".encode("utf-16"), "found UTF-16; save it as UTF-8"),
        (b"image;caption\na;b\n", "found .'image;caption'. between ','; is that the `separator`"),
        (b"caption,image,caption\na,b,c\n", "expected one column 'caption', found 2"),
    ],
)
def test_tables_of_other_programs(tmp_path, content, found):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    if isinstance(found, str):
        with pytest.raises(InputError, match=found):
            list(read_table(path, ["caption"]))
    else:
        assert [value for _, (value,) in read_table(path, ["caption"])] == found


def test_numbers_that_numpy_has_not_are_named(tmp_path):
    save_file({"images": np.ones((3, 4), ml_dtypes.bfloat16)}, tmp_path / "v.safetensors")
    with pytest.raises(InputError, match="expected F16, F32 or F64, found BF16; convert it"):
        read_vectors(tmp_path / "v.safetensors", "images")


@pytest.mark.parametrize(
    ("start", "kind"),
    [(b"\0\0\0\x18ftyphevc", "HEIC"), (b"\0\0\0\x18ftypmsf1", "HEIC"), (b"%PDF-1.4", "PDF")],
)
def test_formats_that_people_have_are_named(start, kind):
    with pytest.raises(InputError, match=f"found {kind}"):
        decoded(start + bytes(99))


def test_a_picture_that_is_far_too_long_is_refused_and_a_long_one_takes_little(tmp_path):
    """To resize a side took memory of its length times the new one's."""
    with pytest.raises(InputError, match="1 x 40000 pixels, more than 32,767 on a side"):
        decoded(np.zeros((40_000, 1), "uint8"))
    tracemalloc.start()
    assert fit(np.zeros((32_767, 1, 3), "uint8"), 240, "stretch").shape == (240, 240, 3)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def _saved(tmp_path, kind, **how):
    Image.new("RGB", (40, 30)).save(tmp_path / "a", kind, **how)
    return (tmp_path / "a").read_bytes()


@pytest.mark.parametrize(
    ("kind", "make", "said"),
    [
        ("JPEG", lambda b: b[:-2] + b[b.rindex(b"\xff\xda") : -2] * 100 + b"\xff\xd9", "100 scans"),
        ("JPEG", lambda b: b[:2] + b"\xff\xfe\0\2" * 20_000 + b[2:], "20,000 parts"),
        ("JPEG", lambda b: b[:2] + b"\xff" * 8_000_000 + b[2:], "20,000 parts"),
        ("JPEG", lambda b: b[:2] + b"\xff\xe1\0\x08Exif\0\0" * 3 + b[2:], "2 EXIF blocks"),
        ("PNG", lambda b: b[:33] + (bytes(4) + b"teSt" + bytes(4)) * 20_001 + b[33:], "parts"),
        ("GIF", lambda b: b[:10] + bytes(3) + b"!\xfe" + b"\1a" * 5_000, "2,000 parts"),
        ("BMP", lambda b: b[:30] + b"\1" + b[31:] + bytes(2**20), "compressed BMP"),
    ],
)
def test_a_picture_of_far_too_many_parts_is_refused_by_counting(tmp_path, kind, make, said):
    how = {"progressive": True} if kind == "JPEG" else {}
    picture = _saved(tmp_path, kind, **how)
    with pytest.raises(InputError, match=f"more than .*{said}|{said} of more than"):
        decoded(make(picture))
    assert decoded(picture).shape == (30, 40, 3)
    if kind == "JPEG":  # a video behind a picture, as telephones write it, is no part of it
        video = np.random.default_rng(0).integers(0, 256, 2**24, dtype="u1").tobytes()
        assert decoded(picture + video).shape == (30, 40, 3)
