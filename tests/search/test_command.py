"""`python -m zoo.search`: folder or table in, index out, and resumption."""

import dataclasses

import keras
import numpy as np
import pytest
from PIL import Image

import zoo
from zoo import collection
from zoo.arrays import as_arrays
from zoo.collection import Collection, Encoder
from zoo.confidence import Confidence, GalleryIdentity, KnownQueries
from zoo.data.captions import word_tokenizer
from zoo.errors import InputError
from zoo.evaluation.known import query_facts
from zoo.files import RunFolder
from zoo.search import Index, from_shards, storage
from zoo.search.__main__ import main

CAPTIONS = ["red", "green", "blue", "a red bird", "a green bird"]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A DualEncoder whose embedding of a picture is its mean colour."""
    image = keras.Input((8, 8, 3))
    mean = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(image))
    caption = keras.Input((4,), dtype="int32")
    tokenizer = word_tokenizer(CAPTIONS, max_words=4)
    words = keras.layers.Embedding(tokenizer.vocabulary_size(), 3)(caption)
    words = keras.layers.GlobalAveragePooling1D()(words)

    def gaussian(mean):
        log_variance = keras.layers.Dense(3, kernel_initializer="zeros")(mean)
        return {"mean": mean, "log_variance": log_variance}

    model = zoo.models.DualEncoder(
        keras.Model(image, gaussian(mean)),
        keras.Model(caption, gaussian(words)),
        zoo.similarities.ClosedFormSampledDistance(),
        tokenizer=tokenizer,
    )
    folder = tmp_path_factory.mktemp("run") / "model"
    zoo.save_preset(model, folder)
    return folder


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    (folder / "deep").mkdir(parents=True)
    for name, colour in {
        "a.png": (250, 0, 0),
        "b.png": (0, 250, 0),
        "c.jpg": (0, 0, 250),
        "deep/d.png": (200, 0, 0),
    }.items():
        Image.new("RGB", (12, 10), colour).save(folder / name)
    (folder / "notes.txt").write_text("not an image")
    return folder


def build(run_folder, source, out, *more):
    main(["build", str(source), str(out), "--model", str(run_folder), *more])


def names(printed):
    return [line.split()[-1] for line in printed.strip().splitlines()]


def test_pictures_by_picture_and_by_caption(run_folder, photos, tmp_path, capsys):
    out = tmp_path / "out"
    build(run_folder, photos, out, "--shard-size", "3", "--batch-size", "2")
    assert "4 items, flat" in capsys.readouterr().out
    shards = Collection(out / "embeddings").shards()
    assert [len(shard.arrays["mean"]) for shard in shards] == [3, 1]
    main(["query", str(out), "--image", str(photos / "a.png"), "-k", "3"])
    assert names(capsys.readouterr().out)[:2] == ["a.png", "deep/d.png"]
    main(["query", str(out), "a red bird"])
    printed = capsys.readouterr().out
    assert sorted(names(printed)) == ["a.png", "b.png", "c.jpg", "deep/d.png"]
    model = zoo.from_preset(run_folder)
    index = Index.load(out / "index")
    scores, _ = index.search(model.encode_captions(["a red bird"]), 1)
    assert float(printed.split()[1]) == pytest.approx(scores[0, 0], rel=1e-4)
    with pytest.raises(InputError, match="expected one of a text, --image FILE"):
        main(["query", str(out)])
    (out / "search.json").write_text('{"model": "m", "captions": false}')
    with pytest.raises(InputError, match="an older version built this index; build it again"):
        main(["query", str(out), "a red bird"])


def test_shards_are_indexed_in_parts_of_the_memory_that_a_flag_allows(
    run_folder, photos, tmp_path, capsys, monkeypatch
):
    shards, out = str(tmp_path / "shards"), tmp_path / "out"
    main(["encode", str(photos), shards, "--model", str(run_folder), "--shard-size", "1"])
    assert "4 items in 4 shards, 0 rejected" in capsys.readouterr().out
    monkeypatch.setattr(from_shards, "_BESIDE", 0.0)
    item = from_shards.bytes_an_item(
        Collection(shards).shard(0).arrays, 0, None, "csd", "flat", "images", None
    )["item"]
    memory = f"--memory={2 * item / from_shards.GIB!r}"
    main(["index", shards, str(out), memory])
    there = [path.name for path in sorted((out / "index").iterdir())]
    assert there == [".lock", "part-000", "part-001", "parts.json"]
    capsys.readouterr()
    main(["query", str(out), "--image", str(photos / "a.png"), "-k", "2"])
    assert names(capsys.readouterr().out) == ["a.png", "deep/d.png"]
    with pytest.raises(InputError, match="has no room for a shard of 1 items"):
        main(["index", shards, str(out), "--memory=1e-9"])
    main(["query", str(out), "--image", str(photos / "a.png"), "-k", "1"])  # what was there stays
    assert names(capsys.readouterr().out) == ["a.png"]
    main(["index", shards, str(out)])
    main(["query", str(out), "--image", str(photos / "a.png"), "-k", "1"])
    assert names(capsys.readouterr().out)[-1] == "a.png"


def test_what_is_left_out_is_said(run_folder, photos, tmp_path, capsys):
    for name in ("e.tif", "f.TIF", "g.avif", ".hidden"):
        (photos / name).write_bytes(b"")
    build(run_folder, photos, tmp_path / "out")
    printed = capsys.readouterr().out
    assert "left out 4 files of other kinds: 2 .tif, 1 .avif, 1 .txt" in printed.replace(
        "1 .txt, 1 .avif", "1 .avif, 1 .txt"
    )
    assert "4 items" in printed


def test_a_file_is_no_caption(run_folder, photos, tmp_path, capsys):
    out = tmp_path / "out"
    build(run_folder, photos, out)
    for text in (str(photos / "a.png"), "photo.jpg", str(photos / "notes.txt")):
        with pytest.raises(InputError, match=rf"'{text}' is an image file.*--image {text}"):
            main(["query", str(out), text])
    main(["query", str(out), "a bird like photo.jpg"])
    assert "a.png" in capsys.readouterr().out


def test_commas_without_quotes_are_noticed(run_folder, tmp_path):
    table = tmp_path / "captions.csv"
    table.write_text("number,caption\n1,red\n2,a bird, green\n")
    with pytest.raises(InputError, match=r"captions\.csv:3: expected 2 fields, found 3"):
        build(run_folder, table, tmp_path / "new", "--captions")


def test_captions_from_a_table_and_a_text_file(run_folder, photos, tmp_path, capsys):
    table = tmp_path / "captions.csv"
    table.write_text('caption,other\n"red",1\n"green",2\n"blue, a bird",3\n')
    lines = tmp_path / "captions.txt"
    lines.write_text("red\ngreen\nblue, a bird\n")
    found = []
    for source in (table, lines):
        out = tmp_path / source.suffix[1:]
        build(run_folder, source, out, "--captions", "--similarity", "kl", "--candidates", "3")
        capsys.readouterr()
        main(["query", str(out), "--image", str(photos / "a.png")])
        found.append(capsys.readouterr().out)
    assert found[0] == found[1]
    assert all(caption in found[0] for caption in ("red", "green", "blue, a bird"))
    lines.write_text("red\n\nblue\n")
    with pytest.raises(InputError, match=r"captions\.txt:2: expected text"):
        build(run_folder, lines, tmp_path / "new", "--captions")
    with pytest.raises(InputError, match=r"captions\.csv:1: expected a column 'text'"):
        build(run_folder, table, tmp_path / "new", "--captions", "--column", "text")


def test_images_from_a_table_and_bad_ones(run_folder, photos, tmp_path, capsys):
    table = photos / "list.tsv"
    table.write_text("image\nb.png\ndeep/d.png\n")
    build(run_folder, table, tmp_path / "out", "--kind", "hnsw")
    assert "2 items, hnsw, effort" in capsys.readouterr().out
    (photos / "e.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"e\.png: an empty file"):
        build(run_folder, photos, tmp_path / "second")
    build(run_folder, photos, tmp_path / "second", "--skip-bad")
    assert "4 items" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no image"):
        collection.list_images(tmp_path / "empty")


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """A run with a calibration of captions that find images, certified for half of them."""
    rng = np.random.default_rng(0)
    similarity, uncertainty = rng.normal(-28, 3, size=(400, 4)), rng.normal(size=400)
    correct = similarity.max(axis=1) + rng.normal(0, 9, size=400) > -27
    confidence = Confidence.fit(similarity[:200], correct[:200], uncertainty[:200])
    certified = confidence.certified(similarity[200:], correct[200:], uncertainty[200:], risk=0.4)
    folder = RunFolder.open(tmp_path_factory.mktemp("run") / "run", {}, data={})
    certified.save(folder.calibration_path("t2i"))
    return folder, certified


def test_a_calibration_gives_a_probability_and_declines(
    run_folder, photos, tmp_path, capsys, calibrated
):
    folder, confidence = calibrated
    out = tmp_path / "out"
    build(run_folder, photos, out, "--calibration", str(folder.path))
    assert (out / "calibration.json").read_bytes() == folder.calibration_path("t2i").read_bytes()
    index, model = Index.load(out / "index"), zoo.from_preset(run_folder)
    assert index.moments.count == 4
    assert list((out / "index").glob(f"*/{storage.MOMENTS_FILE}")), "they are not taken again"
    asked = model.encode_captions(["a red bird"])
    paths = [path for path in sorted(photos.rglob("*")) if path.suffix in (".png", ".jpg")]
    gallery = Encoder(model, "images")(*collection.of_items("files", paths, paths)).arrays
    rows = np.asarray(model.similarity(gallery, asked)).T
    (expected,) = confidence.probability(rows, np.asarray(model.uncertainty(asked)))
    first = f"probability {expected:.2f} that the first answer is right"
    for threshold, second in (
        (expected - 1e-3, "   1 "),
        (expected + 1e-3, "declined: its probability is below"),
        (None, "nothing promised: no threshold"),
    ):
        certificate = dataclasses.replace(confidence.certificate, threshold=threshold)
        dataclasses.replace(confidence, certificate=certificate).save(out / "calibration.json")
        capsys.readouterr()
        main(["query", str(out), "a red bird"])
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == first
        assert lines[1].startswith(second)
        assert "a.png" in "".join(lines)
    build(run_folder, photos, out)  # an earlier one is not left behind
    assert not (out / "calibration.json").exists()


def test_the_models_own_calibration_declines_unknown_questions_over_any_photos(
    run_folder, photos, tmp_path, capsys, calibrated
):
    """A gallery of photos alone: what the model knows travels with the model."""
    _, confidence = calibrated
    model, rng = zoo.from_preset(run_folder), np.random.default_rng(0)
    held_out = rng.choice(CAPTIONS[3:], 400)
    facts = query_facts(model, as_arrays(model.encode_captions(held_out)), held_out)
    facts["means"] = facts["means"] + 1e-3 * rng.normal(size=facts["means"].shape)
    known = KnownQueries.fit(facts["means"], **facts)
    gallery = GalleryIdentity.of(rng.normal(size=(4, 6)))
    own = dataclasses.replace(confidence, known=known, gallery=gallery, certificate=None)
    own.save(run_folder / "calibration_t2i.json")
    out = tmp_path / "out"
    try:
        build(run_folder, photos, out)
    finally:
        (run_folder / "calibration_t2i.json").unlink()
    capsys.readouterr()
    main(["query", str(out), "ein rotes Huhn"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("an estimate: calibrated on another gallery: its 4 items are others")
    assert lines[1].startswith(
        "declined: the model does not know such a question: 3 of its 3 words are unknown"
    )
    main(["query", str(out), "a red bird"])
    assert "declined" not in capsys.readouterr().out


def test_calibrations_that_do_not_fit(run_folder, photos, tmp_path, calibrated, capsys):
    folder, _ = calibrated
    with pytest.raises(InputError, match="leave out --similarity"):
        build(run_folder, photos, tmp_path, f"--calibration={folder.path}", "--similarity=csd")
    with pytest.raises(InputError, match="no such run folder"):
        build(run_folder, photos, tmp_path / "a", "--calibration", "nowhere")
    lines = tmp_path / "captions.txt"
    lines.write_text("red\ngreen\n")
    with pytest.raises(InputError, match=r"calibration_i2t\.json: no such calibration"):
        build(run_folder, lines, tmp_path / "a", "--captions", "--calibration", str(folder.path))
    # Of a gallery with more scores than there are here.
    rng = np.random.default_rng(0)
    other = Confidence.fit(rng.normal(size=(60, 30)), np.arange(60) % 2 == 0)
    other.save(folder.calibration_path("i2t"))
    build(run_folder, lines, tmp_path / "b", "--captions", "--calibration", str(folder.path))
    capsys.readouterr()
    main(["query", str(tmp_path / "b"), "--image", str(photos / "a.png")])
    printed = capsys.readouterr().out
    assert printed.startswith("no probability: the features rank_5_minus_mean")
    assert "red" in printed
