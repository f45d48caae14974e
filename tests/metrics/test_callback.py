"""The Keras callback: it sees the model, the logs see it, and so do later callbacks."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from zoo.metrics import RetrievalEvaluation, evaluate_retrieval
from zoo.similarities import ClosedFormSampledDistance


class Toy(keras.Model):
    """Encoders that read the embedding off their input, and a weight that training moves."""

    def __init__(self):
        super().__init__()
        self.similarity = ClosedFormSampledDistance(trainable=False)
        self.offset = self.add_weight(shape=(), initializer="zeros")
        self.largest_batch = 0

    def call(self, inputs):
        return inputs["images"][:, :1] + self.offset

    def encode_images(self, images):
        self.largest_batch = max(self.largest_batch, len(images))
        images = tf.convert_to_tensor(images)
        return {"mean": images, "log_variance": tf.zeros_like(images)}

    encode_captions = encode_images


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(8, 3)).astype(np.float32)
    labels = np.repeat(np.arange(8), 3)
    captions = images[labels] + 0.8 * rng.normal(size=(24, 3)).astype(np.float32)
    return {
        "images": images,
        "captions": captions.astype(np.float32),
        "image_labels": np.arange(8),
        "caption_labels": labels,
    }


def expected(data):
    distance = ((data["images"][:, None] - data["captions"][None]) ** 2).sum(-1)
    relevance = data["image_labels"][:, None] == data["caption_labels"]
    return evaluate_retrieval(-distance, relevance)


def dataset(data):
    """Batches of two images with their six captions."""
    return [
        {
            "images": data["images"][2 * i : 2 * i + 2],
            "captions": data["captions"][6 * i : 6 * i + 6],
            "image_labels": data["image_labels"][2 * i : 2 * i + 2],
            "caption_labels": data["caption_labels"][6 * i : 6 * i + 6],
        }
        for i in range(4)
    ]


@pytest.mark.parametrize("form", ["arrays", "list", "tf.data"])
def test_evaluates_arrays_and_datasets(data, form):
    given = {
        "arrays": lambda: data,
        "list": lambda: dataset(data),
        "tf.data": lambda: tf.data.Dataset.from_tensor_slices(data_stack(data)),
    }[form]()
    model = Toy()
    results = RetrievalEvaluation(given, batch_size=5, verbose=0).evaluate(model)
    assert results == pytest.approx(expected(data))
    assert 0 < results["rsum"] < 600
    assert model.largest_batch <= 6


def data_stack(data):
    return {key: np.stack([batch[key] for batch in dataset(data)]) for key in data}


def fit(model, callbacks, epochs=2):
    model.compile(optimizer="sgd", loss="mse")
    x = {"images": np.ones((4, 3), np.float32)}
    return model.fit(x, np.ones((4, 1)), epochs=epochs, verbose=0, callbacks=callbacks)


def test_later_callbacks_see_the_metrics(data, tmp_path):
    path = str(tmp_path / "best.weights.h5")
    checkpoint = keras.callbacks.ModelCheckpoint(
        path, monitor="val_rsum", mode="max", save_best_only=True, save_weights_only=True
    )
    history = fit(Toy(), [RetrievalEvaluation(data, verbose=0), checkpoint]).history
    assert history["val_rsum"] == pytest.approx([expected(data)["rsum"]] * 2)
    assert history["val_t2i_map@r"] == pytest.approx([expected(data)["t2i_map@r"]] * 2)
    assert checkpoint.best == pytest.approx(expected(data)["rsum"])
    assert (tmp_path / "best.weights.h5").is_file()
    assert "val_i2t_queries" not in history  # a count is no metric to plot


def test_every_second_epoch(data):
    history = fit(Toy(), [RetrievalEvaluation(data, every=2, verbose=0)], epochs=4).history
    assert len(history["val_rsum"]) == 2
    assert len(history["loss"]) == 4


def test_shows_progress(data, capsys):
    RetrievalEvaluation(data, batch_size=4).evaluate(Toy())
    shown = capsys.readouterr().out
    assert "32/32" in shown
    assert "rsum" in shown
    RetrievalEvaluation(data, verbose=0).evaluate(Toy())
    assert capsys.readouterr().out == ""


def test_prefix_and_ks(data):
    history = fit(
        Toy(), [RetrievalEvaluation(data, ks=(1, 2), prefix="dev_", verbose=0)], epochs=1
    ).history
    assert "dev_i2t_recall@2" in history
    assert "dev_i2t_recall@5" not in history


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda d: {k: v for k, v in d.items() if k != "captions"}, ValueError, "captions"),
        (lambda d: {**d, "image_labels": np.arange(7)}, ValueError, "8 images and 7"),
        (lambda d: iter(dataset(d)), TypeError, "every epoch"),
        (lambda d: 3, TypeError, "int"),
    ],
)
def test_wrong_validation_data_is_named(data, change, error, message):
    with pytest.raises(error, match=message):
        RetrievalEvaluation(change(data))


def test_wrong_settings_are_named(data):
    with pytest.raises(ValueError, match="`every`"):
        RetrievalEvaluation(data, every=0)
    with pytest.raises(ValueError, match="at least one image"):
        RetrievalEvaluation([], verbose=0).evaluate(Toy())
