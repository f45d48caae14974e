"""The pieces of `zoo.training` together, on the model they are for."""

import random

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from zoo import losses, similarities
from zoo.files import RunFolder
from zoo.models.dual_encoder import DualEncoder
from zoo.training import (
    HistoryFile,
    LayerwiseAdamP,
    Resume,
    StochasticWeightAveraging,
    rates_by_depth,
    read_history,
)

RNG = np.random.default_rng(0)
BATCH = {
    "images": RNG.uniform(0, 255, (4, 6, 6, 3)).astype("float32"),
    "captions": RNG.integers(1, 20, (4, 5)).astype("int32"),
    "image_labels": np.arange(4),
    "caption_labels": np.arange(4),
}


def make_model():
    random.seed(0)

    def heads(features):
        return {"mean": layers.Dense(4)(features), "log_variance": layers.Dense(4)(features)}

    image = keras.Input((6, 6, 3))
    caption = keras.Input((5,), dtype="int32")
    pixels = layers.Conv2D(4, 3, name="stem")(layers.Rescaling(1 / 255)(image))
    pixels = layers.GlobalAveragePooling2D()(layers.BatchNormalization(name="norm")(pixels))
    words = layers.GlobalAveragePooling1D()(layers.Embedding(20, 8, name="words")(caption))
    model = DualEncoder(
        keras.Model(image, heads(layers.Dropout(0.2)(pixels))),
        keras.Model(caption, heads(layers.Dropout(0.2)(words))),
        similarities.MatchProbability(10.0, 10.0, num_samples=3),
        loss=losses.MatchingCrossentropy(),
    )
    stem = model.image_encoder.get_layer("stem"), model.image_encoder.get_layer("norm")
    rates = rates_by_depth(stem, decay=0.5, rate=0.1)
    rates |= rates_by_depth([model.caption_encoder.get_layer("words")], rate=0.2)
    model.compile(LayerwiseAdamP(0.02, weight_decay=1e-2, rates=rates))
    return model


def train(folder, epochs):
    run = RunFolder.open(folder, {"seed": 0})
    model = make_model()
    swa = StochasticWeightAveraging(2, batches=[BATCH])
    resume = Resume(run.checkpoints, stateful_callbacks={"swa": swa})
    done = resume.restore(model)
    data = tf.data.Dataset.from_tensors(BATCH).repeat()
    history = HistoryFile(run.history_path)
    model.fit(
        data,
        steps_per_epoch=2,
        initial_epoch=done,
        epochs=epochs,
        callbacks=[history, swa, resume],
        verbose=0,
    )
    return run, model


def test_a_sampling_model_resumes_exactly_and_its_file_loads(tmp_path):
    straight, expected = train(tmp_path / "straight", 4)
    train(tmp_path / "resumed", 3)
    resumed, model = train(tmp_path / "resumed", 4)
    for ours, theirs in zip(model.variables, expected.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=theirs.path)
    for name in ("loss", "epoch"):
        np.testing.assert_array_equal(
            read_history(resumed.history_path)[name], read_history(straight.history_path)[name]
        )

    loaded = keras.saving.load_model(resumed.save_model(model))
    assert loaded.optimizer.rates == model.optimizer.get_config()["rates"]
    assert sorted(set(loaded.optimizer.rates)) == [0.05, 0.1, 0.2, 1.0]
    np.testing.assert_allclose(
        loaded.encode_images(BATCH["images"]).mean(),
        model.encode_images(BATCH["images"]).mean(),
        rtol=1e-5,
    )
