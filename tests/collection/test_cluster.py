"""Encoding on a Ray cluster: the parts of one machine, from folders, tables, tars and stores.

`here` runs the actors' code in this process; `test_on_ray` runs it on Ray. Kills, two nodes and
figures: `python -m benchmarks cluster`.
"""

import contextlib
import io
import json
import logging
import pickle
import shutil
import subprocess
import sys
import tarfile
import types

import numpy as np
import pytest
from PIL import Image

import halo_search
from halo_search import collection
from halo_search.cli.search import main
from halo_search.collection import Collection
from halo_search.errors import InputError, MissingPackageError
from halo_search.files import stores
from s3_server import s3_server

pytest.importorskip("ray.data", reason='pip install ".[cluster]"')
pytest.importorskip("moto", reason='pip install ".[dev]"')
from halo_search.collection import cluster, ray_cluster, units

MODEL, BUCKET = "toy_birds_pfe", "halo"


class _Here:
    def actors(self, may_use_gpu):
        return 1, {"num_cpus": 1}


@pytest.fixture
def here(monkeypatch):
    """The parts that actors have encoded, in this process."""
    encoded = []

    def run(job, waiting, resources):
        actor = units.Encode()
        for number, unit in reversed(list(enumerate(waiting))):  # in any order
            work = pickle.dumps((job, unit))
            result = pickle.loads(actor({"number": number, "unit": work})["result"])
            if "error" in result:
                raise InputError(result["error"])
            encoded.append(unit.part)
            yield result

    monkeypatch.setattr(cluster, "run", run)
    monkeypatch.setattr(cluster, "connected", lambda address: contextlib.nullcontext(_Here()))
    monkeypatch.setattr(units, "_node", lambda: "here")
    return encoded


@pytest.fixture(scope="module")
def store():
    with s3_server(BUCKET) as variables:
        stores._filesystem.cache_clear()
        yield variables
    stores._filesystem.cache_clear()


def jpeg(number):
    file = io.BytesIO()
    Image.effect_noise((40, 30), 60 + number).convert("RGB").save(file, "JPEG")
    return file.getvalue()


PICTURES = {f"{'abc'[n % 3]}/{n:02d} #%.jpg": jpeg(n) for n in range(12)}
BROKEN = {"broken.jpg": PICTURES["a/00 #%.jpg"][:-200], "empty.png": b""}


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    for name, contents in {**PICTURES, **BROKEN, "notes.md": b"", ".hidden.jpg": b""}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(contents)
    return folder


def tar_of(names, contents=PICTURES):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(contents[name])
            archive.addfile(member, io.BytesIO(contents[name]))
    return file.getvalue()


@pytest.fixture(scope="module")
def expected():
    """The vectors by name, as one call of the tower gives them."""
    tower = halo_search.open_tower(MODEL, "images")
    means = tower.of_files(list(PICTURES.values()))["mean"]
    return dict(zip(PICTURES, means, strict=True))


def check_same(parts, expected):
    whole = parts.whole()
    assert sorted(whole.names) == sorted(expected)
    for name, mean in zip(whole.names, whole.arrays["mean"], strict=True):
        np.testing.assert_allclose(mean, expected[name], atol=1e-6)


def on_cluster(source, out, **more):
    return cluster.encode_on_cluster(source, MODEL, out, progress=False, **more)


def test_a_folder_is_encoded_and_counted_as_on_one_machine(photos, expected, here, tmp_path):
    tower = halo_search.open_tower(MODEL, "images")
    identity = {"model": MODEL, "model_sha256": tower.model_sha256, "side": "images"}
    items = collection.pictures(photos)
    plain = collection.encode(items, tower, tmp_path / "plain", identity, progress=False)
    found = on_cluster(photos, tmp_path / "parts", part_size=5)
    check_same(found, expected)
    assert found.whole().names == plain.whole().names, "in the same order"
    for key in ("count", "rejected", "model", "model_sha256", "side", "dtype"):
        assert found.manifest[key] == plain.manifest[key]
    assert len(found.parts) == 3
    for dtype in ("float16", "float32"):
        half = on_cluster(photos, tmp_path / dtype, dtype=dtype)
        assert half.whole().arrays["mean"].dtype == dtype
    done = len(here)
    # What one machine has begun the cluster completes, and the other way.
    new = jpeg(77)
    (photos / "new.jpg").write_bytes(new)
    again = on_cluster(photos, tmp_path / "plain")
    assert [len(again), len(here) - done] == [13, 1]
    items = collection.pictures(photos)
    back = collection.encode(items, tower, tmp_path / "parts", identity, progress=False)
    assert [part["items"] for part in back.parts][-1] == 1
    check_same(back, {**expected, "new.jpg": tower.of_files([new])["mean"][0]})


def test_a_call_that_was_stopped_resumes_by_name_size_and_time(
    photos, expected, here, tmp_path, monkeypatch, capsys
):
    out, write = tmp_path / "parts", units.write_file

    def full(path, contents):
        if len(here) == 2:
            raise InputError(f"cannot write {path}: No space left on device")
        write(path, contents)

    monkeypatch.setattr(units, "write_file", full)
    with pytest.raises(InputError, match=r"No space left on device \(on node here\)"):
        on_cluster(photos, out, part_size=4)
    with pytest.raises(InputError, match="its encoding has not ended"):
        Collection(out)
    monkeypatch.setattr(units, "write_file", write)
    found = on_cluster(photos, out, part_size=4)
    assert len(here) == 4, "two parts before, two after"
    check_same(found, expected)
    on_cluster(photos, out, part_size=4)
    assert len(here) == 4
    (photos / "broken.jpg").write_bytes(jpeg(5))
    (photos / "a/00 #%.jpg").unlink()
    changed = on_cluster(photos, out)
    assert "1 new, 0 changed, 1 gone" in capsys.readouterr().out
    assert len(changed) == 12
    assert dict(changed.rejected()) == {"empty.png": "an empty file"}
    with pytest.raises(InputError, match=r"other work \(dtype differ\)"):
        on_cluster(photos, out, dtype="float16")
    (out / "mine.parquet").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"holds mine\.parquet, which this program did not"):
        on_cluster(photos, out)


def test_a_unit_that_runs_twice_writes_one_part(photos, expected, here, tmp_path, monkeypatch):
    run = cluster.run

    def twice(job, units, resources):
        list(run(job, units, resources))  # whose node died before it could say so
        yield from run(job, units, resources)

    monkeypatch.setattr(cluster, "run", twice)
    check_same(on_cluster(photos, tmp_path / "parts", part_size=3), expected)
    assert len(list((tmp_path / "parts").glob("*.parquet"))) == len(set(here)) == 5


def test_an_object_store_of_pictures_and_tars(expected, here, store):
    names, root = sorted(PICTURES), f"s3://{BUCKET}/photos"
    for name in names[:4]:
        stores.write_file(f"{root}/{name}", PICTURES[name])
    stores.write_file(f"{root}/broken.jpg", BROKEN["broken.jpg"])
    more = {**PICTURES, "other.json": b"{}", "empty.png": b""}
    stores.write_file(f"{root}/1.tar", tar_of([*names[4:8], "other.json", "empty.png"], more))
    stores.write_file(f"{root}/2.tar", tar_of(names[8:]))
    out = f"s3://{BUCKET}/parts"
    found = on_cluster(root, out)
    check_same(found, expected)
    assert found.manifest["count"] == {
        "seen": 15,
        "taken": 12,
        "left": {".json": 1, "cannot be read": 2},
    }
    reasons = {"broken.jpg": "a damaged image", "empty.png": "an empty file"}
    assert dict(found.rejected()) == reasons
    assert len(here) == 3
    again = on_cluster(root, out)
    check_same(again, expected)
    assert len(here) == 3, "nothing is encoded again"
    assert again.manifest["count"] == found.manifest["count"]
    stores.write_file(f"{root}/2.tar", tar_of(names[8:])[:3000])  # a copy that was cut
    cut = on_cluster(root, out)
    assert len(here) == 4
    assert 8 <= len(cut) < 12
    assert "a damaged archive behind" in dict(cut.rejected())[f"{root}/2.tar"]
    only = on_cluster(f"s3://{BUCKET}/photos/*.tar", f"s3://{BUCKET}/tars")
    assert len(only) == len(cut) - 4
    stores.write_file(f"{out}/mine.txt", b"mine")
    with pytest.raises(InputError, match=r"holds mine\.txt, which this program did not write"):
        on_cluster(root, out)


def test_tables_in_a_store_and_texts_of_tars(expected, here, store):
    name = sorted(PICTURES)[0]
    stores.write_file(f"s3://{BUCKET}/t/a.jpg", PICTURES[name])
    stores.write_file(f"s3://{BUCKET}/t/table.csv", b"image\na.jpg\nmissing.jpg\n")
    found = on_cluster(f"s3://{BUCKET}/t/table.csv", f"s3://{BUCKET}/of-table")
    np.testing.assert_allclose(found.whole().arrays["mean"][0], expected[name], atol=1e-6)
    ((missing, _),) = found.rejected()
    assert missing == "missing.jpg"
    stores.write_file(f"s3://{BUCKET}/t/one.csv", b"image\na.jpg\n")
    assert len(on_cluster(f"s3://{BUCKET}/t/one.csv", f"s3://{BUCKET}/of-one")) == 1
    texts = {"1.txt": b"a red bird", "2.txt": b"", "3.txt": b"\xff"}
    stores.write_file(f"s3://{BUCKET}/texts.tar", tar_of(texts, texts))
    found = on_cluster(f"s3://{BUCKET}/texts.tar", f"s3://{BUCKET}/of-texts", side="captions")
    bird = halo_search.open_tower(MODEL, "captions").of_texts(["a red bird"])["mean"]
    np.testing.assert_allclose(found.whole().arrays["mean"], bird, atol=1e-6)
    reasons = {"2.txt": "expected text, found nothing", "3.txt": "expected UTF-8"}
    assert dict(found.rejected()) == reasons


def test_what_a_cluster_cannot_read_is_one_sentence(photos, here, store, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"s3://nowhere/photos: "):
        on_cluster("s3://nowhere/photos", tmp_path / "a")
    with pytest.raises(InputError, match="s3://halo/none: holds no tar"):
        on_cluster(f"s3://{BUCKET}/none", tmp_path / "a")
    with pytest.raises(InputError, match="--shard-size must be at least 1"):
        on_cluster(photos, tmp_path / "a", part_size=0)
    hidden = tmp_path / "elsewhere"
    exists = units.os.path.exists
    monkeypatch.setattr(
        units.os.path, "exists", lambda path: exists(path) and str(path) != str(photos)
    )
    with pytest.raises(InputError, match="source must be on a disk that all nodes share"):
        on_cluster(photos, hidden)


def test_a_node_without_a_package_is_named():
    error = ModuleNotFoundError("No module named 'halo_search'", name="halo_search")
    with pytest.raises(MissingPackageError, match=r"'halo_search'.*on all nodes"):
        raise ray_cluster._in_a_sentence(error)


class _Data:
    """What the program uses of `ray.data`; the actors return what is given."""

    def __init__(self, results):
        self._rows = [{"result": pickle.dumps(result)} for result in results]
        self.context = types.SimpleNamespace(enable_progress_bars=True)
        self.DataContext = types.SimpleNamespace(get_current=lambda: self.context)

    def from_items(self, rows, override_num_blocks):
        return self

    def ActorPoolStrategy(self, min_size, max_size):  # noqa: N802  (Ray's name)
        return None

    def map(self, actor, compute, **resources):
        return self

    def iter_rows(self):
        return iter(self._rows)


@pytest.mark.parametrize("kind", [InputError, MissingPackageError])
def test_an_actor_says_whether_a_package_is_missing(kind, monkeypatch):
    def fail(job):
        raise kind("why")

    monkeypatch.setattr(units, "_open", fail)
    monkeypatch.setattr(units, "_node", lambda: "a")
    work = pickle.dumps((None, units.Unit("a")))
    said = pickle.loads(units.Encode()({"number": 0, "unit": work})["result"])
    assert said == {"error": "why (on node a)", "is_missing": kind is MissingPackageError}


@pytest.mark.parametrize(("is_missing", "kind"), [(0, InputError), (1, MissingPackageError)])
def test_an_error_of_an_actor_keeps_its_kind_and_ray_draws_no_bars(is_missing, kind, monkeypatch):
    ray_data = _Data([{"number": 0}, {"error": "why", "is_missing": bool(is_missing)}])
    monkeypatch.setattr(ray_cluster, "require_ray_data", lambda: ray_data)
    results = ray_cluster.run(None, [units.Unit("a"), units.Unit("b")], {})
    assert next(results) == {"number": 0}
    with pytest.raises(kind, match="why"):
        next(results)
    assert not ray_data.context.enable_progress_bars


def test_the_lines_of_rays_workers_stay_out_of_the_terminal(monkeypatch):
    started = []
    ray = types.SimpleNamespace(
        is_initialized=lambda: False, init=lambda **how: started.append(how), shutdown=list
    )
    monkeypatch.setattr(ray_cluster, "require", lambda *_, **__: ray)
    with ray_cluster.connected("auto"):
        assert started == [
            {"address": None, "log_to_driver": False, "logging_level": logging.ERROR}
        ]


def test_a_source_is_looked_at_before_a_cluster_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "connected", pytest.fail)
    command = ["encode", str(tmp_path / "none"), str(tmp_path / "out"), "--model", MODEL]
    with pytest.raises(InputError, match="none: no such file or folder"):
        main([*command, "--cluster", "auto"])


@pytest.mark.very_slow  # a node of Ray takes half a minute to start
def test_on_ray(photos, expected, tmp_path, monkeypatch):
    """The command starts Ray on this machine, encodes by an actor, and ends Ray."""
    monkeypatch.setenv("RAY_worker_niceness", "0")
    out = tmp_path / "parts"
    command = [sys.executable, "-m", "halo_search", "search", "encode", str(photos), str(out)]
    command += ["--model", MODEL, "--cluster"]
    encoded = subprocess.run(
        [*command, "auto", "--shard-size", "5"], capture_output=True, text=True, timeout=300
    )
    assert encoded.returncode == 0, encoded.stderr
    assert "12 items on" in encoded.stdout
    assert "16 seen, 12 taken, 4 left" in encoded.stdout
    assert all(word in encoded.stdout for word in ("2 cannot be read", "1 hidden", "1 .md"))
    check_same(Collection(out), expected)
    rows = [json.loads(line) for line in (out / "skipped.jsonl").read_text().splitlines()]
    assert {row["where"] for row in rows} == set(BROKEN)
    shutil.rmtree(out)
    refused = subprocess.run([*command, "127.0.0.1:1"], capture_output=True, text=True, timeout=300)
    assert refused.returncode == 2
    assert "--cluster 127.0.0.1:1: " in refused.stderr
