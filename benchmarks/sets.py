"""DivE's whole loss against a straightforward one: smooth-Chamfer, triplets, MMD, diversity.

`python -m benchmarks sets`. Forward and backward for the sets and slots of a batch of 200 images
with all their captions, in TensorFlow graphs without XLA. The straightforward code takes the
definitions one after the other, as the paper's released code does: an exponential for each
direction, distances of all pairs, the elements of a pair side by side.
"""

import keras
import numpy as np
import tensorflow as tf

from benchmarks.report import Report
from benchmarks.timing import compare, peak_memory
from zoo import losses, similarities

SEED = 0
IMAGES, CAPTIONS_EACH, ELEMENTS, DIM = 200, 5, 4, 1024
ALPHA, MARGIN, WEIGHT = 16.0, 0.2, 0.01
# Of the released code on two cores, measured before this project: the yardstick.
RELEASED_CPU_SECONDS = 2.0


def main():
    title = f"DivE's loss, {IMAGES} images × {IMAGES * CAPTIONS_EACH} captions"
    report = Report(f"{title}, K = {ELEMENTS}, D = {DIM}, forward and backward", SEED)
    report.notes.append("all terms: smooth-Chamfer and hardest triplets, MMD, diversity of slots")
    report.notes.append(f"the released code takes {RELEASED_CPU_SECONDS} CPU-seconds by the issue")
    batch = sets()
    functions = {name: graph(loss, batch) for name, loss in LOSSES.items()}
    ours, plain = (functions[name]() for name in ("ours", "straightforward"))
    worst = max(float(tf.reduce_max(tf.abs(a - b))) for a, b in zip(ours, plain, strict=True))
    scale = max(float(tf.reduce_max(tf.abs(b))) for b in plain)
    report.notes.append(f"largest difference of the gradients: {worst / scale:.0e} of the largest")
    times = compare(functions, repeats=5, warmup=1)
    for name, time in times.items():
        report.add(
            loss=name,
            seconds=time.seconds,
            cpu_seconds=time.cpu_seconds,
            of_straightforward=time.cpu_seconds / times["straightforward"].cpu_seconds,
            of_released=time.cpu_seconds / RELEASED_CPU_SECONDS,
            peak_GiB=peak_memory("benchmarks.sets:step", name=name) / 2**30,
        )
    return report


def sets():
    """Unit elements and slots `(batch, K, D)` of images and captions, as the towers give them."""
    rng = np.random.default_rng(SEED)
    batch = {}
    for side, count in (("images", IMAGES), ("captions", IMAGES * CAPTIONS_EACH)):
        slots = rng.normal(size=(count, ELEMENTS, DIM)).astype("float32")
        elements = slots + rng.normal(size=(count, 1, DIM)).astype("float32")
        elements /= np.linalg.norm(elements, axis=-1, keepdims=True)
        batch[side] = {"elements": tf.constant(elements), "slots": tf.constant(slots)}
    return batch


def matches():
    owner = np.repeat(np.arange(IMAGES), CAPTIONS_EACH)
    return tf.constant(np.equal.outer(np.arange(IMAGES), owner).astype("float32"))


def graph(loss, batch):
    truth = matches()

    @tf.function(autograph=False)
    def gradients(batch):
        inputs = keras.tree.flatten(batch)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            total = loss(batch["images"], batch["captions"], truth)
        return tape.gradient(total, inputs)

    return lambda: gradients(batch)


def step(name):
    return graph(LOSSES[name], sets())


_SIMILARITY = similarities.SmoothChamfer(ALPHA)
_TRIPLETS = losses.TripletRanking(MARGIN, "hardest", "mean")
_TERMS = (losses.MaximumMeanDiscrepancy(WEIGHT), losses.Diversity(WEIGHT))


def ours(images, captions, truth):
    total = _TRIPLETS(truth, _SIMILARITY(images, captions))
    return total + sum(term.weight * term(images, captions) for term in _TERMS)


def straightforward(images, captions, truth):
    x, y = (tf.reshape(side["elements"], (-1, DIM)) for side in (images, captions))
    units = [tf.math.l2_normalize(side, axis=-1) for side in (x, y)]
    cosines = tf.reshape(units[0] @ tf.transpose(units[1]), (IMAGES, ELEMENTS, -1, ELEMENTS))
    rows = tf.math.log(tf.reduce_sum(tf.exp(ALPHA * cosines), axis=3))
    columns = tf.math.log(tf.reduce_sum(tf.exp(ALPHA * cosines), axis=1))
    scores = (tf.reduce_mean(rows, axis=1) + tf.reduce_mean(columns, axis=2)) / (2 * ALPHA)
    total = 0.0
    for labels, logits in ((truth, scores), (tf.transpose(truth), tf.transpose(scores))):
        hardest = tf.reduce_max(tf.where(labels > 0, -np.inf, logits), axis=1, keepdims=True)
        hinges = labels * tf.nn.relu(MARGIN + hardest - logits)
        total += tf.reduce_sum(hinges) / tf.reduce_sum(labels)
    kernels = [tf.exp(-0.5 * _distances(a, b)) for a, b in ((x, x), (y, y), (x, y))]
    discrepancy = [tf.reduce_mean(kernel) for kernel in kernels]
    total += WEIGHT * (discrepancy[0] + discrepancy[1] - 2 * discrepancy[2])
    first, second = np.triu_indices(ELEMENTS, 1)
    for side in (images, captions):
        slots = tf.math.l2_normalize(side["slots"], axis=-1)
        apart = tf.gather(slots, first, axis=1) - tf.gather(slots, second, axis=1)
        total += WEIGHT * tf.reduce_mean(tf.exp(-2 * tf.reduce_sum(apart**2, axis=-1)))
    return total


def _distances(a, b):
    squares = tf.reduce_sum(a * a, 1)[:, None] + tf.reduce_sum(b * b, 1)[None]
    return tf.nn.relu(squares - 2 * a @ tf.transpose(b))


LOSSES = {"ours": ours, "straightforward": straightforward}
