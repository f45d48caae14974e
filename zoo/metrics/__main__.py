"""Evaluates saved embeddings: `python -m zoo.metrics EMBEDDINGS.npz`.

The file holds `image_mean` and `caption_mean` `(items, dim)`, for Gaussians also
`image_log_variance` and `caption_log_variance`, for sets `image_elements` and `caption_elements`
`(items, elements, dim)` instead; and `image_labels` and `caption_labels` `(items,)`, equal labels
match. With `--coco DIR` the labels are `image_ids` and `caption_ids` of the Karpathy test split.
"""

import json
import pathlib
import zipfile

import numpy as np

from zoo import similarities
from zoo.cli import OneLineParser, program, run
from zoo.embeddings import GAUSSIAN, POINT, SET, kind
from zoo.errors import InputError
from zoo.metrics import PairwiseSimilarity, coco_benchmark, evaluate_retrieval
from zoo.metrics.relevance import LabelRelevance

PARTS = ("mean", "log_variance", "elements")
DEFAULTS = {POINT: "cosine", GAUSSIAN: "csd", SET: "smooth_chamfer"}


def main(argv=None):
    options = _parser().parse_args(argv)
    arrays = _load(options.embeddings)
    images, captions = _embedding(arrays, "image", options), _embedding(arrays, "caption", options)
    layer = _similarity(options.similarity, images)
    try:
        pairs = PairwiseSimilarity(images, captions, layer)
        if options.coco:
            names = ("image_ids", "caption_ids")
            ids = [_array(arrays, name, options.embeddings) for name in names]
            results = coco_benchmark(pairs, *ids, options.coco, instances=options.instances)
        else:
            names = ("image_labels", "caption_labels")
            labels = [_array(arrays, name, options.embeddings) for name in names]
            results = evaluate_retrieval(pairs, LabelRelevance(*labels))
    except ValueError as error:
        raise InputError(f"{options.embeddings}: {error}") from error
    results = {"similarity": layer.identifier, **results}
    if options.out:
        options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    width = max(map(len, results))
    for key, value in results.items():
        shown = f"{value:10.2f}" if isinstance(value, float) else f"{value!s:>10}"
        print(f"{key:{width}} {shown}")


def _parser():
    description, details = __doc__.split("\n\n", 1)
    parser = OneLineParser(
        prog=program("python -m zoo.metrics"), description=description, epilog=details
    )
    parser.add_argument("embeddings", type=pathlib.Path, metavar="EMBEDDINGS.npz")
    parser.add_argument(
        "--similarity",
        metavar="NAME",
        help=f"{', '.join(similarities.NAMES)}, with its default settings "
        f"(default: {', '.join(f'{name} for {kind}' for kind, name in DEFAULTS.items())})",
    )
    parser.add_argument(
        "--coco",
        type=pathlib.Path,
        metavar="DIR",
        help="folder of ECCV Caption's files: print COCO 1K and 5K, CxC and ECCV Caption",
    )
    parser.add_argument(
        "--instances",
        type=pathlib.Path,
        nargs="+",
        metavar="JSON",
        help="with --coco: COCO instances JSON of the test images, for PMRP",
    )
    parser.add_argument("--out", type=pathlib.Path, metavar="JSON", help="also write the figures")
    return parser


def _load(path):
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        with np.load(path) as arrays:
            return dict(arrays)
    except (ValueError, OSError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: expected an .npz file of arrays; {error}") from error


def _array(arrays, name, path):
    if name not in arrays:
        raise InputError(f"{path}: lacks the array {name!r}; it has {sorted(arrays)}")
    return arrays[name]


def _embedding(arrays, side, options):
    found = {part: arrays[f"{side}_{part}"] for part in PARTS if f"{side}_{part}" in arrays}
    if "mean" not in found and "elements" not in found:
        _array(arrays, f"{side}_mean", options.embeddings)  # raises, naming it
    return found


def _similarity(name, images):
    what = kind(images)
    try:
        layer = similarities.get(name or DEFAULTS[what])
    except ValueError as error:
        raise InputError(f"--similarity: {error}") from error
    if what not in layer.embeddings:
        raise InputError(
            f"--similarity {name} takes {' or '.join(layer.embeddings)}; the file holds {what}"
        )
    return layer


if __name__ == "__main__":
    run(main)
