"""Trains every kind of loss on one device and on two replicas, in a process of its own.

`python replicas.py mirrored CASE …` has two logical CPUs, `mirrored:4` four; `python replicas.py
multi_worker CASE …` is one of the workers of TF_CONFIG. All print `{case: largest difference of a
variable or the loss}` as JSON, of the cases given.
"""

import functools
import json
import sys

import keras
import numpy as np
import tensorflow as tf

NAME, *CHOSEN = sys.argv[1:]
NAME, _, COUNT = NAME.partition(":")
if NAME == "mirrored":
    cpus = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpus[0], [tf.config.LogicalDeviceConfiguration()] * int(COUNT or 2)
    )

from zoo import losses, models, training  # noqa: E402
from zoo.data.text.captions import WordTokenizer  # noqa: E402
from zoo.models import global_batch  # noqa: E402
from zoo.training import Execution  # noqa: E402

DEVICES = training.strategy(NAME)
SPREAD = Execution(strategy=NAME)
WORDS = WordTokenizer(["bird", "red", "blue", "wing", "a", "small"], max_words=3)
SIZE = {"tokenizer": WORDS, "dim": 8, "word_dim": 6, "image_size": 16}
REGIONS = (3, 12)
STEPS = 2


SYSTEMS = {
    "pcme": lambda: models.pcme(pixels(), kl_weight=1e-2, uniformity_weight=0.1, **SIZE),
    "pcmepp": lambda: models.pcmepp(
        pixels(), pseudo_positive_weight=0.5, kl_weight=1e-2, drop_rate=0.0, **SIZE
    ),
    "dive": lambda: models.dive(
        REGIONS, discrepancy_weight=0.1, diversity_weight=0.1, dropout=0.0, drop_rate=0.0, **SIZE
    ),
    "triplet": lambda: models.vsepp(pixels(), **SIZE),
    "daa": lambda: models.vsepp(pixels(), **SIZE).with_auxiliaries(
        losses.AuxiliaryRanking(losses.SemanticPrecision(0.1), 0.5)
    ),
}


def with_mse():
    """Compiled with a loss and a metric of Keras, which know replicas in another way."""
    return SYSTEMS["triplet"]()


def pixels():
    """A backbone whose rows do not depend on each other."""
    image = keras.Input((16, 16, 3))
    x = keras.layers.Rescaling(1 / 255)(image)
    x = keras.layers.Conv2D(6, 3, 2, activation="relu")(x)
    return keras.Model(image, x, name="backbone")


def normalized():
    """A backbone whose rows do: BatchNorm."""
    image = keras.Input((16, 16, 3))
    x = keras.layers.Conv2D(6, 3, 2)(keras.layers.Rescaling(1 / 255)(image))
    x = keras.layers.ReLU()(keras.layers.BatchNormalization()(x))
    return keras.Model(image, x, name="backbone")


def stream(shape, sizes=(8,), each=2):
    """Batches of images with `each` captions; labels repeat, so that some negatives are false."""
    rng = np.random.default_rng(0)
    batches = []
    for step in range(STEPS):
        rows = sizes[step % len(sizes)]
        labels = rng.integers(0, 5, rows).astype("int32") + 2**25  # more than float32 can count
        images = rng.uniform(0, 255 if len(shape) == 3 else 1, (rows, *shape))
        batches.append(
            {
                "images": images.astype("float32"),
                "captions": rng.integers(1, 8, (rows * each, 3)).astype("int32"),
                "image_labels": labels,
                "caption_labels": np.repeat(labels, each),
                "semantic": rng.uniform(size=(rows, rows * each)).astype("float32"),
            }
        )

    def batches_from(start_step):
        def generate():
            yield from batches[start_step:]

        fixed = len(sizes) == 1
        signature = {
            name: tf.TensorSpec(value.shape if fixed else (None,) * value.ndim, value.dtype)
            for name, value in batches[0].items()
        }
        return tf.data.Dataset.from_generator(generate, output_signature=signature)

    return batches_from


def fit(build, execution, batches, rate, **options):
    """The variables, seeds included, a metric and the logged loss after some steps."""
    with execution.devices.scope():
        keras.utils.set_random_seed(0)
        model = build()
        # SGD, since Adam divides by the gradient's size and would hide a wrong factor. Eager,
        # since two steps are not worth a trace.
        own = {"loss": "mse", "metrics": ["mae"]} if build is with_mse else {}
        model.compile(keras.optimizers.SGD(rate, **options), run_eagerly=True, **own)
    execution.prepare(model)
    history = model.fit(
        execution.batches(batches, 0), steps_per_epoch=STEPS, shuffle=False, verbose=0
    )
    variables = [keras.ops.convert_to_numpy(v) for v in model.variables]
    metric = history.history.get("mae", [0.0])[-1]
    return [*variables, np.array(metric), np.array(history.history["loss"][-1])]


@functools.cache
def on_one_device(build, shape, sizes, rate, **options):
    return fit(build, Execution(), stream(shape, sizes), rate, **options)


def compare(build, shape=(16, 16, 3), sizes=(8,), rate=0.02, **options):
    alone = on_one_device(build, shape, sizes, rate, **options)
    spread = fit(build, SPREAD, stream(shape, sizes), rate, **options)
    return max(float(np.abs(a - b).max()) for a, b in zip(alone[:-1], spread[:-1], strict=True))


def of_each_replica_alone(name):
    """What comes of a loss that sees the negatives of its own replica only."""
    gather = global_batch.gather
    global_batch.gather = lambda *rows: rows
    try:
        return compare(SYSTEMS[name])
    finally:
        global_batch.gather = gather


SEEN = set()


@keras.saving.register_keras_serializable(package="tests")
class Where(keras.layers.Layer):
    """Notes on which replica it is called."""

    def call(self, inputs):
        context = tf.distribute.get_replica_context()
        number = context and context.replica_id_in_sync_group
        SEEN.add(int(tf.get_static_value(number)) if tf.is_tensor(number) else number)
        return inputs


def validation():
    """What `Validation` encodes: on all replicas, each its share; 10 rows in batches of 3."""

    def backbone():
        image = keras.Input((16, 16, 3))
        x = keras.layers.Conv2D(6, 3, 2)(Where()(keras.layers.Rescaling(1 / 255)(image)))
        return keras.Model(image, x, name="backbone")

    rows = np.random.default_rng(0).uniform(0, 255, (10, 16, 16, 3)).astype("float32")
    with DEVICES.scope():
        model = models.vsepp(backbone(), **SIZE)
    SEEN.clear()
    batches = tf.data.Dataset.from_tensor_slices(rows).batch(3)
    spread = model.tower("images").of_arrays(batches)["mean"]
    assert set(range(DEVICES.num_replicas_in_sync)) == SEEN, SEEN
    alone = training.on_one_device(model).image_encoder(rows)["mean"]
    assert spread.shape == alone.shape
    return float(np.abs(spread - alone).max())


CASES = {
    "validation": validation,
    "triplet": lambda: compare(SYSTEMS["triplet"]),
    "pcme": lambda: compare(SYSTEMS["pcme"], rate=1e-3),  # its loss is a sum over all pairs
    "pcmepp": lambda: compare(SYSTEMS["pcmepp"]),
    "dive": lambda: compare(SYSTEMS["dive"], REGIONS),
    "daa": lambda: compare(SYSTEMS["daa"]),
    "pcmepp, own negatives": lambda: of_each_replica_alone("pcmepp"),
    "triplet, own negatives": lambda: of_each_replica_alone("triplet"),
    "clipped": lambda: compare(SYSTEMS["pcmepp"], global_clipnorm=0.1),
    "a last batch of one row": lambda: compare(SYSTEMS["triplet"], sizes=(5, 1)),
    "mse of Keras": lambda: compare(with_mse, rate=1e-3),
    "batch normalization": lambda: compare(lambda: models.vsepp(normalized(), **SIZE)),
}


def main():
    found = {}
    for name in CHOSEN:
        found[name] = CASES[name]()
        print(name, found[name], file=sys.stderr, flush=True)  # seen where a test times out
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
