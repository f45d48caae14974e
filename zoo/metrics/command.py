"""What `halo evaluate` does."""

import json

from zoo import similarities
from zoo.choices import BY_KIND
from zoo.embeddings import kind
from zoo.errors import InputError
from zoo.files.array_files import read_arrays
from zoo.metrics import PairwiseSimilarity, coco_benchmark, evaluate_retrieval
from zoo.metrics.relevance import LabelRelevance

PARTS = ("mean", "log_variance", "elements")


def main(options):
    """Prints the metrics of a file of embeddings."""
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
    show({"similarity": layer.identifier, **results}, options.out)


def show(results, out=None):
    """Prints results a line each, and writes them as JSON to `out` where it is given."""
    if out:
        out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    width = max(map(len, results))
    for key, value in results.items():
        shown = f"{value:10.2f}" if isinstance(value, float) else f"{value!s:>10}"
        print(f"{key:{width}} {shown}")


def _load(path):
    return read_arrays(path)


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
        layer = similarities.get(name or BY_KIND[what])
    except ValueError as error:
        raise InputError(f"--similarity: {error}") from error
    if what not in layer.embeddings:
        raise InputError(
            f"--similarity {name} takes {' or '.join(layer.embeddings)}; the file holds {what}"
        )
    return layer
