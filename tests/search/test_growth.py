"""Indexes that follow their source: new, changed and removed items, and a model replaced."""

import io
import json
import os
import shutil
import tarfile
import time

import keras
import numpy as np
import pytest
from PIL import Image

import zoo
from colour_model import with_words
from halo_zoo.search import main
from zoo import collection
from zoo.collection import Collection, Encoded, contents, encoding
from zoo.collection.growth import follow
from zoo.errors import InputError
from zoo.search import built

CAPTIONS = ["red", "green", "blue"]


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory):
    """A DualEncoder whose embedding of a picture is its mean colour, by a layer of weights."""
    image = keras.Input((8, 8, 3))
    mean = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(image))
    mean = keras.layers.Dense(3, kernel_initializer="identity", name="colour")(mean)
    model = with_words(keras.Model(image, {"mean": mean}), CAPTIONS, max_words=4)
    folder = tmp_path_factory.mktemp("model") / "model"
    zoo.save_preset(model, folder)
    return folder


@pytest.fixture
def model_folder(saved_model, tmp_path):
    return shutil.copytree(saved_model, tmp_path / "model")


def paint(folder, **colours):
    folder.mkdir(exist_ok=True)
    for name, colour in colours.items():
        Image.new("RGB", (12, 10), colour).save(folder / f"{name}.png")


@pytest.fixture
def photos(tmp_path):
    paint(tmp_path / "photos", b=(250, 0, 0), d=(0, 250, 0), f=(0, 0, 250))
    return tmp_path / "photos"


def replace_weights(folder, kernel):
    model = zoo.from_preset(folder)
    model.image_encoder.get_layer("colour").kernel.assign(kernel)
    shutil.rmtree(folder)
    zoo.save_preset(model, folder)


@pytest.fixture
def encoded(monkeypatch):
    """The names of what was encoded, in order."""
    names, call = [], encoding.encode_work

    def noted(tower, work, *rest):
        names.extend(work.names or [work.path])
        return call(tower, work, *rest)

    monkeypatch.setattr(encoding, "encode_work", noted)
    return names


def build(model, source, out, *more):
    main(["build", str(source), str(out), "--model", str(model), *more])


def vectors(out):
    _, shards, *_ = built.load(out)
    arrays = collection.joined([shard.arrays for shard in shards.shards()])
    return dict(zip(shards.names(range(len(shards))), arrays["mean"], strict=True))


def test_a_grown_folder_encodes_what_is_new(model_folder, photos, tmp_path, encoded, capsys):
    out = tmp_path / "out"
    build(model_folder, photos, out, "--shard-size", "2")
    before = vectors(out)
    encoded.clear()
    build(model_folder, photos, out, "--shard-size", "2")
    assert not encoded
    paint(photos, a=(9, 9, 9), e=(99, 0, 99))
    capsys.readouterr()
    build(model_folder, photos, out, "--shard-size", "2")
    assert "2 new, 0 changed, 0 gone" in capsys.readouterr().out
    assert sorted(encoded) == ["a.png", "e.png"]
    fresh = tmp_path / "fresh"
    build(model_folder, photos, fresh, "--shard-size", "2")
    after, expected = vectors(out), vectors(fresh)
    assert list(after) == list(expected) == ["a.png", "b.png", "d.png", "e.png", "f.png"]
    for name, vector in expected.items():
        np.testing.assert_allclose(after[name], vector, atol=1e-6)
    for name, vector in before.items():
        np.testing.assert_array_equal(after[name], vector)
    capsys.readouterr()
    main(["query", str(out), "--image", str(photos / "e.png"), "-k", "1"])
    assert "e.png" in capsys.readouterr().out
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == [
        "embeddings-2",
        "index-3",
    ]


def test_a_replaced_picture_is_noticed(model_folder, photos, tmp_path, encoded, capsys):
    out = tmp_path / "out"
    build(model_folder, photos, out)
    before = vectors(out)
    encoded.clear()
    os.utime(photos / "b.png", (1, 1))  # touched: its contents are the same
    build(model_folder, photos, out)
    assert not encoded
    paint(photos, d=(7, 8, 9))
    (photos / "f.png").unlink()
    capsys.readouterr()
    main(["update", str(out)])
    assert "0 new, 1 changed, 1 gone; changed: d.png" in capsys.readouterr().out
    assert encoded == ["d.png"]
    after = vectors(out)
    assert list(after) == ["b.png", "d.png"]
    np.testing.assert_array_equal(after["b.png"], before["b.png"])
    np.testing.assert_allclose(after["d.png"], np.array([7, 8, 9]) / 255, atol=1e-3)
    moved = tmp_path / "moved"
    photos.rename(moved)
    encoded.clear()
    main(["update", str(out), str(moved)])
    assert not encoded
    assert list(vectors(out)) == ["b.png", "d.png"]


def test_a_replaced_model_encodes_everything_again(model_folder, photos, tmp_path, encoded, capsys):
    out = tmp_path / "out"
    build(model_folder, photos, out)
    replace_weights(model_folder, 2 * np.eye(3))
    encoded.clear()
    capsys.readouterr()
    build(model_folder, photos, out)
    assert "the model's weights are others" in capsys.readouterr().out
    assert len(encoded) == 3
    np.testing.assert_allclose(vectors(out)["b.png"], [500 / 255, 0, 0], atol=1e-3)


def test_an_unreadable_picture_is_tried_when_it_has_changed(
    model_folder, photos, tmp_path, encoded
):
    (photos / "c.png").write_bytes(b"")
    out = tmp_path / "out"
    build(model_folder, photos, out, "--skip-bad")
    assert len(vectors(out)) == 3
    encoded.clear()
    build(model_folder, photos, out, "--skip-bad")
    assert not encoded
    paint(photos, c=(5, 5, 5))
    build(model_folder, photos, out)
    assert encoded == ["c.png"]
    assert list(vectors(out)) == ["b.png", "c.png", "d.png", "f.png"]


def test_captions_follow_their_file(model_folder, tmp_path, encoded):
    lines, out = tmp_path / "captions.txt", tmp_path / "out"
    lines.write_text("red\ngreen\nred\n")
    build(model_folder, lines, out, "--captions")
    encoded.clear()
    lines.write_text("blue\nred\ngreen\nred\n")
    build(model_folder, lines, out, "--captions")
    assert encoded == ["blue"]
    _, shards, index, *_ = built.load(out)
    assert shards.names(range(4)) == ["blue", "red", "green", "red"]
    assert len(index) == 4


def test_shards_alone_are_refused_when_their_pictures_have_changed(
    model_folder, photos, tmp_path, encoded
):
    shards = str(tmp_path / "shards")
    command = ["encode", str(photos), shards, "--model", str(model_folder)]
    main(command)
    main(command)
    paint(photos, b=(1, 1, 1))
    with pytest.raises(InputError, match=r"other contents: b\.png changed since"):
        main(command)
    replace_weights(model_folder, np.zeros((3, 3)))
    with pytest.raises(InputError, match=r"other work .*model_sha256"):
        main(command)


def test_an_update_needs_a_source(model_folder, photos, tmp_path):
    shards, out = str(tmp_path / "shards"), tmp_path / "out"
    main(["encode", str(photos), shards, "--model", str(model_folder)])
    main(["index", shards, str(out)])
    with pytest.raises(InputError, match="does not know its source"):
        main(["update", str(out)])
    with pytest.raises(InputError, match="expected what `build` wrote"):
        main(["update", str(tmp_path / "nowhere")])


def test_one_build_at_a_time(model_folder, photos, tmp_path):
    with (
        built.locked(tmp_path / "out"),
        pytest.raises(InputError, match="another process is building there"),
    ):
        build(model_folder, photos, tmp_path / "out")


class Rows:
    """Encodes rows of a file of vectors as they are, and notes which."""

    def __init__(self):
        self.asked = []

    def __call__(self, work, advance=lambda count: None):
        start, stop = work.items
        stamps, array = contents.stamps(work), np.load(work.path)[start:stop]
        self.asked += range(start, stop)
        said = [f"{s}:{contents.hashed(row)}" for s, row in zip(stamps, array, strict=True)]
        return Encoded(list(work.names), {"mean": array}, None, [], said)


def test_vectors_under_the_same_path(tmp_path):
    path, out, encoder = tmp_path / "a.npy", tmp_path / "out", Rows()
    array = np.random.default_rng(0).normal(size=(10, 4)).astype("float32")

    def made():
        pieces = collection.plan(path, "images", 4, of_vectors=True)
        encoder.asked.clear()
        found = follow(out, pieces, encoder, {"model": "m", "side": "images"}, progress=False)
        return collection.joined([shard.arrays for shard in found.shards()])["mean"]

    np.save(path, array)
    np.testing.assert_array_equal(made(), array)
    made()
    assert not encoder.asked
    array[[1, 2, 6]] = 1
    array = np.concatenate([array, array[:2] + 5])
    np.save(path, array)
    np.testing.assert_array_equal(made(), array)
    assert encoder.asked == [1, 2, 6, 10, 11]


def test_containers_follow_their_files(tmp_path):
    asked, folder, out = [], tmp_path / "tars", tmp_path / "out"
    folder.mkdir()

    def archive(name, *texts):
        with tarfile.open(folder / name, "w") as file:
            for text in texts:
                member = tarfile.TarInfo(f"{text}.txt")
                member.size = len(text)
                file.addfile(member, io.BytesIO(text.encode()))

    def encoder(work, advance=lambda count: None):
        asked.append(work.path.rpartition("/")[2])
        (stamp,) = contents.stamps(work)
        items = [(name, data) for name, data, _ in collection.work.read(work, "captions")]
        said = [f"{stamp}:{contents.hashed(data)}" for _, data in items]
        mean = np.array([[float(len(data)), 1] for _, data in items])
        return Encoded([name for name, _ in items], {"mean": mean}, None, [], said)

    def made():
        asked.clear()
        pieces = collection.plan(folder, "captions")
        return follow(out, pieces, encoder, {"side": "captions"}, progress=False)

    archive("b.tar", "one", "three")
    assert len(made()) == 2
    archive("a.tar", "seven")
    assert len(made()) == 3
    assert asked == ["a.tar"]
    os.utime(folder / "b.tar", (1, 1))  # touched: its contents are the same
    made()
    assert not asked
    archive("b.tar", "one", "three", "four")
    assert len(made()) == 4
    assert asked == ["b.tar"]


def test_shards_of_an_earlier_version_are_encoded_again(model_folder, photos, tmp_path, encoded):
    out = tmp_path / "out"
    build(model_folder, photos, out)
    path = out / "embeddings" / "job.json"
    job = json.loads(path.read_text())
    del job["model_sha256"]
    path.write_text(json.dumps(job))
    encoded.clear()
    build(model_folder, photos, out)
    assert len(encoded) == 3
    assert Collection(out / "embeddings-2").manifest["model_sha256"]


def _forge(path, **colour):
    """Other contents of the same size under the same time of change of contents."""
    before = path.stat()
    paint(path.parent, **colour)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_change_that_hides_behind_its_time_is_noticed(model_folder, photos, tmp_path, encoded):
    out = tmp_path / "out"
    build(model_folder, photos, out)
    encoded.clear()
    _forge(photos / "d.png", d=(0, 251, 0))
    main(["update", str(out)])
    assert encoded == ["d.png"]


def test_checksum_reads_what_the_system_calls_unchanged(
    model_folder, photos, tmp_path, encoded, monkeypatch
):
    monkeypatch.setattr(contents, "_stamp", lambda path: "1-2-3")  # a system that knows nothing
    out = tmp_path / "out"
    build(model_folder, photos, out)
    encoded.clear()
    paint(photos, d=(7, 8, 9))
    main(["update", str(out)])
    assert not encoded
    main(["update", str(out), "--checksum"])
    assert encoded == ["d.png"]


def test_times_are_not_believed_within_a_tick_of_the_clock(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"a")
    (work,) = collection.of_items("files", ["a.png"], [str(path)])
    (fresh,) = contents.stamps(work)
    assert fresh.endswith("-fresh")
    time.sleep(2.1)
    (settled,) = contents.stamps(work)
    assert settled == fresh.removesuffix("-fresh")


def test_odd_names_are_indexed_under_a_name_that_can_be_printed(
    model_folder, photos, tmp_path, capsys
):
    out = tmp_path / "out"
    for name in (b"caf\xe9.png", b"two\nlines.png", "u\u2028v.png".encode()):
        shutil.copy(photos / "b.png", os.path.join(os.fsencode(photos), name))
    build(model_folder, photos, out)
    expected = ["b.png", "caf\\xe9.png", "d.png", "f.png", "two\\nlines.png", "u\\u2028v.png"]
    assert sorted(vectors(out)) == expected
    capsys.readouterr()
    main(["query", str(out), "red", "-k", "6"])
    printed = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if ".png" in line]
    assert sorted(row.split()[-1] for row in rows) == expected
    retriever = zoo.Retriever.build(zoo.from_preset(model_folder), photos)
    assert sorted(retriever.ask("red", 6).names) == expected


def test_hidden_and_excluded_files_are_left_out_and_counted(model_folder, photos, tmp_path, capsys):
    for folder in ("@eaDir", ".thumbnails", "__MACOSX", "raw", "deep/raw"):
        (photos / folder).mkdir(parents=True)
        shutil.copy(photos / "b.png", photos / folder / "x.png")
    (photos / "._b.png").write_bytes(b"\0\5\26\7")  # macOS puts it beside a photo
    shutil.copy(photos / "b.png", photos / "b_small.png")
    out = tmp_path / "out"
    build(model_folder, photos, out, "--exclude", "raw/", "--exclude", "*_small.png")
    assert list(vectors(out)) == ["b.png", "d.png", "f.png"]
    assert "left out 7 files: 4 hidden, 3 excluded" in capsys.readouterr().out
    main(["update", str(out)])
    assert list(vectors(out)) == ["b.png", "d.png", "f.png"]
    main(["update", str(out), "--exclude", "[bd]*.png"])
    assert list(vectors(out)) == ["deep/raw/x.png", "f.png", "raw/x.png"]
    with pytest.raises(InputError, match="--exclude is of a folder of pictures"):
        build(model_folder, photos, tmp_path / "o", "--captions", "--exclude", "a")


def test_skip_bad_counts_and_lists_what_it_leaves_out(model_folder, photos, tmp_path, capsys):
    out = tmp_path / "out"
    (photos / "c.png").write_bytes((photos / "b.png").read_bytes()[:-20])
    (photos / "e.png").write_bytes(b"")
    build(model_folder, photos, out, "--skip-bad")
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last == f"{out}: 2 of 5 items cannot be read, see {out / 'skipped.jsonl'}"
    rows = [json.loads(line) for line in (out / "skipped.jsonl").read_text().splitlines()]
    assert [(row["where"], row["why"]) for row in rows] == [
        ("c.png", "a damaged image"),
        ("e.png", "an empty file"),
    ]
    assert all(row.keys() == {"data", "kind", "where", "why"} for row in rows)
    paint(photos, c=(1, 2, 3), e=(3, 2, 1))
    main(["update", str(out)])
    assert "cannot be read" not in capsys.readouterr().out
    assert (out / "skipped.jsonl").read_text() == ""
