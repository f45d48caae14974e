"""`halo search`: folder or table in, index out, and resumption."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import zoo
from colour_model import colour_gaussians
from halo_search.cli.search import main
from halo_search.collection import Collection, encoding
from halo_search.confidence import Probes
from halo_search.confidence.probes import contents_hash
from halo_search.embeddings.arrays import as_arrays
from halo_search.errors import InputError
from halo_search.index import Hub, Index, built, storage
from halo_search.retriever import Retriever
from zoo.models.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("packaged_once", "without_towers")

CAPTIONS = ["red", "green", "blue", "a red bird", "a green bird"]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """Of a model whose embedding of a picture is its mean colour."""
    folder = tmp_path_factory.mktemp("run") / "model"
    zoo.save_preset(colour_gaussians(CAPTIONS, kernel="zeros"), folder)
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
    """Of the results, which follow the verdict."""
    return [line.split()[-1] for line in printed.strip().splitlines()[1:]]


def test_pictures_by_picture_and_by_caption(run_folder, photos, tmp_path, capsys):
    out = tmp_path / "out"
    build(run_folder, photos, out, "--shard-size", "3", "--batch-size", "2")
    assert "4 items" in capsys.readouterr().out
    parts = Collection(out / "embeddings").read()
    assert [len(part.arrays["mean"]) for _, part in parts] == [3, 1]
    main(["query", str(out), "--image", str(photos / "a.png"), "-k", "3"])
    assert names(capsys.readouterr().out)[:2] == ["a.png", "deep/d.png"]
    main(["query", str(out), "a red bird"])
    printed = capsys.readouterr().out
    assert sorted(names(printed)) == ["a.png", "b.png", "c.jpg", "deep/d.png"]
    (tmp_path / "some.txt").write_text("b.png\n0\n")
    for among, some in (("[bd]*g", ["b.png", "deep/d.png"]), ("some.txt", ["a.png", "b.png"])):
        among = str(tmp_path / among) if among.endswith("txt") else among
        main(["query", str(out), "a red bird", "--among", among])
        assert sorted(names(capsys.readouterr().out)) == some
    for among in ("2019/*", str(tmp_path / "none.txt")):
        with pytest.raises(
            InputError, match=r"--among .* must be a pattern of names; .* fits none"
        ):
            main(["query", str(out), "a red bird", "--among", among])
    model = zoo.from_preset(run_folder)
    index = Index.load(out / "index")
    scores, _ = index.search(model.encode_captions(["a red bird"]), 1)
    assert float(printed.splitlines()[1].split()[1]) == pytest.approx(scores[0, 0], rel=1e-4)
    with pytest.raises(
        InputError, match="expected texts, --image FILE, --vector FILE or --queries"
    ):
        main(["query", str(out)])
    (out / "search.json").write_text('{"model": "m", "captions": false}')
    with pytest.raises(InputError, match="an older version did; choose another"):
        main(["query", str(out), "a red bird"])


def test_an_interrupted_build_resumes_with_the_next_part(run_folder, photos, tmp_path, monkeypatch):
    encode_items, asked = encoding.encode_items, []

    def encode_first(tower, items, advance):
        asked.append(list(items.names))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return encode_items(tower, items, advance)

    monkeypatch.setattr(encoding, "encode_items", encode_first)
    with pytest.raises(KeyboardInterrupt):
        build(run_folder, photos, tmp_path / "out", "--shard-size", "2")
    with pytest.raises(InputError, match="run it again to resume"):
        main(["query", str(tmp_path / "out"), "a red bird"])
    build(run_folder, photos, tmp_path / "out", "--shard-size", "2")
    assert asked == [["a.png", "b.png"], ["c.jpg", "deep/d.png"], ["c.jpg", "deep/d.png"]]
    found = Retriever.load(tmp_path / "out").ask("a red bird", k=4).names
    build(run_folder, photos, tmp_path / "at once")
    assert Retriever.load(tmp_path / "at once").ask("a red bird", k=4).names == found


def test_a_packaged_model_encodes_without_keras(tmp_path, monkeypatch):
    monkeypatch.setattr("halo_search.retriever.gallery_model.keras_models", pytest.fail)
    (tmp_path / "captions.txt").write_text("red\ngreen\n")
    paths = [str(tmp_path / name) for name in ("captions.txt", "parts")]
    main(["encode", *paths, "--model", "photos_pfe", "--captions"])
    assert Collection(tmp_path / "parts").whole().names == ["red", "green"]


def test_a_text_is_a_question_even_where_a_file_has_its_name(
    run_folder, photos, tmp_path, capsys, monkeypatch
):
    out = tmp_path / "out"
    build(run_folder, photos, out)
    for text in (str(photos / "a.png"), "photo.jpg"):
        with pytest.raises(InputError, match=rf"'{text}' is the name of a picture.*--image FILE"):
            main(["query", str(out), text])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bird").write_bytes(b"a file")
    for text in ("a bird like photo.jpg", "bird"):
        main(["query", str(out), text])
        assert "a.png" in capsys.readouterr().out
    retriever = zoo.Retriever.load(out)
    for missing in ("photos/nothere.jpg", " NOTHERE.PNG "):
        with pytest.raises(ValueError, match=r"is the name of a picture.*pathlib\.Path"):
            retriever.ask(missing)
    with pytest.raises(InputError, match="nothere"):
        retriever.ask(Path("photos/nothere.jpg"))


def test_a_strangers_names_reach_no_terminal_as_they_are(run_folder, photos, tmp_path, capsys):
    out = tmp_path / "out"
    build(run_folder, photos, out)
    built.write_names(out / "index", {n: f"\x1b]0;{n}\x07\u202e.png" for n in range(4)})
    written = built.Written(out, built.SETUP)
    built.commit(written, written.content)  # with another checksum
    capsys.readouterr()
    main(["query", str(out), "a red bird"])
    printed = capsys.readouterr().out
    assert printed.count("\\x1b]0;") == 4
    assert printed.replace("\n", "").isprintable()


def test_words_without_quotes_are_one_question(run_folder, photos, tmp_path, capsys):
    out = tmp_path / "out"
    build(run_folder, photos, out)
    capsys.readouterr()
    main(["query", str(out), "a red bird", "--json"])
    expected = capsys.readouterr().out
    main(["query", str(out), "a", "red", "bird", "--json"])
    said = capsys.readouterr()
    assert said.out == expected
    assert said.err.startswith("asked as one question: 'a red bird'; ")
    main(["query", str(out), "a red", "bird", "--json"])
    said = capsys.readouterr()
    assert (said.out.count("\n"), said.err) == (2, "")


def test_a_model_named_by_a_relative_path_is_found_from_elsewhere(
    run_folder, photos, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(run_folder.parent)
    build(run_folder.name, photos, tmp_path / "out")
    zoo.Retriever.build(run_folder.name, photos).save(tmp_path / "saved")
    monkeypatch.chdir(tmp_path)
    for folder in ("out", "saved"):
        main(["query", folder, "a bird"])
        assert "a.png" in capsys.readouterr().out
        setup = json.loads((tmp_path / folder / "search.json").read_text())
        assert setup["model"] == str(run_folder.resolve())


def test_captions_from_a_table_and_a_text_file(run_folder, photos, tmp_path, capsys):
    table = tmp_path / "captions.csv"
    table.write_text('caption,other\n"red",1\n"green",2\n"blue, a bird",3\n')
    lines = tmp_path / "captions.txt"
    lines.write_text("red\ngreen\nblue, a bird\n")
    for source in (table, lines):
        out = tmp_path / source.suffix[1:]
        build(run_folder, source, out, "--captions", "--similarity", "kl", "--candidates", "3")
        main(["query", str(out), "--image", str(photos / "a.png")])
        assert {"red", "green", "bird"} == set(names(capsys.readouterr().out)[-3:])
        assert zoo.Retriever.load(out).side == "captions"
    lines.write_text("red\n\nblue\n")
    with pytest.raises(InputError, match=r"captions\.txt:2: expected text"):
        build(run_folder, lines, tmp_path / "new", "--captions")
    with pytest.raises(InputError, match=r"captions\.csv:1: expected a column 'text'"):
        build(run_folder, table, tmp_path / "new", "--captions", "--column", "text")


@pytest.mark.parametrize("command", ["encode", "build"])
@pytest.mark.parametrize(
    ("source", "said"),
    [("empty", "holds no image"), ("list.csv", "a column 'image'"), ("v.npy", "all zeros")],
)
def test_a_source_is_looked_at_before_keras_is_imported(
    command, source, said, tmp_path, monkeypatch
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "list.csv").write_text("photo\nb.png\n")
    np.save(tmp_path / "v.npy", np.zeros((3, 4), "f4"))
    monkeypatch.setattr("halo_search.retriever.gallery_model.keras_models", pytest.fail)
    with pytest.raises(InputError, match=said):
        main([command, str(tmp_path / source), str(tmp_path / "out"), "--model", "photos_pfe"])


def pairs(model, seed=0, count=120, dim=None):
    """Probes of a model: captions, and images near them; three words are all it knows."""
    rng = np.random.default_rng(seed)
    texts = list(rng.choice(CAPTIONS[3:], count))
    captions = as_arrays(model.encode_captions(texts))
    captions["mean"] = captions["mean"] + 0.5 * rng.normal(size=captions["mean"].shape)
    images = {**captions, "mean": captions["mean"] + rng.normal(size=captions["mean"].shape)}
    if dim is not None:
        images, captions = (
            {name: np.pad(x, ((0, 0), (0, dim))) for name, x in side.items()}
            for side in (images, captions)
        )
    own = np.arange(count)
    return Probes.of(images, captions, own, own, own, measure=model.uncertainty_measure)


@pytest.fixture(scope="module")
def probed(run_folder, tmp_path_factory):
    """A run with probes and nothing else."""
    folder = RunFolder.open(tmp_path_factory.mktemp("run") / "run", {}, data={})
    pairs(zoo.from_preset(run_folder)).save(folder.probes_path)
    return folder


def test_probes_give_a_probability_a_verdict_and_a_reason(
    run_folder, photos, tmp_path, capsys, probed
):
    out = tmp_path / "out"
    build(run_folder, photos, out, "--probes", str(probed.path))
    assert "calibrated by 120 probes" in capsys.readouterr().out
    assert (out / "index" / "calibration.json").is_file()
    assert list((out / "index").glob(f"*/{storage.MOMENTS_FILE}")), "they are not taken again"
    answer = zoo.Retriever.load(out).ask("a red bird", k=3)
    main(["query", str(out), "a red bird", "-k", "3"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(answer).splitlines()[0]
    assert [line.split()[-1] for line in lines[1:]] == answer.names
    main(["query", str(out), "a red bird", "a green bird", "-k", "1"])
    both = capsys.readouterr().out.splitlines()  # of several each is named before its answer
    assert both[:3] == ["a red bird", *lines[:2]]
    assert both[3] == "a green bird"
    main(["query", str(out), "a red bird", "a green bird", "-k", "3", "--json"])
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    expected = answer.to_dict()
    assert first.pop("wanted") == pytest.approx(expected.pop("wanted"))
    assert first.pop("scores") == pytest.approx(expected.pop("scores"))
    assert first == expected
    assert second["question"] == "a green bird"
    asked = tmp_path / "asked.txt"
    asked.write_text("a red bird\na green bird\n")
    main(["query", str(out), "--queries", str(asked), "-k", "3", "--json"])
    found = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert [one["ids"] for one in found] == [first["ids"], second["ids"]]


def test_probes_that_do_not_fit(run_folder, photos, tmp_path, probed, capsys):
    with pytest.raises(InputError, match="nowhere: no such run folder or preset"):
        build(run_folder, photos, tmp_path / "a", "--probes", "nowhere")
    empty = RunFolder.open(tmp_path / "empty", {}, data={})
    with pytest.raises(InputError, match="has no probes; the run's metrics"):
        build(run_folder, photos, tmp_path / "a", "--probes", str(empty.path))
    wide = RunFolder.open(tmp_path / "wide", {}, data={})
    pairs(zoo.from_preset(run_folder), dim=2).save(wide.probes_path)
    build(run_folder, photos, tmp_path / "b", "--probes", str(wide.path))
    assert re.search("not calibrated: .*dimension", capsys.readouterr().out)
    main(["query", str(tmp_path / "b"), "a red bird"])
    assert capsys.readouterr().out.startswith("unsure (no probability): ")


def test_probes_of_another_preset_are_refused_and_the_gallery_answers(photos, tmp_path, capsys):
    """They bring captioned photos and what is usual of questions, in another model's space."""
    out = tmp_path / "out"
    words = ["--model", "toy_birds_pfe", "--probes", "photos_pfe", "--include-training"]
    main(["build", str(photos), str(out), *words])
    assert re.search("not calibrated: .*dimension", capsys.readouterr().out)
    main(["query", str(out), "a red bird"])
    assert capsys.readouterr().out.startswith("unsure (no probability): ")


def test_photos_of_the_training_are_named(run_folder, photos, tmp_path, capsys, probed):
    paths = [path for path in sorted(photos.rglob("*")) if path.suffix in (".png", ".jpg")]
    seen = np.sort(np.array([contents_hash(path) for path in paths[:3]], np.uint64))
    own = RunFolder.open(tmp_path / "run", {}, data={})
    probes = Probes.load(probed.probes_path)
    dataclasses.replace(probes, trained_on=seen).save(own.probes_path)
    with pytest.raises(InputError, match=r"3 of 4 photos were trained on: .* --include-training"):
        build(run_folder, photos, tmp_path / "out", "--probes", str(own.path))
    build(run_folder, photos, tmp_path / "out", "--probes", str(own.path), "--include-training")
    assert "4 items" in capsys.readouterr().out


def test_hubs_are_named(run_folder, photos, tmp_path, capsys, monkeypatch):
    hub = Hub(1, 0.9, 10)  # b.png
    monkeypatch.setattr("halo_search.retriever.hubs.probed_hubs", lambda *_: [hub])
    said = "b.png is among the first 10 answers of 90% of the probes' questions"
    build(run_folder, photos, tmp_path / "out")
    assert f"warning: {said}" in capsys.readouterr().out
