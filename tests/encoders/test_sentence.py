"""Sentences by tiny random checkpoints, beside BERT's forward pass in NumPy."""

import json
import shutil

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from export.signatures import Signatures
from halo_search.errors import InputError
from tiny_sentence import (
    BLOCKS,
    HEADS,
    INNER,
    LENGTH,
    PIECES,
    WIDTH,
    bert_states,
    random_weights,
    write_checkpoint,
)
from zoo import encoders, losses, models, similarities
from zoo.data import captions, read_bert_tokenizer
from zoo.encoders import bert, point_towers

TEXTS = ["a red bird", "dogs on a bird", "dog", "a a a a a a a a a"]


def tower_of(checkpoint, trainable_blocks=0):
    backbone = encoders.sentences(checkpoint, LENGTH, trainable_blocks=trainable_blocks)
    return encoders.sentence_caption_encoder(backbone, 4)


@pytest.fixture(scope="module")
def weights():
    return random_weights()


@pytest.fixture(scope="module")
def checkpoint(weights, tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("minilm"), weights)


@pytest.fixture(scope="module")
def ids(checkpoint):
    return np.asarray(captions.token_ids(read_bert_tokenizer(checkpoint, LENGTH), TEXTS))


def with_file(checkpoint, folder, name, value):
    shutil.copytree(checkpoint, folder, dirs_exist_ok=True)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(value))
    return folder


def test_sentences_equal_a_reference_with_padding_and_alone(checkpoint, weights, ids):
    assert (ids[2] == 0).any()
    assert (ids[3] != 0).all()
    states = [bert_states(weights, row[row != 0]) for row in ids]
    for pooling, expected in (
        ("mean", [rows.mean(0) for rows in states]),
        ("first", [rows[0] for rows in states]),
    ):
        backbone = encoders.sentences(checkpoint, LENGTH, pooling)
        np.testing.assert_allclose(backbone(ids)["pooled"], expected, atol=1e-4)
        for row, alone in zip(ids, expected, strict=True):
            np.testing.assert_allclose(backbone(row[None])["pooled"][0], alone, atol=1e-4)


def test_the_folder_says_how_tokens_are_pooled(checkpoint, ids, tmp_path):
    def pooled(folder, **options):
        return np.asarray(encoders.sentences(folder, LENGTH, **options)(ids)["pooled"])

    name, mean, first = (
        "1_Pooling/config.json",
        "pooling_mode_mean_tokens",
        "pooling_mode_cls_token",
    )
    np.testing.assert_array_equal(pooled(checkpoint), pooled(checkpoint, pooling="mean"))
    folder = with_file(checkpoint, tmp_path / "cls", name, {first: True, mean: False})
    np.testing.assert_array_equal(pooled(folder), pooled(checkpoint, pooling="first"))
    np.testing.assert_array_equal(pooled(folder, pooling="mean"), pooled(checkpoint))
    for stored in ({first: True, mean: True}, {"pooling_mode_max_tokens": True}, {}):
        folder = with_file(checkpoint, tmp_path / "other", name, stored)
        with pytest.raises(InputError, match="expected one of pooling_mode_mean_tokens, pooling"):
            encoders.sentences(folder, LENGTH)


def test_a_frozen_sentence_is_the_same_in_training_and_only_the_head_is_trained(checkpoint, ids):
    frozen = tower_of(checkpoint)
    assert [variable.path for variable in frozen.trainable_variables] == [
        "embedding/kernel",
        "embedding/bias",
    ]
    np.testing.assert_array_equal(frozen(ids, training=True)["mean"], frozen(ids)["mean"])
    np.testing.assert_allclose(np.linalg.norm(frozen(ids)["mean"], axis=1), 1, rtol=1e-5)
    # A head that is trained on stored vectors is this tower's head.
    stored = frozen.get_layer("backbone")(ids)["pooled"]
    head = encoders.sentence_caption_encoder(encoders.vectors(WIDTH), 4)
    frozen.get_layer("embedding").set_weights(head.get_layer("embedding").get_weights())
    np.testing.assert_allclose(frozen(ids)["mean"], head(stored)["mean"], atol=1e-6)


def test_the_last_blocks_are_trained_where_they_are_to_be(checkpoint, ids, tmp_path):
    frozen = tower_of(checkpoint)
    for count in range(BLOCKS + 1):
        tower = tower_of(checkpoint, count)
        assert len(tower.trainable_variables) == 2 + 16 * count
        tower.get_layer("embedding").set_weights(frozen.get_layer("embedding").get_weights())
        np.testing.assert_allclose(tower(ids)["mean"], frozen(ids)["mean"], atol=1e-6)
        if count != 1:  # all or none is what any tower keeps
            continue
        tower.save(tmp_path / "tower.keras")
        loaded = keras.saving.load_model(tmp_path / "tower.keras")
        assert len(loaded.trainable_variables) == len(tower.trainable_variables)
        np.testing.assert_allclose(loaded(ids)["mean"], tower(ids)["mean"], atol=1e-6)
    for count in (-1, BLOCKS + 1, True, 0.5):
        with pytest.raises(ValueError, match=f"integer between 0 and {BLOCKS}.*received {count}"):
            tower_of(checkpoint, count)


def test_the_blocks_of_a_frozen_sentence_can_be_trained_afterwards(checkpoint, ids):
    frozen = encoders.sentences(checkpoint, LENGTH)
    expected = np.asarray(frozen(ids)["pooled"])
    thawed = encoders.with_trainable_blocks(frozen, 1, dropout=0.5)
    np.testing.assert_array_equal(np.asarray(thawed(ids)["pooled"]), expected)
    assert not np.allclose(np.asarray(thawed(ids, training=True)["pooled"]), expected)
    assert {weight.path.split("/")[0] for weight in thawed.trainable_weights} == {
        f"block_{BLOCKS - 1}"
    }
    for weight in thawed.trainable_weights:
        weight.assign(weight + 0.01)
    again = encoders.with_trainable_blocks(thawed, 0)
    found = np.asarray(again(ids, training=True)["pooled"])
    np.testing.assert_array_equal(found, np.asarray(thawed(ids)["pooled"]))
    assert not again.trainable_weights
    assert not np.allclose(found, expected)


def test_points_and_gaussians_of_strings_are_saved_and_served(checkpoint, tmp_path):
    points = models.DualEncoder(
        point_towers.mean_image_encoder(encoders.convolutional("tiny", 32, None), 4),
        tower_of(checkpoint),
        similarity=similarities.Cosine(10.0, learn_scale=True),
        loss=losses.InfoNCE(),
        tokenizer=read_bert_tokenizer(checkpoint, LENGTH),
    )
    mean = np.asarray(points.encode_captions(TEXTS))
    gaussian = models.pfe(points)
    embedding = gaussian.encode_captions(TEXTS)
    np.testing.assert_allclose(embedding.mean(), mean, atol=1e-6)
    assert np.asarray(embedding.stddev()).shape == mean.shape
    gaussian.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.encode_captions(TEXTS).mean(), mean, atol=1e-6)

    outputs = Signatures(loaded).functions["encode_captions"](tf.constant(TEXTS))
    np.testing.assert_allclose(outputs["mean"], mean, atol=1e-5)


def test_a_preset_of_keras_hub_keeps_its_activation(ids, tmp_path):
    network = keras_hub.models.BertBackbone(
        len(PIECES), BLOCKS, HEADS, WIDTH, INNER, max_sequence_length=LENGTH
    )
    network.save_to_preset(str(tmp_path))
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": (ids != 0).astype("int32")}
    expected = network(inputs)["sequence_output"]
    np.testing.assert_allclose(
        encoders.sentences(tmp_path, LENGTH)(ids)["features"], expected, atol=1e-6
    )


SIZE = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8}
ROWS = np.array([[2, 5, 6, 3, 0, 0], [2, 5, 6, 7, 8, 3], [2, 3, 0, 0, 0, 0]], "int32")


def test_states_do_not_depend_on_padding_and_survive_saving(tmp_path):
    backbone = bert(vocabulary_size=20, max_length=6, **SIZE)
    outputs = backbone(ROWS)
    assert outputs["features"].shape == (3, 6, 8)
    np.testing.assert_array_equal(outputs["mask"], ROWS != 0)
    shorter = bert(vocabulary_size=20, max_length=4, **SIZE)
    shorter.set_weights(backbone.get_weights())
    alone = shorter(ROWS[:1, :4])["features"]
    np.testing.assert_allclose(alone[0], outputs["features"][0, :4], atol=1e-5)
    backbone.save(tmp_path / "bert.keras")
    loaded = keras.saving.load_model(tmp_path / "bert.keras")
    np.testing.assert_allclose(loaded(ROWS)["features"], outputs["features"], atol=1e-6)


def test_a_local_preset_is_read(tmp_path):
    network = keras_hub.models.BertBackbone(20, intermediate_dim=16, max_sequence_length=8, **SIZE)
    network.save_to_preset(str(tmp_path / "preset"))
    features = bert(tmp_path / "preset", max_length=6)(ROWS)["features"]
    mask = (ROWS != 0).astype("int32")
    inputs = {"token_ids": ROWS, "segment_ids": 0 * ROWS, "padding_mask": mask}
    np.testing.assert_allclose(features, network(inputs)["sequence_output"], atol=1e-6)
    with pytest.raises(InputError, match="reads 8 tokens; received 9"):
        bert(tmp_path / "preset", max_length=9)
    with pytest.raises(InputError, match="no such folder"):
        bert(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="not a preset of BERT"):
        bert(tmp_path / "empty")
