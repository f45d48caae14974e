"""Similarities against a plain broadcast of the same formula and against bare matrix products.

`python -m benchmarks similarities`. All in TensorFlow graphs without XLA unless a row says so. A
broadcast would hold `(N, M, dim)` tensors of 4 GiB and more; it is measured on a block of rows and
scaled to all rows.
"""

import numpy as np
import tensorflow as tf
from keras import tree

from benchmarks import broadcasts
from benchmarks.report import Report
from benchmarks.timing import compare, peak_memory
from zoo import similarities as S
from zoo.similarities.sampled import sampled_logit
from zoo.similarities.summed_variance import BLOCK

SEED = 0
ITEMS, DIM = 1024, 1024
ROWS = 32  # of the broadcast: 128 MiB per tensor, from memory as the whole would be


def main():
    return [matrix_products(), sampling(), sets(), streamed()]


def gaussians(count, dim=DIM, seed=SEED):
    rng = np.random.default_rng(seed)
    return {
        "mean": tf.constant(rng.normal(size=(count, dim)).astype("float32")),
        "log_variance": tf.constant(0.5 * rng.normal(size=(count, dim)).astype("float32")),
    }


def graph(function, *inputs, xla=False):
    """A traced function of tensors, as a function without arguments."""
    traced = tf.function(function, jit_compile=xla, autograph=False)
    inputs = tree.map_structure(tf.convert_to_tensor, inputs)
    return lambda: traced(*inputs)


def backward(function):
    """The value's sum of squares, differentiated for all inputs: one training step's worth."""

    def step(*inputs):
        watched = tree.flatten(inputs)
        with tf.GradientTape() as tape:
            tape.watch(watched)
            total = tf.reduce_sum(function(*inputs) ** 2)
        return tape.gradient(total, watched)

    return step


def rows_of(embedding, count):
    return {k: v[:count] for k, v in embedding.items()}


def matrix_products():
    report = Report(f"Gaussian closed forms, N = M = {ITEMS}, dim = {DIM}, forward", SEED)
    report.notes.append(f"the broadcast is {ROWS} rows of {ITEMS}, scaled by {ITEMS // ROWS}")
    report.notes.append("CPU-seconds count the work whatever else the machine does")
    report.notes.append("bare products: as many N·dim·M products as the formula needs, and no more")
    images, captions = gaussians(ITEMS), gaussians(ITEMS, seed=SEED + 1)
    some = rows_of(images, ROWS)
    for name, ours, broadcast, needed in [
        ("CSD", S.closed_form_sampled_distance, broadcasts.csd, 1),
        ("W2", S.wasserstein_2, broadcasts.wasserstein_2, 2),
        ("KL", S.kl_divergence, broadcasts.kl, 2),
        ("minKL", S.min_kl_divergence, broadcasts.min_kl, 4),
        ("Jeffreys", S.jeffreys_divergence, broadcasts.jeffreys, 4),
    ]:
        times = compare(
            {
                "ours": graph(ours, images, captions),
                "XLA": graph(ours, images, captions, xla=True),
                "bare": graph(bare_products(needed), images["mean"], captions["mean"]),
                "broadcast": graph(broadcast, some, captions),
            },
            repeats=9,
            warmup=2,
        )
        full = times["broadcast"].scaled(ITEMS / ROWS)
        report.add(
            quantity=name,
            products=needed,
            ours_ms=1e3 * times["ours"].seconds,
            ours_XLA_ms=1e3 * times["XLA"].seconds,
            bare_ms=1e3 * times["bare"].seconds,
            broadcast_ms=1e3 * full.seconds,
            faster_than_broadcast=full.seconds / times["ours"].seconds,
            with_XLA=full.seconds / times["XLA"].seconds,
            less_CPU_than_broadcast=full.cpu_seconds / times["ours"].cpu_seconds,
            times_the_bare_products=times["ours"].seconds / times["bare"].seconds,
            times_their_CPU=times["ours"].cpu_seconds / times["bare"].cpu_seconds,
        )
    return report


def bare_products(count):
    def products(a, b):
        # of different operands, or the graph's optimiser computes one of them for all
        return [tf.matmul(a * (1.0 + i), b, transpose_b=True) for i in range(count)]

    return products


def sampling(items=128, samples=7):
    title = f"Match probability, N = M = {items}, dim = {DIM}, J = {samples}, forward and backward"
    report = Report(title, SEED)
    rows = 4
    report.notes.append(f"the broadcast is {rows} rows of {items}, scaled by {items // rows}")
    images, captions = gaussians(items), gaussians(items, seed=SEED + 1)
    draws = S.sample(images, samples, seed=SEED), S.sample(captions, samples, seed=SEED + 1)
    matched = S.MatchProbability(1.0, 40.0, method="moment_matched")
    times = compare(
        {
            "samples by products": graph(backward(_ours), *draws),
            "moment-matched": graph(backward(matched), images, captions),
            "broadcast": graph(backward(_broadcast), draws[0][:rows], draws[1]),
        },
        repeats=5,
        warmup=1,
    )
    times["broadcast"] = times["broadcast"].scaled(items / rows)
    for name, time in times.items():
        row = {"method": name, "seconds": time.seconds, "cpu_seconds": time.cpu_seconds}
        row["faster_than_broadcast"] = times["broadcast"].seconds / time.seconds
        if name != "broadcast":
            kind = "sampled" if name.startswith("samples") else "moment_matched"
            peak = peak_memory("benchmarks.similarities:match_step", items=items, kind=kind)
            row["peak_MiB"] = peak / 2**20
        report.add(**row)
    return report


def _ours(images, captions):
    return sampled_logit(images, captions, 1.0, 40.0)


def _broadcast(images, captions):
    return broadcasts.match_logit(images, captions, 1.0, 40.0)


def match_step(items, kind, samples=7):
    layer = S.MatchProbability(1.0, 40.0, num_samples=samples, method=kind)
    step = backward(lambda i, c: layer(i, c, training=True))
    return graph(step, gaussians(items), gaussians(items, seed=SEED + 1))


def sets(images=200, captions=1000, elements=4):
    title = f"Set similarities, N = {images}, M = {captions}, K = {elements}, dim = {DIM}"
    report = Report(f"{title}, forward and backward", SEED)
    report.notes.append("bare products: one forward and two backward, on sets of unit vectors")
    rng = np.random.default_rng(SEED)
    a, b = (
        tf.constant(rng.normal(size=(n, elements, DIM)).astype("float32"))
        for n in (images, captions)
    )
    flat = tf.reshape(a, (-1, DIM)), tf.reshape(b, (-1, DIM))
    functions = {"smooth-Chamfer": S.smooth_chamfer, "Chamfer": S.chamfer, "MIL": S.maximum_pair}
    steps = {name: graph(backward(f), a, b) for name, f in functions.items()}
    steps |= {f"{name}, XLA": graph(backward(f), a, b, xla=True) for name, f in functions.items()}
    steps["bare"] = graph(_three_products, *flat, tf.ones((len(flat[0]), len(flat[1]))))
    times = compare(steps, repeats=9, warmup=2)
    for name in list(times)[:-1]:
        report.add(
            similarity=name,
            ms=1e3 * times[name].seconds,
            bare_ms=1e3 * times["bare"].seconds,
            speed_of_the_products=times["bare"].seconds / times[name].seconds,
            by_CPU=times["bare"].cpu_seconds / times[name].cpu_seconds,
        )
    return report


def _three_products(a, b, upstream):
    return (
        tf.matmul(a, b, transpose_b=True),
        tf.matmul(upstream, b),
        tf.matmul(upstream, a, transpose_a=True),
    )


def streamed(items=512):
    title = f"Streamed sums, N = M = {items}, dim = {DIM}, blocks of {BLOCK:,} numbers"
    report = Report(title, SEED)
    report.notes.append(f"the broadcast is {ROWS} rows of {items}, scaled by {items // ROWS}")
    images, captions = gaussians(items), gaussians(items, seed=SEED + 1)
    some = rows_of(images, ROWS)
    for name, ours, broadcast in [
        ("expected likelihood", S.log_expected_likelihood, broadcasts.log_expected_likelihood),
        ("Bhattacharyya", S.bhattacharyya_distance, broadcasts.bhattacharyya),
    ]:
        for step, wrap in (("forward", lambda f: f), ("forward and backward", backward)):
            times = compare(
                {
                    "graph": graph(wrap(ours), images, captions),
                    "XLA": graph(wrap(ours), images, captions, xla=True),
                    "broadcast": graph(wrap(broadcast), some, captions),
                },
                repeats=3,
                warmup=1,
            )
            peak = peak_memory("benchmarks.similarities:streamed_step", items=items, step=step)
            report.add(
                quantity=name,
                step=step,
                graph_seconds=times["graph"].seconds,
                XLA_seconds=times["XLA"].seconds,
                broadcast_seconds=times["broadcast"].scaled(items / ROWS).seconds,
                graph_peak_MiB=peak / 2**20,
                broadcast_needs_MiB=items * items * DIM * 4 / 2**20,
            )
    return report


def streamed_step(items, step):
    function = S.log_expected_likelihood
    function = function if step == "forward" else backward(function)
    return graph(function, gaussians(items), gaussians(items, seed=SEED + 1))
