"""Encoding by Apache Beam: the same vectors as in this process, each part exactly once."""

import contextlib
import functools
import io
import tarfile

import numpy as np
import pytest

beam = pytest.importorskip("apache_beam")
from apache_beam.io import filesystem  # noqa: E402
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner  # noqa: E402

import zoo  # noqa: E402
from halo_search import collection  # noqa: E402
from halo_search.cli.search import main  # noqa: E402
from halo_search.collection import Collection  # noqa: E402
from halo_search.collection import beam as pipelines  # noqa: E402
from halo_search.errors import InputError  # noqa: E402
from zoo.data import toy_birds  # noqa: E402

PRESET = "toy_birds_pcme"


class Memory(filesystem.FileSystem):
    """An object store in this process, `memory://bucket/…`."""

    files: dict = {}

    @classmethod
    def scheme(cls):
        return "memory"

    def open(self, path, *_, **__):
        if path not in self.files:
            raise filesystem.BeamIOError(f"no such object: {path}")
        return io.BytesIO(self.files[path])

    def create(self, path, *_, **__):
        @contextlib.contextmanager
        def writing():
            file = io.BytesIO()
            yield file
            self.files[path] = file.getvalue()

        return writing()

    def rename(self, sources, targets):
        for source, target in zip(sources, targets, strict=True):
            self.files[target] = self.files.pop(source)

    def _list(self, prefix):
        for path, data in self.files.items():
            if path.startswith(prefix):
                yield filesystem.FileMetadata(path, len(data))

    def has_dirs(self):
        return False

    def join(self, base, *paths):
        return "/".join([base.rstrip("/"), *paths])

    def split(self, path):
        return tuple(path.rsplit("/", 1))

    def exists(self, path):
        return path in self.files

    def size(self, path):
        return len(self.files[path])

    def _unused(self, *_, **__):
        raise NotImplementedError

    mkdirs = copy = delete = metadata = checksum = last_updated = _unused


@pytest.fixture
def store():
    yield Memory.files
    Memory.files.clear()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    root = tmp_path_factory.mktemp("birds") / "birds"
    toy_birds.generate(root, num_classes=8, images_per_class=4, image_size=32)
    return root / "images"


@functools.cache
def tower():
    """Loaded once: that takes seconds."""
    return zoo.Tower(PRESET, "images")


@pytest.fixture(scope="module")
def expected(photos):
    items = collection.pictures(photos)
    return dict(
        zip(items.names, collection.encode_items(tower(), items).arrays["mean"], strict=True)
    )


@pytest.fixture(autouse=True)
def one_tower(monkeypatch):
    monkeypatch.setattr(pipelines, "_tower", lambda *_: tower())


def run(source, folder, side="images", identity=None, **more):
    made = identity or {"model": PRESET}
    return pipelines.encode_on(FnApiRunner(), source, PRESET, side, folder, made, **more)


def check_same(found, expected):
    whole = found.whole()
    assert sorted(whole.names) == sorted(expected)
    for name, values in zip(whole.names, whole.arrays["mean"], strict=True):
        np.testing.assert_allclose(values, expected[name], rtol=1e-5, atol=1e-5)


def test_a_folder_gives_what_this_process_gives(photos, expected, tmp_path):
    extra = {"broken.png": b"no picture", "notes.txt": b"", ".hidden.jpg": b""}
    for name, data in extra.items():
        (photos / name).write_bytes(data)
    try:
        found = run(photos, tmp_path / "parts", part_size=5)
    finally:
        for name in extra:
            (photos / name).unlink()
    check_same(found, expected)
    assert dict(found.rejected()) == {"broken.png": "not an image"}
    left = {".txt": 1, "hidden": 1, "cannot be read": 1}
    assert found.manifest["count"] == {"seen": 35, "taken": 32, "left": left}
    assert len(found.parts) == 7


def test_an_object_store_of_tars_is_read_and_written(photos, expected, store, monkeypatch):
    paths = sorted(photos.rglob("*.jpg"))
    for number in range(2):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as archive:
            for path in paths[number::2]:
                archive.add(path, path.relative_to(photos).as_posix())
        store[f"memory://bucket/photos-{number}.tar"] = file.getvalue()
    found = run("memory://bucket/photos-*.tar", "memory://bucket/parts")
    check_same(found, expected)
    assert not [path for path in store if ".tmp-" in path], "one rename makes a part"
    check_same(Collection("memory://bucket/parts"), expected)
    with pytest.raises(InputError, match="other work"):
        run("memory://bucket/photos-*.tar", "memory://bucket/parts", identity={"model": "other"})
    whole = store["memory://bucket/photos-1.tar"]
    store["memory://bucket/photos-1.tar"] = whole[:3000]  # a copy that was cut
    encoded = []
    monkeypatch.setattr(
        pipelines,
        "encode_unit",
        lambda tower, unit, encode=pipelines.encode_unit: (
            encoded.append(unit) or encode(tower, unit)
        ),
    )
    again = run("memory://bucket/photos-*.tar", "memory://bucket/parts")
    assert [unit.paths for unit in encoded] == [("memory://bucket/photos-1.tar",)]
    ((name, reason),) = again.rejected()
    assert name == "memory://bucket/photos-1.tar"
    assert "a damaged archive behind" in reason
    assert 16 < len(again) < 32
    store["memory://bucket/parts/part-mine.parquet"] = b"mine"
    with pytest.raises(InputError, match=r"holds part-mine\.parquet, which this program did not"):
        run("memory://bucket/photos-*.tar", "memory://bucket/parts")
    assert store["memory://bucket/parts/part-mine.parquet"] == b"mine"


def test_a_part_that_is_written_twice_is_there_once(photos, expected, tmp_path):
    """As by a runner that runs a bundle again."""
    units, _ = pipelines.units_of(photos, part_size=16)
    (tmp_path / "parts").mkdir()
    writer = pipelines.Encode(PRESET, "images", 64, str(tmp_path / "parts"), "float32")
    for unit in units * 2:
        writer.process(unit)
    assert len(list((tmp_path / "parts").iterdir())) == 2


def test_flags_of_beam(photos, tmp_path):
    command = ["encode", str(photos), str(tmp_path / "out"), "--model", PRESET]
    with pytest.raises(InputError, match="Apache Beam knows no flag '--flink_mater=h:1'"):
        main([*command, "--runner", "FlinkRunner", "--", "--flink_mater=h:1"])
    with pytest.raises(InputError, match="flags of Beam need a --runner"):
        main([*command, "--", "--flink_master=h:1"])


def test_the_command_encodes_by_a_runner(photos, expected, tmp_path, capsys):
    out = str(tmp_path / "parts")
    runner = ["--runner", "DirectRunner", "--dtype", "float16", "--shard-size", "20"]
    main(["encode", str(photos), out, "--model", PRESET, *runner])
    assert "32 seen, 32 taken, 0 left" in capsys.readouterr().out
    whole = Collection(out).whole()
    for name, values in zip(whole.names, whole.arrays["mean"], strict=True):
        np.testing.assert_allclose(values, expected[name], rtol=2e-3, atol=2e-3)
