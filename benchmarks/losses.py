"""Whole training losses, forward and backward, against the formulas as one writes them down.

`python -m benchmarks losses`. All in TensorFlow graphs without XLA unless a row says so. The
figures of the official codes are constants, measured once with PyTorch on two CPU cores; only the
ratios to our own broadcasts are of one run.
"""

import numpy as np
import tensorflow as tf

from benchmarks import broadcasts
from benchmarks.report import Report
from benchmarks.similarities import gaussians, graph, rows_of
from benchmarks.timing import compare, peak_memory
from zoo import losses, similarities

SEED = 0
BATCH, DIM, SAMPLES = 128, 1024, 7
ROWS = 4  # of PCME's broadcast: 98 MiB a tensor
GALLERY = 640
TEMPERATURE = 0.01
OFFICIAL_PCMEPP = {"cpu_seconds": 0.75}
OFFICIAL_PCME = {"cpu_seconds": 29.0, "peak_GiB": 15.7}


def main():
    return [pcmepp(), pcme(), semantic_precision()]


def embeddings():
    return gaussians(BATCH), gaussians(BATCH, seed=SEED + 1)


def backward(loss):
    """The value, and its gradients for all inputs."""

    def step(*inputs):
        watched = tf.nest.flatten(inputs)
        with tf.GradientTape() as tape:
            tape.watch(watched)
            value = loss(*inputs)
        return value, tape.gradient(value, watched)

    return step


def pcmepp():
    title = f"PCME++ (CSD, cross-entropy, pseudo-positives), B = {BATCH}, dim = {DIM}"
    report = Report(f"{title}, forward and backward", SEED)
    report.notes.append("broadcast: distances through (B, B, dim) tensors, then the same loss")
    images, captions = embeddings()
    steps = {
        "ours": graph(backward(pcmepp_loss()), images, captions),
        "ours, XLA": graph(backward(pcmepp_loss()), images, captions, xla=True),
        "broadcast": graph(backward(_pcmepp_by_broadcast), images, captions),
    }
    times = compare(steps, repeats=9, warmup=2)
    for name, time in times.items():
        report.add(
            implementation=name,
            ms=1e3 * time.seconds,
            cpu_seconds=time.cpu_seconds,
            cpu_seconds_fewer_than_broadcast=times["broadcast"].cpu_seconds / time.cpu_seconds,
            fewer_than_official=OFFICIAL_PCMEPP["cpu_seconds"] / time.cpu_seconds,
        )
    report.add(implementation="official (constant)", **OFFICIAL_PCMEPP, fewer_than_official=1.0)
    return report


def pcmepp_loss():
    layer = similarities.ClosedFormSampledDistance(scale=5.0 / DIM, shift=5.0)
    loss = losses.MatchingCrossentropy(pseudo_positive_weight=0.1)
    matches = tf.eye(BATCH)
    return lambda images, captions: loss(matches, layer(images, captions))


def _pcmepp_by_broadcast(images, captions):
    loss = losses.MatchingCrossentropy(pseudo_positive_weight=0.1)
    return loss(tf.eye(BATCH), 5.0 - 5.0 / DIM * broadcasts.csd(images, captions))


def pcme():
    title = f"PCME (match probability J = {SAMPLES}, cross-entropy, KL, uniformity)"
    report = Report(f"{title}, B = {BATCH}, dim = {DIM}, forward and backward", SEED)
    report.notes.append(
        f"the broadcast is {ROWS} rows of {BATCH} scaled by {BATCH // ROWS}, of the first two only"
    )
    report.notes.append("ours draws its samples, and takes uniformity over all of both modalities")
    images, captions = embeddings()
    steps = {
        "ours": graph(backward(pcme_loss()), images, captions),
        "broadcast": graph(backward(_pcme_by_broadcast), rows_of(images, ROWS), captions),
    }
    times = compare(steps, repeats=5, warmup=1)
    times["broadcast"] = times["broadcast"].scaled(BATCH / ROWS)
    peak = {"ours": peak_memory("benchmarks.losses:pcme_step") / 2**30}
    for name, time in times.items():
        report.add(
            implementation=name,
            seconds=time.seconds,
            cpu_seconds=time.cpu_seconds,
            peak_GiB=peak.get(name, ""),
            cpu_seconds_fewer_than_broadcast=times["broadcast"].cpu_seconds / time.cpu_seconds,
            fewer_than_official=OFFICIAL_PCME["cpu_seconds"] / time.cpu_seconds,
        )
    report.add(implementation="official (constant)", **OFFICIAL_PCME, fewer_than_official=1.0)
    return report


def pcme_loss():
    layer = similarities.MatchProbability(1.0, 40.0, num_samples=SAMPLES)
    loss = losses.MatchingCrossentropy(reduction="sum")
    terms = [
        losses.KLRegularizer(weight=1e-3, reduction="sum"),
        losses.Uniformity(num_samples=SAMPLES, seed=SEED),
    ]
    matches = tf.eye(BATCH)

    def total(images, captions):
        value = loss(matches, layer(images, captions, training=True))
        return value + sum(term.weight * term(images, captions) for term in terms)

    return total


def pcme_step():
    return graph(backward(pcme_loss()), *embeddings())


def _pcme_by_broadcast(images, captions):
    samples = [similarities.sample(side, SAMPLES, seed=SEED) for side in (images, captions)]
    logits = broadcasts.match_logit(*samples, 1.0, 40.0)
    return losses.MatchingCrossentropy(reduction="sum")(tf.eye(*logits.shape), logits)


def semantic_precision():
    title = f"Semantic precision (DAA), B = {GALLERY}, τ = {TEMPERATURE}, forward and backward"
    report = Report(title, SEED)
    report.notes.append("cube: sigmoids of all (B, B, B) differences, in both rankings")
    problem = gallery()
    functions = {"ours": losses.SemanticPrecision(TEMPERATURE), "cube": _precision_by_cube}
    steps = {name: graph(daa_gradient(f), *problem) for name, f in functions.items()}
    steps["ours, XLA"] = graph(daa_gradient(functions["ours"]), *problem, xla=True)
    times = compare(steps, repeats=3, warmup=1)
    peak = {
        name: peak_memory("benchmarks.losses:semantic_step", name=name) / 2**30
        for name in functions
    }
    for name, time in times.items():
        report.add(
            implementation=name,
            seconds=time.seconds,
            cpu_seconds=time.cpu_seconds,
            share_of_the_cube=time.cpu_seconds / times["cube"].cpu_seconds,
            peak_GiB=peak.get(name, ""),
        )
    return report


def gallery():
    semantics, logits = np.random.default_rng(SEED).normal(size=(2, GALLERY, GALLERY))
    return semantics.astype("float32"), (0.1 * logits).astype("float32")


def daa_gradient(loss):
    def step(semantics, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(semantics, logits)
        return value, tape.gradient(value, logits)

    return step


def semantic_step(name):
    loss = losses.SemanticPrecision(TEMPERATURE) if name == "ours" else _precision_by_cube
    return graph(daa_gradient(loss), *gallery())


def _precision_by_cube(semantics, logits):
    def ranks(scores):
        difference = (scores[:, None, :] - scores[:, :, None]) / TEMPERATURE
        return 0.5 + tf.reduce_sum(tf.sigmoid(difference), axis=2)  # 1 less its own half

    def disagreement(c, s):
        c, s = ranks(c), ranks(s)
        return tf.reduce_mean(1.0 - tf.minimum(c, s) / tf.maximum(c, s))

    columns = disagreement(tf.transpose(semantics), tf.transpose(logits))
    return 0.5 * (disagreement(semantics, logits) + columns)
