"""Files that were made to harm: nothing in them runs, and nothing outside of them is read."""

import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
from collections import Counter

import numpy as np
import pytest

from halo_search import presets
from halo_search.collection.parts import read_part
from halo_search.collection.sources import PICTURES, members_of
from halo_search.confidence import Probes
from halo_search.confidence.bank import Near
from halo_search.errors import InputError
from halo_search.files.array_files import check_hdf5, read_array, read_arrays
from halo_search.files.vector_files import read_column, read_vectors
from halo_search.index import Index
from halo_search.towers.onnx import open_onnx

SECRET = "do not read me"
DOORS = {
    ".npy": (read_array, read_vectors, read_column),
    ".npz": (read_arrays, read_vectors, read_column, Probes.load, Near.load, read_part),
    ".safetensors": (read_vectors, read_column),
    ".parquet": (read_vectors, read_column, read_part),
    ".h5": (check_hdf5,),
    ".onnx": (open_onnx,),
}


class Harm:
    """What writes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def npy(shape, kind="<f4", data=b"", order=False):
    """A `.npy` whose header says what it likes."""
    header = f"{{'descr': {kind!r}, 'fortran_order': {order}, 'shape': {shape!r}, }}"
    header = header.ljust(118 - 10 - 1) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def zipped(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in members.items():
            archive.writestr(name, contents)
    return stream.getvalue()


def tensors(header, data=b"\0" * 16):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def objects(mark):
    stream = io.BytesIO()
    np.save(stream, np.array([[Harm(mark)]], object), allow_pickle=True)
    return stream.getvalue()


def one(start, stop, kind="F32", shape=(2, 2)):
    return {"images": {"dtype": kind, "shape": list(shape), "data_offsets": [start, stop]}}


def plain_files(mark):
    """`{name: contents}`."""
    pickled = pickle.dumps(Harm(mark))
    return {
        "pickle.npy": pickled,
        "objects.npy": objects(mark),
        "huge.npy": npy((2**40, 2**10)),
        "overflowing.npy": npy((2**62, 2**62)),
        "negative.npy": npy((-1, 4)),
        "code.npy": npy((1, 1), "__import__('os').mkdir('x')"),
        "objects by header.npy": npy((1, 1), "|O", pickled),
        "deep.npy": b"\x93NUMPY\x01\x00" + struct.pack("<H", 60_000) + b"(" * 60_000,
        "pickle.npz": zipped(images=pickled),
        "objects.npz": zipped(**{"images.npy": objects(mark), "rows.npy": objects(mark)}),
        "out of the folder.npz": zipped(**{"../../outside.npy": npy((1, 1), data=b"\0\0\x80?")}),
        "huge.npz": zipped(**{"images.npy": npy((2**40, 2**10))}),
        "cut.npz": zipped(**{"images.npy": npy((2, 2), data=b"\0" * 16)})[:-30],
        "not a zip.npz": b"PK\x03\x04" + b"\xff" * 100,
        "long header.safetensors": struct.pack("<Q", 2**63) + b"{}",
        "no header.safetensors": b"\0" * 8,
        "beyond the file.safetensors": tensors(one(0, 2**40)),
        "backwards.safetensors": tensors(one(16, 0)),
        "negative.safetensors": tensors(one(-16, 0)),
        "other size.safetensors": tensors(one(0, 16, shape=(2**31, 2**31))),
        "other kind.safetensors": tensors(one(0, 16, kind="PICKLE")),
        "deep.safetensors": tensors(b"[" * 100_000),
        "overlapping.safetensors": tensors({**one(0, 16), "b": one(8, 24)["images"]}),
        "pickle.safetensors": pickled,
        "garbage.parquet": b"PAR1" + b"\xff" * 200 + struct.pack("<I", 2**31 - 1) + b"PAR1",
        "pickle.parquet": b"PAR1" + pickled + struct.pack("<I", len(pickled)) + b"PAR1",
        "empty.parquet": b"PAR1PAR1",
        "garbage.h5": b"\x89HDF\r\n\x1a\n" + b"\xff" * 500,
        "pickle.h5": pickled,
        "garbage.onnx": b"\x08\x07" + b"\xff" * 200,
        "pickle.onnx": pickled,
    }


def linked_hdf5(path, secret):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path / "external storage.h5", "w") as file:
        file.create_dataset("a", (4,), "u1", external=[(str(secret), 0, 4)])
    layout = h5py.VirtualLayout((4,), "u1")
    layout[:] = h5py.VirtualSource(str(secret), "a", (4,))
    with h5py.File(path / "virtual.h5", "w") as file:
        file.create_virtual_dataset("a", layout)


def outside_onnx(path, secret):
    """A graph whose weights are in a file outside of its folder."""
    onnx = pytest.importorskip("onnx")
    weights = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[2])
    weights.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", os.path.relpath(secret, path)), ("length", "8")):
        weights.external_data.add(key=key, value=value)
    values = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in "xy"]
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:], [weights])
    opsets = [onnx.helper.make_opsetid("", 13)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (path / "outside.onnx").write_bytes(model.SerializeToString())


def refusal(door, path):
    """What a door says of a file, or None."""
    try:
        door(path)
    except (InputError, ValueError, OSError) as error:
        return error
    return None


def test_arrays_and_graphs(tmp_path):
    inside, mark, secret = tmp_path / "a" / "b", tmp_path / "mark", tmp_path / "secret.bin"
    inside.mkdir(parents=True)
    secret.write_text(SECRET)
    for name, contents in plain_files(mark).items():
        (inside / name).write_bytes(contents)
    linked_hdf5(inside, secret)
    outside_onnx(inside, secret)
    tried = Counter()
    for path in sorted(inside.iterdir()):
        for door in DOORS[path.suffix]:
            if path.name == "out of the folder.npz" and door in DOORS[".npz"][:3]:
                door(path)  # a name within an archive names nothing on the disk
                continue
            error = refusal(door, path)
            is_ours = isinstance(error, InputError) or door is check_hdf5
            assert is_ours, (path.name, door, error)
            assert SECRET not in str(error)
            tried[path.name] += 1
    assert len(tried) >= 33
    assert not mark.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "secret.bin"]


def harmful_tar(path, secret):
    """Members that lead elsewhere; two of them are honest."""
    with tarfile.open(path, "w") as archive:

        def add(name, contents=b"text", **more):
            member = tarfile.TarInfo(name)
            member.size = len(contents) if member.isreg() else 0
            for key, value in more.items():
                setattr(member, key, value)
            archive.addfile(member, io.BytesIO(contents) if "type" not in more else None)

        add("good.png")
        add("../../above.png")
        add("/absolute.png")
        link = {"size": 0, "linkname": str(secret)}
        add("link.png", b"", type=tarfile.SYMTYPE, **link)
        add("hard.png", b"", type=tarfile.LNKTYPE, **link)
        add("device.png", b"", type=tarfile.CHRTYPE, size=0)
        add("pipe.png", b"", type=tarfile.FIFOTYPE, size=0)


def test_a_tar_writes_nothing_and_follows_no_link(tmp_path):
    secret, archive = tmp_path / "secret.png", tmp_path / "photos.tar"
    secret.write_text(SECRET)
    harmful_tar(archive, secret)
    left = Counter()
    found = list(members_of(archive, PICTURES, left))
    assert all(contents == b"text" for _, contents, _ in found)
    assert left == {"link": 2, "not a file": 2, "hidden": 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["photos.tar", "secret.png"]


def test_another_indexs_files_are_not_taken(tmp_path):
    for name, seed in (("a", 0), ("b", 1)):
        vectors = np.random.default_rng(seed).normal(size=(9, 4))
        Index.build({"mean": vectors}, "cosine").save(tmp_path / name)
    data = tmp_path / "a" / "data-1" / "index.faiss"
    data.write_bytes((tmp_path / "b" / "data-1" / "index.faiss").read_bytes())
    with pytest.raises(InputError, match=r"index\.faiss: is damaged"):
        Index.load(tmp_path / "a")


@pytest.mark.parametrize("key", ["assets", "files", "pictures", "data"])
@pytest.mark.parametrize("value", [3, "abc", None, float("nan"), ["../above"], [1]])
def test_a_card_of_another_kind_is_named(key, value, tmp_path):
    (tmp_path / "preset.json").write_text(json.dumps({"name": "mine", key: value}))
    with pytest.raises(InputError, match=r"preset\.json: "):
        presets.read_card(tmp_path)


def test_probes_of_unequal_rows_are_refused(tmp_path):
    whole = dict(np.load(presets.folder_of("toy_birds_pfe") / "probes.npz"))
    for rows in (0, 1000):
        np.savez(tmp_path / "p.npz", **whole | {"captions_mean": whole["captions_mean"][:rows]})
        with pytest.raises(InputError, match=r"p\.npz: holds no probes"):
            Probes.load(tmp_path / "p.npz")
        changed = {"captions_log_variance": whole["captions_log_variance"][:rows]}
        np.savez(tmp_path / "p.npz", **whole | changed)
        with pytest.raises(InputError, match=r"p\.npz: .* arrays with as many rows each"):
            Probes.load(tmp_path / "p.npz")
