"""Photos and captions of one's own by two frozen networks, from the table to the verdict."""

import contextlib
import io
from types import SimpleNamespace
from unittest.mock import MagicMock

import keras
import numpy as np
import pytest
from PIL import Image

import halo_search.presets
import own_pairs
import own_pairs_next
import own_pairs_start
import zoo
from demo import sources
from demo.service import Service
from halo_search.errors import InputError
from halo_search.retriever import VERDICTS
from tiny_sentence import random_weights, write_checkpoint
from zoo import cli
from zoo.data.records.features import caption_vectors, pooled_vectors
from zoo.encoders.sentence import text_folder
from zoo.models.run_folder import RunFolder


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HALO_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("weights") / "minilm", random_weights())


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Red, green and blue squares; the caption names the colour."""
    folder = tmp_path_factory.mktemp("album") / "photos"
    folder.mkdir()
    rng, rows = np.random.default_rng(0), ["image,caption"]
    for index in range(40):
        pixels = rng.integers(0, 60, (40, 50, 3), dtype=np.uint8)
        pixels[..., index % 3] += 150
        Image.fromarray(pixels).save(folder / f"{index}.png")
        words = ("a red bird", "dogs on", "a dog on birds")[index % 3]
        rows.append(f"{index}.png,{words}" + " a" * (index // 3 % 4))
    (folder / "pairs.csv").write_text("\n".join(rows))
    return folder


def flags_of(photos, minilm, out, *more):
    flags = [f"--data-dir={photos}", f"--text-weights={minilm}", f"--out={out}"]
    small = ["--backbone=tiny", "--image-size=16", "--dim=8", "--max-words=8", "--batch-size=16"]
    few = ["--epochs=1", "--least-steps=4", "--variance-epochs=1", "--held-out-share=0.2"]
    return [*flags, *small, *few, *more]


def run_of(*given):
    return own_pairs.main(flags_of(*given))


@pytest.fixture(scope="module")
def finished(photos, minilm, tmp_path_factory):
    """A run with an epoch of variances: its folder, its results and what it printed."""
    out = tmp_path_factory.mktemp("runs") / "run"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        results = run_of(photos, minilm, out)
    return out, results, printed.getvalue()


@pytest.fixture(scope="module")
def model(finished):
    return zoo.from_preset(finished[0])


def test_the_networks_stay_and_their_vectors_are_trained_on(
    finished, model, photos, minilm, tmp_path
):
    out, results, printed = finished
    assert "times chance" in printed
    assert f"halo search build OTHER_PHOTOS {out}/index --model {out}" in printed
    fresh = zoo.encoders.sentences(minilm, 8)
    backbone = model.caption_encoder.get_layer("backbone")
    for one, other in zip(backbone.get_weights(), fresh.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    # The whole model, of pixels and strings, gives what was measured on stored vectors.
    split = zoo.data.open(RunFolder.existing(out).data, "test")
    encoded = zoo.evaluation.encode(model, split.records, split.source)
    found = zoo.evaluation.evaluate(model, encoded, ("own",))["retrieval"]["csd"]
    assert found["rsum"] == pytest.approx(results["retrieval"]["csd"]["rsum"], abs=1.0)
    assert RunFolder.existing(out).probes_path.is_file()
    # `halo demo RUN --photos DIR` answers, whatever it thinks of so small a run.
    gallery = sources.load(out, folder=photos, cache=tmp_path / "cache")
    answer = Service(gallery).find_images("a red bird")
    assert answer["verdict"] in VERDICTS
    assert answer["results"]
    assert set(results) >= {"cpu_seconds_encoding", "cpu_seconds_training"}


@pytest.mark.parametrize("learnt_here", [False, pytest.param(True, marks=pytest.mark.very_slow)])
def test_the_better_of_the_preset_s_maps_and_those_learnt_is_kept(finished, learnt_here):
    out, model = finished[0], zoo.from_preset(finished[0])
    data = RunFolder.existing(out).data
    splits = [own_pairs.stored(zoo.data.open(data, name), model) for name in ("train", "test")]
    run = zoo.training.Run(RunFolder.existing(out))
    run.read_features(*splits, splits[1])
    preset, rng = zoo.from_preset(out), np.random.default_rng(0)
    for weight in own_pairs_start.maps(preset if learnt_here else model):
        weight.assign(rng.uniform(0.1, 1, weight.shape))
    best = own_pairs_start.recalls(run.reader(zoo.from_preset(out)), splits[1])
    own_pairs_start.keep_best_mean(run, run.reader(model), preset)
    found = own_pairs_start.recalls(run.reader(model), splits[1])
    assert sum(found.values()) >= sum(best.values())


@pytest.mark.very_slow
def test_where_nothing_is_learnt_the_run_is_the_preset(
    finished, photos, minilm, tmp_path, monkeypatch
):
    preset = zoo.from_preset(finished[0])
    for weight in own_pairs_start.maps(preset, own_pairs_start.VARIANCES):
        weight.assign(np.random.default_rng(0).normal(-4, 1, weight.shape))
    towers = (preset.image_encoder, preset.caption_encoder)
    networks = [tower.get_layer("backbone") for tower in towers]
    given = preset, *networks, preset.tokenizer
    monkeypatch.setattr(own_pairs, "frozen_networks", lambda settings: given)
    monkeypatch.setattr(own_pairs_start, "SHARES", (0.0,))
    results = run_of(photos, minilm, tmp_path / "run")
    own = zoo.from_preset(tmp_path / "run")
    for one, other in zip(own.get_weights(), preset.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert results["retrieval"]["csd"]["t2i_recall@1"] == results["preset_recall@1"]


def test_the_recall_of_the_preset_stands_beside_the_runs(monkeypatch):
    run = MagicMock(finished=False, replicas=contextlib.nullcontext)
    preset = object()
    monkeypatch.setattr(own_pairs.training, "start", lambda *_: run)
    monkeypatch.setattr(own_pairs, "frozen_networks", lambda _: (preset, None, None, None))
    for name in ("build", "stored", "train_phases", "models"):
        monkeypatch.setattr(own_pairs, name, MagicMock())
    monkeypatch.setattr(own_pairs_start, "begin", lambda *_: True)
    measured = []

    def finish(run, measure_more, **how):
        measured.append(measure_more(run, None))

    monkeypatch.setattr(own_pairs.training, "finish", finish)
    settings = cli.parse(own_pairs.Settings, ["--data-dir=photos"])
    for recall in (12.5, None):  # None where the preset has seen one of the photos
        monkeypatch.setattr(own_pairs_start, "recall", lambda *_, found=recall: found)
        own_pairs.train_and_evaluate(settings, {})
    assert [one.get("preset_recall@1", "unknown") for one in measured] == [12.5, "unknown"]


@pytest.mark.parametrize(("there", "expected"), [(True, "of the preset"), (False, "of ImageNet")])
def test_beside_words_of_ones_own_the_preset_reads_the_pictures(
    there, expected, minilm, monkeypatch
):
    encoder = SimpleNamespace(get_layer=lambda name: "of the preset")
    preset = SimpleNamespace(image_encoder=encoder)
    names = [own_pairs_start.PRESET] if there else []
    monkeypatch.setattr(own_pairs.presets, "list_presets", lambda: names)
    monkeypatch.setattr(own_pairs_start, "packaged", lambda settings: preset)
    monkeypatch.setattr(own_pairs, "image_network_of", lambda settings: "of ImageNet")
    flags = ["--data-dir=photos", f"--text-weights={minilm}", "--max-words=8"]
    found, image_network, *_ = own_pairs.frozen_networks(cli.parse(own_pairs.Settings, flags))
    assert found is None
    assert image_network == expected


def test_variances_are_of_a_model_of_pictures_and_words(monkeypatch):
    expected = []
    tower = SimpleNamespace(expect=expected.append, resizing=("crop", 1.0), image_size=16)
    model = SimpleNamespace(tower=lambda side: tower, keras="a model")
    monkeypatch.setattr(own_pairs, "KerasModel", SimpleNamespace(of=lambda name: model))
    monkeypatch.setattr(own_pairs, "frozen_points", lambda keras: f"the points of {keras}")
    settings = cli.parse(own_pairs.Settings, ["--data-dir=photos", "--model=mine"])
    assert own_pairs.with_points_of_model(settings)[1] == "the points of a model"
    assert expected == ["pictures", "texts"]


@pytest.mark.usefixtures("one_eagerly")
def test_captions_of_all_lengths_have_the_vectors_that_padding_gives(minilm, tmp_path):
    tokenizer = zoo.data.read_bert_tokenizer(minilm, 10)
    backbone = zoo.encoders.sentences(minilm, 10)
    texts = ["a red bird", "dog", "", "a red bird", "a dog on a red bird on a dog on a bird"]
    found = caption_vectors(tmp_path, backbone, tokenizer, texts)
    expected = np.asarray(backbone(np.asarray(tokenizer(texts)))["pooled"])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    ids = np.asarray(tokenizer(texts)).astype(np.int64)  # as texts that are made up have them
    np.testing.assert_allclose(pooled_vectors(backbone, ids), expected, atol=1e-5)
    (file,) = tmp_path.glob("captions-*.npy")
    assert len(np.load(file)) == 4, "what is there twice is encoded once"


def test_without_the_preset_a_sentence_says_what_to_give(photos, tmp_path, error_of, monkeypatch):
    monkeypatch.setattr(halo_search.presets, "folders", dict)
    said = error_of(cli.run, own_pairs.main, [f"--data-dir={photos}", f"--out={tmp_path / 'run'}"])
    assert "'photos_pfe' is not packaged here; give --text-weights" in said


def test_a_name_is_fetched_once(minilm, tmp_path, monkeypatch):
    asked = []

    def get_file(name, origin, cache_dir, cache_subdir):
        asked.append(origin)
        if "1_Pooling" in origin:
            raise Exception(f"URL fetch failure on {origin}: 404 -- Not Found")
        (cache_dir / cache_subdir / name).write_bytes((minilm / name).read_bytes())

    monkeypatch.setattr(keras.utils, "get_file", get_file)
    folder = text_folder("tiny-v1.5")
    assert zoo.encoders.sentences(folder, 8).output["pooled"].shape == (None, 8)
    assert all("/sentence-transformers/tiny-v1.5/resolve/main/" in one for one in asked)

    def offline(*args, **kwargs):
        raise Exception("URL fetch failure: no network")

    monkeypatch.setattr(keras.utils, "get_file", offline)
    with pytest.raises(InputError, match=r"other: no such folder, and .*could not be fetched"):
        text_folder("other")
    assert text_folder("tiny-v1.5") == folder, "nothing is asked for again"
    assert text_folder(tmp_path / "nowhere") == tmp_path / "nowhere"


def test_a_table_with_semicolons_and_names_of_its_own(photos, tmp_path):
    text = (photos / "pairs.csv").read_text().replace("image,caption", "file,text")
    (tmp_path / "pairs.csv").write_text(text.replace(",", ";"))
    flags = ["--image-column=file", "--caption-column=text", "--separator=;"]
    flags += [f"--data-dir={tmp_path}", f"--image-dir={photos}"]
    described = own_pairs.describe_data(cli.parse(own_pairs.Settings, flags))
    assert zoo.data.open({**described, "image_size": 16}, "train").records.num_images == 32
    plain = own_pairs.describe_data(cli.parse(own_pairs.Settings, [f"--data-dir={photos}"]))
    assert "separator" not in plain


@pytest.mark.parametrize(
    ("nauc", "interval", "kind", "said"),
    [
        (0.4, [0.3, 0.5], "informative", "is informative (nAUC 0.40 [0.30, 0.50]): decline by it"),
        (None, [None, None], "undefined", "nothing can be said"),
    ],
)
def test_no_verdict_without_its_interval(nauc, interval, kind, said):
    own = {"i2t_queries": 200, "i2t_recall@1": 20.0, "rsum": 180.0}
    found = {"nauc": nauc, "nauc_interval": interval, "verdict": kind}
    results = {
        "retrieval": {"csd": own},
        "chance": {"rsum": 30.0},
        "confidence": {"i2t": found, "t2i": {"why_not": "no query has a match"}},
    }
    rsum, first, second = own_pairs_next.verdicts(results)
    assert "6.0 times chance" in rsum
    assert said in first
    assert second == "Text to image: no confidence: no query has a match."
