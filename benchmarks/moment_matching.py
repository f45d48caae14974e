"""Match probability without sampling: how near the truth, and at what cost.

`python -m benchmarks moment_matching`. The truth is the mean over many independent draws of both
sides of a pair. "Trained" embeddings are free tables of μ and log σ² that PCME's loss has fitted to
ambiguous matches: classes in pairs, of which every other caption fits both.
"""

import keras
import numpy as np
from keras import ops
from scipy.special import expit

from benchmarks.report import Report
from benchmarks.timing import compare
from zoo import similarities as S
from zoo.losses import MatchingCrossentropy, kl_to_standard_normal

SEED = 0
PAIRS, DRAWS = 96, 20_000


def main():
    return [accuracy(), cost()]


def accuracy():
    report = Report(f"Root mean square error of the match probability, {PAIRS} pairs", SEED)
    report.notes.append(f"truth: {DRAWS:,} independent draws a pair; its own error is the floor")
    report.notes.append("pairs: half of matches, half at random; J = 7 × 7 samples as in PCME")
    for dim in (2, 16, 128, 1024):
        report.add(embeddings="random", dim=dim, **_errors(*_random(dim), scale=10.0, shift=12.0))
    for dim in (2, 16, 128):
        images, captions, matches, layer = _trained(dim)
        scale, shift = float(layer.scale), float(layer.shift)
        report.add(
            embeddings="trained", dim=dim, **_errors(images, captions, matches, scale, shift)
        )
    return report


def _random(dim, count=64):
    """Unit means, every caption near its image, total variance about 0.1 to 0.6."""
    rng = np.random.default_rng(SEED)
    base = rng.normal(size=(count, dim))
    sides = []
    for _ in range(2):
        mean = base + rng.normal(size=base.shape)
        log_variance = np.log(0.3 / dim) + 0.5 * rng.normal(size=base.shape)
        mean /= np.linalg.norm(mean, axis=1, keepdims=True)
        sides.append({"mean": np.float32(mean), "log_variance": np.float32(log_variance)})
    return *sides, np.eye(count, dtype="float32")


def _trained(dim, classes=16, per_class=4, steps=400):
    """Tables of Gaussians fitted by PCME's loss; every other caption matches two classes."""
    rng = np.random.default_rng(SEED)
    keras.utils.set_random_seed(SEED)
    label = np.repeat(np.arange(classes), per_class)
    vague = np.arange(len(label)) % 2 == 1
    is_match, pair = label[:, None] == label, label[:, None] // 2 == label // 2
    matches = np.float32(np.where(vague[None], pair, is_match))
    tables = [
        keras.Variable(rng.normal(size=(len(label), dim)) / np.sqrt(dim) - bias, dtype="float32")
        for _ in range(2)
        for bias in (0.0, 4.0 + np.log(dim))
    ]
    layer = S.MatchProbability(10.0, 10.0, num_samples=7, seed=SEED)
    loss = MatchingCrossentropy(reduction="mean")
    optimizer = keras.optimizers.Adam(0.02)
    variables = [*tables, *layer.trainable_variables]
    optimizer.build(variables)

    import tensorflow as tf

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            images, captions = _sides(tables)
            total = loss(matches, layer(images, captions, training=True))
            regulariser = kl_to_standard_normal(images) + kl_to_standard_normal(captions)
            total += 1e-4 * ops.mean(regulariser)
        optimizer.apply(tape.gradient(total, [v.value for v in variables]), variables)

    for _ in range(steps):
        step()
    images, captions = ({k: np.asarray(v) for k, v in side.items()} for side in _sides(tables))
    return images, captions, matches, layer


def _sides(tables):
    # means on the unit sphere, as PCME's
    image, image_log, caption, caption_log = (ops.convert_to_tensor(t) for t in tables)
    return (
        {"mean": ops.normalize(image, axis=-1), "log_variance": image_log},
        {"mean": ops.normalize(caption, axis=-1), "log_variance": caption_log},
    )


def _errors(images, captions, matches, scale, shift):
    rng = np.random.default_rng(SEED)
    candidates = np.argwhere(matches > 0)
    matched = candidates[rng.choice(len(candidates), PAIRS // 2, replace=False)]
    chosen = np.concatenate([matched, rng.integers(0, len(matches), size=(PAIRS // 2, 2))])
    truth, floor = np.array(
        [_truth(rng, *_pair(images, captions, i, j), scale, shift) for i, j in chosen]
    ).T
    sampled = S.MatchProbability(scale, shift, num_samples=7, seed=SEED)
    values = {
        "sampled_J7": expit(sampled(images, captions, training=True)),
        "moment_matched": S.moment_matched_match_probability(images, captions, scale, shift),
    }
    row = {"mean_probability": truth.mean(), "spread": truth.std()}
    row |= {k: _rms(np.asarray(v)[tuple(chosen.T)] - truth) for k, v in values.items()}
    return {**row, "floor": _rms(floor), "closer": row["sampled_J7"] / row["moment_matched"]}


def _pair(images, captions, i, j):
    return (images["mean"][i], images["log_variance"][i]), (
        captions["mean"][j],
        captions["log_variance"][j],
    )


def _truth(rng, image, caption, scale, shift, block=2000):
    values = []
    for _ in range(DRAWS // block):
        z, t = (
            mean + np.exp(0.5 * log) * rng.standard_normal((block, mean.size), dtype="float32")
            for mean, log in (image, caption)
        )
        values.append(expit(shift - scale * np.linalg.norm(z - t, axis=-1)))
    values = np.concatenate(values)
    return values.mean(), values.std() / np.sqrt(values.size)


def _rms(error):
    return float(np.sqrt(np.mean(np.square(error))))


def cost(items=1024, dim=512):
    from benchmarks.similarities import gaussians, graph

    report = Report(f"Cost of one matrix, N = M = {items}, dim = {dim}, forward", SEED)
    images, captions = gaussians(items, dim), gaussians(items, dim, seed=SEED + 1)
    layers = {
        "sampled, J = 7": S.MatchProbability(1.0, 30.0, num_samples=7),
        "moment-matched": S.MatchProbability(1.0, 30.0, method="moment_matched"),
    }
    times = compare({k: graph(v, images, captions) for k, v in layers.items()}, repeats=5)
    for name, time in times.items():
        report.add(
            method=name,
            seconds=time.seconds,
            cpu_seconds=time.cpu_seconds,
            cheaper=times["sampled, J = 7"].cpu_seconds / time.cpu_seconds,
        )
    return report
