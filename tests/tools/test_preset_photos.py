"""What trains the presets of photos, and that pages show the kept figures."""

import csv
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

import zoo
from halo_search.confidence.probes import contents_hash
from halo_search.photos import FOLDER
from tiny_sentence import BLOCKS, LENGTH, random_weights, write_checkpoint
from tools import figures, preset_photos, preset_text, preset_vectors
from zoo import encoders
from zoo.data import read_bert_tokenizer
from zoo.data.records import Records
from zoo.data.records.sources import Features, Split
from zoo.evaluation import probes_of


def test_the_table_holds_no_photo_that_is_shown(shared_data, tmp_path):
    preset_photos.write_table(shared_data, tmp_path)
    with open(tmp_path / "pairs.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    shown = {path.name for path in FOLDER.glob("*.jpg")}
    assert len(shown) == 170
    of_coco = [row for row in rows if row["image"].startswith("coco/")]
    assert not {row["image"].removeprefix("coco/") for row in of_coco} & shown
    assert len({row["image"] for row in of_coco}) == 569 - 170
    assert {row["split"] for row in of_coco} == {"train"}
    assert all((tmp_path / row["image"]).is_file() for row in of_coco[::50])
    held_out = {row["image"] for row in rows if row["split"] != "train"}
    assert len(held_out) == 2000
    assert not held_out & {row["image"] for row in rows if row["split"] == "train"}


@pytest.mark.parametrize("name", preset_photos.NAMES)
def test_the_preset_remembers_none_that_is_shown(name, shared_data):
    if name not in zoo.list_presets():
        pytest.skip(f"the preset {name} is not in this checkout")
    trained_on = probes_of(name).trained_on
    assert len(trained_on) > 5900  # of 5,990, some of which are the same
    shown = sorted(FOLDER.glob("*.jpg"))
    originals = [shared_data / "coco_subset" / "images" / path.name for path in shown]
    found = np.array([contents_hash(path) for path in [*shown, *originals]], np.uint64)
    assert not np.isin(found, trained_on).any()


def test_captions_of_coco_come_several_times(tmp_path):
    records = Records(
        name="both",
        image_paths=["flickr8k/a.jpg", f"{tmp_path}/coco/b.jpg"],
        captions=["a dog", "a bus", "a red bus"],
        caption_image=[0, 1, 1],
        image_labels=[0, 1],
        image_ids=[0, 1],
        caption_vectors=Features(np.arange(6.0).reshape(3, 2)),
    )
    started = SimpleNamespace(train=Split(records, None))
    preset_vectors.repeat(started, tmp_path / "coco")
    found = started.train.records
    assert found.captions.tolist() == ["a dog", *["a bus", "a red bus"] * preset_vectors.COCO_TIMES]
    assert found.caption_vectors.gather(np.array([0, 3, 4])).numpy().tolist() == [
        [0, 1],
        [2, 3],
        [4, 5],
    ]


def test_maps_of_several_seeds_are_averaged_from_one_start(monkeypatch, tmp_path):
    own_pairs = preset_vectors.recipe()
    start, settings = own_pairs.own_pairs_start, own_pairs.Settings(dim=3, out=tmp_path)

    def points(width):
        inputs = keras.Input((width,))
        network = keras.Model(inputs, keras.layers.Identity()(inputs), name="backbone")
        return own_pairs.build(settings, network, network, None)

    def trained(heads, train, ids, seed, **schedule):
        for weight in start.maps(heads):
            weight.assign_add(np.full(weight.shape, float(seed)))

    preset = points(4)
    started = SimpleNamespace(reader=lambda model: model, train=None, validation=None)
    monkeypatch.setattr(preset_vectors, "from_preset", lambda name: preset)
    monkeypatch.setattr(preset_vectors, "of_vectors", lambda *_: started)
    monkeypatch.setattr(preset_vectors.preset_text, "fit", trained)
    monkeypatch.setattr(start, "recalls", lambda *_: {})
    options = SimpleNamespace(text_weights="photos_pfe", heads=[1, 2, 6], text=False)
    found = preset_vectors.averaged(settings, None, options)
    for weight, was in zip(start.maps(found), start.maps(preset), strict=True):
        np.testing.assert_allclose(weight, was + 3.0, rtol=1e-6)
    assert found.image_encoder.get_layer("dropout").rate == 0


def test_any_view_of_a_picture_is_read():
    vectors = np.arange(6.0)[:, None] + np.array([0.0, 10.0])
    source = preset_vectors.AnyView(vectors, 2, seed=0)
    rows = [source.gather(tf.constant([1, 0])).numpy()[:, 0] for _ in range(40)]
    assert {row[0] for row in rows} == {1, 3, 5}
    assert {row[1] for row in rows} == {0, 2, 4}
    assert source.count == 2


TEXTS = ["a red bird", "dogs on a bird", "dog", "a bird"]


@pytest.mark.very_slow
def test_the_upper_blocks_alone_are_trained_at_a_smaller_rate(monkeypatch, tmp_path):
    checkpoint = write_checkpoint(tmp_path, random_weights())
    sentences = encoders.sentences(checkpoint, LENGTH)
    pictures = keras.Input((4,))
    pictures = keras.Model(pictures, keras.layers.Identity()(pictures), name="backbone")
    own_pairs = preset_vectors.recipe()
    settings = own_pairs.Settings(dim=3, out=tmp_path / "run")
    tokenizer = read_bert_tokenizer(checkpoint, LENGTH)
    model = own_pairs.build(settings, pictures, sentences, tokenizer)
    rng = np.random.default_rng(0)
    records = Records(
        name="four",
        image_paths=list("abcd"),
        captions=TEXTS,
        caption_image=range(4),
        image_labels=range(4),
        image_ids=range(4),
        caption_vectors=Features(rng.normal(size=(4, sentences.output["pooled"].shape[-1]))),
    )
    train = Split(records, Features(rng.normal(size=(4, 4)).astype(np.float32)))
    optimizers, made = [], preset_text.training.LayerwiseAdamW

    def adam(*args, **options):
        optimizers.append(SimpleNamespace(rates=options["rates"]))
        return made(*args, **options)

    monkeypatch.setattr(preset_text.training, "LayerwiseAdamW", adam)
    for name, value in {"BLOCKS": 1, "BATCH": 2, "GROUP": 2}.items():
        monkeypatch.setattr(preset_text, name, value)
    for name in ("HEADS", "TEXT"):
        monkeypatch.setitem(getattr(preset_text, name), "epochs", 1)
    found = preset_text.trained_through(model, train, 0)
    before, after = sentences.weights, found.weights
    changed = [not np.array_equal(old, new) for old, new in zip(before, after, strict=True)]
    upper = [f"block_{BLOCKS - 1}/" in weight.path for weight in after]
    assert sum(changed) > 1
    assert not np.any(np.array(changed) & ~np.array(upper))
    assert optimizers[0].rates == {}
    assert set(optimizers[1].rates.values()) == {preset_text.OF_BLOCKS}
    assert not found.trainable_weights


def test_pages_and_cards_are_those_of_the_kept_results():
    for path, text in figures.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run `make figures`"
