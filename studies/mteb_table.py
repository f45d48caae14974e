"""MTEB's evaluator and ours on the same galleries: recall and nAUC side by side.

    python -m studies.mteb_table photos_pfe --data-dir flickr8k --loader pairs --captions 1

Needs the extra `mteb`. MTEB indexes and asks the wrapped model through its own evaluator, without
network, and its JSON is written; ours are `zoo.metrics` and `zoo.confidence.abstention_auc` of the
retriever on the same gallery.
"""

import json
from pathlib import Path

import numpy as np

from studies.abstention.questions import rows_of
from zoo import data, metrics
from zoo.cli import OneLineParser, run
from zoo.confidence import abstention_auc
from zoo.data.records import Records
from zoo.errors import require
from zoo.evaluation import resizing_of
from zoo.retriever.mteb import MtebModel, retrieval_task

KS = (1, 5, 10)


def main(argv=None):
    options = _parser().parse_args(argv)
    mteb = require("mteb", extra="mteb")
    records = opened(options)
    model = MtebModel(options.preset)
    print("| direction | measure | MTEB | ours | difference |\n|---|---|---|---|---|")
    for direction in options.directions:
        task = retrieval_task(f"{options.data_dir.name}-{direction}", records, direction)
        result = mteb.evaluate(model, [task], cache=None, show_progress_bar=False)
        found = result.task_results[0].scores["test"][0]
        for name, value in ours(model, records, direction).items():
            print(
                f"| {direction} | {name} | {found[name]:.5f} | {value:.5f} | "
                f"{found[name] - value:+.1e} |",
                flush=True,
            )
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            path = options.out / f"{task.metadata.name}.json"
            path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def opened(options):
    """The records of the test split, with so many captions of each image."""
    described = {"loader": options.loader, "root": str(options.data_dir), "image_size": 224}
    shown = resizing_of(options.preset)
    described |= {"resize": shown["mode"], "crop_fraction": shown["crop_fraction"]}
    records = data.open(described, options.split).records
    count = options.captions * len(records.image_paths)
    rows = rows_of(records.captions, records.caption_image, count, options.seed)
    return Records(
        records.name,
        records.image_paths,
        [str(records.captions[row]) for row in rows],
        records.caption_image[rows],
        records.image_labels,
        records.image_ids,
    )


def ours(model, records, direction):
    """Our figures by MTEB's names, of the gallery that MTEB has just asked."""
    retriever = model.retriever
    labels = np.asarray(records.caption_labels), np.asarray(records.image_labels)
    asked, own = labels if direction == "t2i" else labels[::-1]
    questions = (
        [str(text) for text in records.captions]
        if direction == "t2i"
        else [Path(path) for path in records.image_paths]
    )
    answers = retriever.ask(questions, k=max(KS))
    is_right = own[np.stack([one.ids for one in answers])] == asked[:, None]
    said = np.array([one.probability or 0.0 for one in answers])
    found = {f"hit_rate_at_{k}": float(is_right[:, :k].any(axis=1).mean()) for k in KS}
    found["nauc_precision_at_1_max"] = abstention_auc(said, is_right[:, 0])
    similarity = np.zeros((len(answers), len(own)), np.float32)
    for row, one in enumerate(answers):
        similarity[row, one.ids] = 1 / (1 + np.arange(len(one.ids)))
    relevance = asked[:, None] == own[None]
    if (relevance.sum(axis=1) == 1).all():  # our recall is then MTEB's
        for k in KS:
            found[f"recall_at_{k}"] = metrics.recall_at_k(similarity, relevance, k)
    return found


def _parser():
    parser = OneLineParser(prog="python -m studies.mteb_table", description=__doc__)
    parser.add_argument("preset", help="a preset or a run")
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of the data set")
    parser.add_argument("--loader", choices=("pairs", "cub", "coco"), default="pairs")
    parser.add_argument("--split", choices=("validation", "test"), default="test")
    parser.add_argument("--captions", type=int, default=1, help="of each image (default 1)")
    parser.add_argument("--directions", nargs="+", choices=("t2i", "i2t"), default=["t2i"])
    parser.add_argument("--out", type=Path, help="folder for MTEB's JSON")
    parser.add_argument("--seed", type=int, default=0, help="of which captions (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
