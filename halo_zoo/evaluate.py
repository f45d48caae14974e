"""Evaluates saved embeddings, or a model over photos with captions.

    halo evaluate EMBEDDINGS.npz
    halo evaluate --model siglip2_base_patch16_224 --pairs flickr8k/

A model is whatever `zoo.from_preset` opens, and `--pairs` a folder in any layout of
`zoo.data.captioned_folder`; without it a run or preset is evaluated on its own test split. The file
of embeddings holds `image_mean` and `caption_mean` `(items, dim)`, for Gaussians also
`image_log_variance` and `caption_log_variance`, for sets `image_elements` and `caption_elements`
`(items, elements, dim)` instead; and `image_labels` and `caption_labels` `(items,)`, equal labels
match. With `--coco DIR` the labels are `image_ids` and `caption_ids` of the Karpathy test split.
"""

import importlib
import json
from pathlib import Path

from zoo.cli import OneLineParser, naming
from zoo.cli.bounds import BY_KIND, SIMILARITIES, check_model, check_path
from zoo.errors import InputError

PARTS = ("mean", "log_variance", "elements")


def main(argv=None):
    parser = _parser()
    options = parser.parse_args(argv)
    if (options.embeddings is None) == (options.model is None):
        parser.error("expected EMBEDDINGS.npz or --model, one of these")
    if options.model is None and (options.pairs or options.image_dir):
        parser.error("--pairs and --image-dir need --model")
    if options.model is not None and options.coco:
        parser.error("--coco needs EMBEDDINGS.npz")
    check_path(options.embeddings, f"{options.embeddings}: there is no such file")
    check_path(options.pairs, f"--pairs {options.pairs}: no such file or folder")
    check_path(options.image_dir, f"--image-dir {options.image_dir}: no such folder")
    check_path(options.coco, f"--coco {options.coco}: no such folder")
    with naming("--model", options.model):
        check_model(options.model)
    importlib.import_module("zoo.training.registered")  # after the flags: it imports Keras
    with naming("--model", options.model):
        results = _of_file(options) if options.model is None else _of_model(options)
    if options.out:
        options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    width = max(map(len, results))
    for key, value in results.items():
        shown = f"{value:10.2f}" if isinstance(value, float) else f"{value!s:>10}"
        print(f"{key:{width}} {shown}")


def _of_file(options):
    """The metrics of a file of embeddings."""
    from zoo.files.array_files import read_arrays
    from zoo.metrics import PairwiseSimilarity, coco_benchmark, evaluate_retrieval
    from zoo.metrics.ranks import LabelRelevance

    arrays = read_arrays(options.embeddings)
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
    return {"similarity": layer.identifier, **results}


def _of_model(options):
    """The metrics of a model over a folder, or over its own test split."""
    from zoo import metrics, similarities
    from zoo.embeddings import kind
    from zoo.evaluation.retrieval import encode, evaluate_folder
    from zoo.evaluation.runs import open_run
    from zoo.models.presets import card_of, from_preset
    from zoo.models.run_folder import RunFolder

    model, name = from_preset(options.model), options.similarity
    try:
        layer = model.similarity if name is None else similarities.get(name, model)
    except (ValueError, TypeError) as error:
        raise InputError(f"--similarity: {error}") from error
    output = getattr(model.image_encoder, "output", None)
    if name and isinstance(output, dict) and kind(output) not in layer.embeddings:
        raise InputError(
            f"--similarity {name} takes {' or '.join(layer.embeddings)}; the model gives "
            f"{kind(output)}"
        )
    if options.pairs is not None:
        results = evaluate_folder(model, options.pairs, options.image_dir, layer, progress=True)
        print(results.pop("recognised"))
    else:
        card = card_of(options.model)
        if not (RunFolder(options.model).is_run or (card and "data" in card)):
            raise InputError(
                f"--model {options.model}: names no test data; give --pairs a folder of photos "
                "with captions"
            )
        model, split = open_run(options.model)
        encoded = encode(model, split.records, split.source)
        print(split.records.summary())
        results = metrics.evaluate_retrieval(encoded.pairs(layer), encoded.relevance)
    return {"similarity": layer.identifier, **results}


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
    from zoo import similarities
    from zoo.embeddings import kind

    what = kind(images)
    try:
        layer = similarities.get(name or BY_KIND[what])
    except ValueError as error:
        raise InputError(f"--similarity: {error}") from error
    if what not in layer.embeddings:
        raise InputError(
            f"--similarity {name} takes {' or '.join(layer.embeddings)}; the file holds {what}"
        )
    return layer


def _parser():
    description, details = __doc__.split("\n\n", 1)
    parser = OneLineParser(
        prog="halo evaluate",
        description=description,
        epilog=details,
    )
    parser.add_argument("embeddings", type=Path, nargs="?", metavar="EMBEDDINGS.npz")
    parser.add_argument("--model", help="name, folder or handle of a model to encode with")
    parser.add_argument(
        "--pairs", type=Path, metavar="FOLDER", help="folder of photos with captions"
    )
    parser.add_argument(
        "--image-dir",
        type=Path,
        metavar="DIR",
        help="folder of its photos (default: found below FOLDER)",
    )
    parser.add_argument(
        "--similarity",
        metavar="NAME",
        help=f"{', '.join(SIMILARITIES)}, with its default settings "
        f"(default: the model's own; of a file "
        f"{', '.join(f'{name} for {kind}' for kind, name in BY_KIND.items())})",
    )
    parser.add_argument(
        "--coco",
        type=Path,
        metavar="DIR",
        help="folder of ECCV Caption's files; prints COCO 1K and 5K, CxC and ECCV Caption",
    )
    parser.add_argument(
        "--instances",
        type=Path,
        nargs="+",
        metavar="JSON",
        help="COCO instances of the test images, for PMRP; requires --coco",
    )
    parser.add_argument("--out", type=Path, metavar="JSON", help="file to write the figures to")
    return parser
