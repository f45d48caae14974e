import dataclasses
import random
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from zoo import models
from zoo.data import Split
from zoo.data.records import Records
from zoo.data.records.sources import Features
from zoo.data.text.captions import WordTokenizer
from zoo.errors import InputError
from zoo.evaluation import encode
from zoo.metrics import evaluate_retrieval
from zoo.training import BestEpoch, Validation, read_best, restore_best


def make_model(seed=0):
    random.seed(seed)
    image = keras.Input((4, 4, 3))
    backbone = keras.Model(image, keras.layers.Conv2D(4, 1)(image), name="backbone")
    words = WordTokenizer(["red", "green", "blue", "bird"], max_words=4)
    return models.pcme(backbone, words, dim=4, word_dim=4, image_size=4)


@pytest.fixture
def split():
    pixels = np.random.default_rng(0).uniform(0, 255, (3, 4, 4, 3)).astype("float32")
    records = Records(
        name="three",
        image_paths=["a", "b", "c"],
        captions=["red bird", "green bird", "blue bird", "bird"],
        caption_image=[0, 1, 2, 2],
        image_labels=[0, 1, 2],
        image_ids=[0, 1, 2],
    )
    return Split(records, Features(pixels))


def test_the_logs_have_what_the_metrics_say(split):
    model = make_model()
    callback = Validation(split)
    callback.set_model(model)
    logs = {}
    callback.on_epoch_end(0, logs)
    encoded = encode(model, split.records, split.source)
    expected = evaluate_retrieval(encoded.pairs(model.similarity), encoded.relevance)
    assert logs == {"val_rsum": pytest.approx(expected["rsum"])}


def test_classes_are_compared_by_the_mean_of_both_directions(split):
    records = dataclasses.replace(split.records, image_labels=[0, 0, 1], class_names=("a", "b"))
    model, logs = make_model(), {}
    callback = Validation(Split(records, split.source))
    callback.set_model(model)
    callback.on_epoch_end(0, logs)
    encoded = encode(model, records, split.source)
    found = evaluate_retrieval(encoded.pairs(model.similarity), encoded.relevance)
    both = [found["i2t_r_precision"], found["t2i_r_precision"]]
    assert both[0] != both[1]
    assert logs == {"val_r_precision": pytest.approx(np.mean(both))}


def epochs(tmp_path, model, values, phase="training", start=0):
    callback = BestEpoch(tmp_path, model, phase)
    for epoch, value in enumerate(values, start):
        for variable in model.trainable_variables:
            variable.assign(np.full(variable.shape, value, "float32"))
        callback.on_epoch_end(epoch, {"loss": 1.0, "val_rsum": value})


def test_the_best_epoch_of_all_phases_is_kept(tmp_path):
    model = make_model()
    epochs(tmp_path, model, [1.0, 3.0, 2.0], "warm_up")
    epochs(tmp_path, model, [2.5, 3.0], "training")
    best = restore_best(tmp_path / "best.npz", model)
    assert best == {"phase": "warm_up", "epoch": 2, "value": 3.0}
    assert all((np.asarray(v) == 3.0).all() for v in model.trainable_variables)


def test_the_whole_model_is_kept_where_a_part_is_fitted(tmp_path):
    model = make_model()
    part = model.with_image_encoder(model.image_encoder.get_layer("head"))
    callback = BestEpoch(tmp_path, model, "warm_up")
    callback.set_model(part)
    callback.on_epoch_end(0, {"loss": 1.0, "val_rsum": 1.0})
    kept = [np.array(v) for v in model.variables]
    for variable in model.trainable_variables:
        variable.assign(variable + 1.0)
    restore_best(tmp_path / "best.npz", model)
    for ours, theirs in zip(kept, model.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=theirs.path)


def test_what_is_no_number_and_other_workers_are_not_kept(tmp_path):
    model = make_model()
    BestEpoch(tmp_path, model, "a").on_epoch_end(0, {"loss": np.nan, "val_rsum": 5.0})
    BestEpoch(tmp_path, model, "a", writes=False).on_epoch_end(0, {"loss": 1.0, "val_rsum": 5.0})
    BestEpoch(tmp_path, model, "a").on_epoch_end(0, {"loss": 1.0})
    assert read_best(tmp_path / "best.npz") is None
    assert restore_best(tmp_path / "best.npz", model) is None


def test_a_file_of_another_model_or_half_a_file_is_named(tmp_path):
    model = make_model()
    epochs(tmp_path, model, [1.0])
    small = SimpleNamespace(variables=model.variables[:3])
    with pytest.raises(InputError, match="of another model"):
        restore_best(tmp_path / "best.npz", small)
    path = tmp_path / "best.npz"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InputError, match="cannot be read"):
        restore_best(path, model)
