"""What a run on stored vectors takes: time and memory of each method, and the speed of its steps.

`python -m benchmarks own_vectors`. 100,000 pairs of 512 dimensions, each method in a process of its
own; memory is what the process has beyond one that has imported the library.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from benchmarks.report import Report
from benchmarks.timing import children_cpu_seconds, compare
from zoo import encoders, models

PAIRS, DIM, BATCH, SEED = 100_000, 512, 1024, 0
METHODS = ("none", "pcmepp")
MINUTES = {"none": 3.0}
TRAINED_MINUTES, MEMORY_GIB, SHARE = 5.0, 1.0, 0.6
_RECIPES = Path(__file__).parent.parent / "recipes"
_RUN = """
import json, resource, sys
sys.path[:0] = sys.argv[1:2]
import own_vectors
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
if sys.argv[2] == "read":
    from zoo import data
    before = peak()
    files = {"loader": "vectors", "images": sys.argv[3], "captions": sys.argv[4]}
    splits = [data.open(files, split) for split in ("train", "validation", "test")]
    print(json.dumps({"bytes": peak() - before}))
else:
    own_vectors.main(sys.argv[2:])
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder))
        return [runs(files, Path(folder)), steps()]


def write(folder):
    """Noisy pairs of unit vectors."""
    rng = np.random.default_rng(SEED)
    truth = rng.standard_normal((PAIRS, DIM), dtype=np.float32)
    for name in ("images", "captions"):
        noisy = truth + 1.6 * rng.standard_normal(truth.shape, dtype=np.float32)
        np.save(folder / f"{name}.npy", noisy / np.linalg.norm(noisy, axis=1, keepdims=True))
    return [str(folder / f"{name}.npy") for name in ("images", "captions")]


def runs(files, folder):
    report = Report(f"Runs on {PAIRS:,} pairs × {DIM}, import and evaluation included", SEED)
    read = json.loads(_process("read", *files).stdout.splitlines()[-1])
    report.notes.append(
        f"reading all splits: {read['bytes'] / 2**30:.2f} GiB beyond the library, mapping "
        f"included (target {MEMORY_GIB:.0f} beyond the mapping)"
    )
    for method in METHODS:
        flags = [f"--images={files[0]}", f"--captions={files[1]}", f"--method={method}"]
        start, used = time.perf_counter(), children_cpu_seconds()
        _process(*flags, f"--out={folder / method}")
        minutes, used = (time.perf_counter() - start) / 60, children_cpu_seconds() - used
        results = json.loads((folder / method / "metrics.json").read_text())
        retrieval = next(iter(results["retrieval"].values()))
        report.add(
            method=method,
            minutes=minutes,
            cpu_minutes=used / 60,
            target_minutes=MINUTES.get(method, TRAINED_MINUTES),
            t2i_recall_1=retrieval["t2i_recall@1"],
        )
    return report


def steps():
    """A training step beside the products of matrices that it cannot do without."""
    report = Report(f"Steps on {BATCH} pairs × {DIM}", SEED)
    rng = np.random.default_rng(SEED)
    sides = rng.standard_normal((2, BATCH, DIM), dtype=np.float32)
    labels = np.arange(BATCH)
    batch = {"images": sides[0], "captions": sides[1]}
    batch |= {"image_labels": labels, "caption_labels": labels}
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    for name, build in {"infonce": models.infonce, "pcmepp": models.pcmepp}.items():
        model = build(
            encoders.vectors(DIM, normalize=True),
            caption_backbone=encoders.vectors(DIM, normalize=True),
            dim=DIM,
            pooling="mean",
            drop_rate=0.0,
        )
        model.compile(keras.optimizers.AdamW(1e-4))
        model.make_train_function()
        endless = iter(tf.data.Dataset.from_tensors(tensors).repeat())
        maps = 2 if name == "infonce" else 4  # linear maps of both sides
        # Of a map its output and its gradient, since nothing trains below it; of the similarity its
        # output and both gradients. Each has factors of its own.
        pairs = [(BATCH, DIM, DIM)] * 2 * maps + [(BATCH, DIM, BATCH)] * 3
        factors = [(tf.random.normal((n, k)), tf.random.normal((k, m))) for n, k, m in pairs]

        @tf.function
        def products(factors):
            return [tf.linalg.matmul(first, second)[0, 0] for first, second in factors]

        times = compare(
            {
                "step": lambda model=model, batches=endless: model.train_function(batches),
                "products": lambda products=products, factors=factors: products(factors),
            },
            repeats=25,
        )
        step, bare = times["step"].seconds, times["products"].seconds
        report.add(method=name, step_ms=1000 * step, products_ms=1000 * bare, share=bare / step)
    report.notes.append(f"target: a share of {SHARE:.0%}")
    return report


def _process(*arguments):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(_RECIPES), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return done
