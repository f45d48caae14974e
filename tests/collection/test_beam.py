"""Encoding by Apache Beam: the same shards as in this process, each exactly once."""

import contextlib
import functools
import io
import json
import os
import signal
import subprocess
import threading

import numpy as np
import pytest

beam = pytest.importorskip("apache_beam")
from apache_beam.io import filesystem  # noqa: E402
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner  # noqa: E402

import zoo  # noqa: E402
from halo_zoo.search import main  # noqa: E402
from zoo import collection  # noqa: E402
from zoo.collection import Collection, direct, shards  # noqa: E402
from zoo.collection import beam as pipelines  # noqa: E402
from zoo.data import toy_birds  # noqa: E402
from zoo.errors import InputError  # noqa: E402

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
def encoder():
    """Loaded once: that takes seconds."""
    return zoo.Tower(PRESET, "images")


@pytest.fixture(scope="module")
def expected(photos, tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    pieces = collection.plan(photos, "images", shard_size=5)
    collection.encode(pieces, encoder(), folder, {}, progress=False)
    return contents(folder)


def contents(folder):
    whole = Collection(folder)
    return whole.names(range(len(whole))), [shard.arrays for shard in whole.shards()]


def check_same(found, expected):
    assert found[0] == expected[0]
    for own, other in zip(found[1], expected[1], strict=True):
        for key, values in other.items():
            np.testing.assert_allclose(own[key], values, rtol=1e-5, atol=1e-5)


def test_a_pipeline_gives_what_this_process_gives(photos, expected, tmp_path):
    (photos / "broken.png").write_bytes(b"no picture")
    try:
        pieces = collection.plan(photos, "images", shard_size=5)
        handler = pipelines.TowerHandler(PRESET, "images")
        manifest = pipelines.encode_on(FnApiRunner(), pieces, handler, tmp_path, {"model": PRESET})
    finally:
        (photos / "broken.png").unlink()
    assert (manifest["items"], manifest["rejected"]) == (32, 1)
    names, parts = contents(tmp_path)
    assert dict(Collection(tmp_path).rejected()) == {"broken.png": "not an image"}
    check_same((names, [collection.joined(parts)]), (expected[0], [collection.joined(expected[1])]))


def test_an_object_store_is_read_and_written(photos, expected, store):
    for path in photos.rglob("*.jpg"):
        store[f"memory://bucket/photos/{path.relative_to(photos).as_posix()}"] = path.read_bytes()
    pieces = collection.plan("memory://bucket/photos", "images", shard_size=5)
    handler = pipelines.TowerHandler(PRESET, "images")
    pipelines.encode_on(FnApiRunner(), pieces, handler, "memory://bucket/shards", {})
    check_same(contents("memory://bucket/shards"), expected)
    left = [path for path in store if ".tmp-" in path]
    assert not left, "what is written becomes a shard by one rename"
    with pytest.raises(InputError, match="other work"):
        pipelines.encode_on(FnApiRunner(), pieces[:-1], handler, "memory://bucket/shards", {})


class Twice(beam.DoFn):
    """A runner that runs each bundle again."""

    def process(self, result):
        writer = pipelines.WriteShard(self.folder, "float32")
        for _ in range(2):
            yield from writer.process(result)

    def __init__(self, folder):
        self.folder = str(folder)


def test_a_shard_that_is_written_twice_is_there_once(photos, expected, tmp_path):
    pieces = collection.plan(photos, "images", shard_size=5)
    left = pipelines.begin(tmp_path, pieces, {})
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        encoded = pipeline | beam.Create(left) | beam.Map(pipelines_example)
        _ = encoded | beam.ParDo(Twice(tmp_path)).with_outputs("rejected", main="written")
    pipelines.finish(tmp_path, pieces)
    check_same(contents(tmp_path), expected)


def pipelines_example(work):
    (result,) = pipelines.TowerHandler(PRESET, "images").run_inference([work], encoder())
    return result


def test_flags_of_beam(photos, tmp_path):
    command = ["encode", str(photos), str(tmp_path / "out"), "--model", PRESET]
    with pytest.raises(InputError, match="Apache Beam knows no flag '--flink_mater=h:1'"):
        main([*command, "--runner", "FlinkRunner", "--", "--flink_mater=h:1"])
    with pytest.raises(InputError, match="flags of Beam need a --runner"):
        main([*command, "--", "--flink_master=h:1"])
    with pytest.raises(InputError, match="choose one"):
        main([*command, "--runner", "FlinkRunner", "--workers", "2"])


def workers_of_this_machine():
    """The worker processes of this one."""
    own = ["pgrep", "-P", str(os.getpid()), "-f", "multiprocessing.spawn"]
    return [int(pid) for pid in subprocess.run(own, capture_output=True, text=True).stdout.split()]


@pytest.mark.very_slow  # every attempt imports TensorFlow in three processes
def test_workers_that_are_killed_cost_only_their_shard(photos, expected, tmp_path):
    """Three times one of two workers is killed; every shard is there once."""
    folder = tmp_path / "shards"
    pieces = collection.plan(photos, "images", shard_size=5)
    rng, seen, ended = np.random.default_rng(0), set(), threading.Event()

    def kill():
        while len(seen) < 6 and not ended.is_set():
            there = workers_of_this_machine()
            if len(there) == 2 and not seen & set(there):
                ended.wait(rng.uniform(0, 12))  # while it imports, loads or encodes
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(rng.choice(there)), signal.SIGKILL)
                    seen.update(there)
            ended.wait(0.05)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        direct.encode_here(pieces, PRESET, "images", folder, {}, workers=2, progress=False)
    finally:
        ended.set()
        thread.join()
    assert seen, "none was killed"
    assert not workers_of_this_machine(), "every child has ended"
    check_same(contents(folder), expected)
    files = {path.name for path in folder.iterdir()}
    names = {f"shard-{number:06d}.parquet" for number in range(len(pieces))}
    assert files - {"job.json", "manifest.json"} == names


def test_a_worker_that_dies_is_started_again(photos, expected, tmp_path, monkeypatch):
    pieces = collection.plan(photos, "images", shard_size=5)
    codes = []

    def attempt(job, left, workers, look):
        """Encodes one shard, leaves half of another, and dies; at the end it does not."""
        shards.write_shard(
            job["folder"], left[0].number, collection.encode_work(encoder(), left[0])
        )
        (tmp_path / ".tmp-999999999-shard-000001.parquet").write_bytes(b"half")
        codes.append(-signal.SIGKILL if len(left) > 1 else 0)
        return codes[-1]

    monkeypatch.setattr(direct, "_attempt", attempt)
    direct.encode_here(pieces, PRESET, "images", tmp_path, {}, workers=2, progress=False)
    assert codes == [-signal.SIGKILL] * (len(pieces) - 1) + [0]
    check_same(contents(tmp_path), expected)
    assert not list(tmp_path.glob(".tmp-*"))
    for code, message in ((-9, "killed 3 times before a shard"), (1, "error is above")):
        monkeypatch.setattr(direct, "_attempt", lambda *_, code=code: code)
        with pytest.raises(InputError, match=message):
            direct.encode_here(
                pieces, PRESET, "images", tmp_path / str(code), {}, workers=2, progress=False
            )


def test_the_command_encodes_by_workers(photos, expected, tmp_path, capsys, monkeypatch):
    """In this process, since another would import TensorFlow; such are killed above."""

    def attempt(job, left, workers, look):
        before = signal.getsignal(signal.SIGINT)
        with monkeypatch.context() as patched:  # which puts back what a worker sets for itself
            patched.setattr(os, "environ", {**os.environ})
            direct._work(job, left)
        signal.signal(signal.SIGINT, before)
        return 0

    monkeypatch.setattr(direct, "_attempt", attempt)
    encoded = str(tmp_path / "shards")
    main(
        ["encode", str(photos), encoded, "--model", PRESET, "--workers", "2", "--dtype", "float16"]
    )
    assert "32 items in 1 shards, 0 rejected" in capsys.readouterr().out
    assert json.loads((tmp_path / "shards" / "job.json").read_text())["dtype"] == "float16"
    names, parts = contents(encoded)
    halves = [{key: one.astype("float16") for key, one in part.items()} for part in expected[1]]
    assert names == expected[0]
    for key, values in collection.joined(halves).items():
        np.testing.assert_allclose(collection.joined(parts)[key], values, rtol=2e-3, atol=2e-3)
