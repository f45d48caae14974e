"""What LiteRT's smaller weights cost in retrieval, and what each engine takes.

    OMP_NUM_THREADS=1 python -m studies.engines toy_birds_pfe

exports a run or preset to every engine and storage, encodes its test split with each, and prints
the size, the milliseconds of an image and of a caption on one core, one at a time, and R@1 and R@10
beside Keras' own.
"""

import dataclasses
import tempfile
import time
from pathlib import Path

import numpy as np

from export.choices import ENGINES
from export.engines import export_engine, opened
from zoo.cli import OneLineParser, run
from zoo.data.pipeline.batches import image_batches
from zoo.data.text.captions import token_ids
from zoo.evaluation import open_run
from zoo.evaluation.retrieval import encode
from zoo.metrics import evaluate_retrieval
from zoo.models.frozen import towers_of

WAYS = (
    ("litert", "float32"),
    ("litert", "float16"),
    ("litert", "dynamic_range"),
    ("onnx", "float32"),
    ("openvino", "float32"),
)
REPEATS = 50


def main(argv=None):
    options = _parser().parse_args(argv)
    model, split = open_run(options.run, options.data_dir)
    pictures = image_batches(split.records, split.source)
    inputs = {
        "images": np.concatenate([np.asarray(batch["images"]) for batch in pictures]),
        "captions": token_ids(model.tokenizer, split.records.captions),
    }
    whole = encode(model, split.records, split.source)
    print(f"{options.run}: {len(inputs['images']):,} images, {len(inputs['captions']):,} captions")
    print("| engine, weights | MB | ms an image | ms a caption | i2t R@1, R@10 | t2i R@1, R@10 |")
    print("|---|---|---|---|---|---|")
    print(_row("Keras, float32", None, None, _metrics(whole, model)), flush=True)
    for format, storage in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            out = export_engine(model, Path(folder) / "out", format, storage=storage)
            size = sum(path.stat().st_size for path in out.iterdir()) / 1e6
            found, times = {}, []
            for tower in towers_of(model):
                ask = opened(out / f"{tower.side}{ENGINES[format]}", tower, format)
                rows = inputs[tower.side]
                # Of one size, so that no engine plans its memory anew.
                parts = [ask(rows[start : start + 1]) for start in range(len(rows))]
                found[tower.side] = {
                    name: np.concatenate([part[name] for part in parts]) for name in tower.outputs
                }
                times.append(_milliseconds(ask, rows[:1]))
        results = _metrics(dataclasses.replace(whole, **found), model)
        print(_row(f"{format}, {storage}", size, times, results), flush=True)


def _metrics(encoded, model):
    return evaluate_retrieval(encoded.pairs(model.similarity), encoded.relevance)


def _milliseconds(ask, row):
    ask(row)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        ask(row)
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times))


def _row(name, size, times, results):
    said = ["", "", ""] if size is None else [f"{size:.1f}", *(f"{one:.1f}" for one in times)]
    recalls = [
        f"{results[f'{way}_recall@1']:.1f}, {results[f'{way}_recall@10']:.1f}"
        for way in ("i2t", "t2i")
    ]
    return "| " + " | ".join([name, *said, *recalls]) + " |"


def _parser():
    parser = OneLineParser(prog="python -m studies.engines", description=__doc__)
    parser.add_argument("run", metavar="RUN", help="a run folder, or the name of a preset")
    parser.add_argument("--data-dir", type=Path, help="the run's data set, if it has moved")
    return parser


if __name__ == "__main__":
    run(main)
