"""What `halo evaluate` measures: saved embeddings, or a model over photos with captions."""

import json

from halo_search.cli.parser import naming
from halo_search.errors import InputError
from halo_search.files.array_files import read_arrays
from zoo import metrics, similarities
from zoo.embeddings import GAUSSIAN, POINT, SET, kind
from zoo.evaluation.retrieval import encode, evaluate_folder
from zoo.evaluation.runs import open_run
from zoo.metrics import PairwiseSimilarity, coco_benchmark, evaluate_retrieval
from zoo.metrics.ranks import LabelRelevance
from zoo.models.run_folder import RunFolder
from zoo.presets import from_preset
from zoo.presets.folders import card_of

PARTS = ("mean", "log_variance", "elements")
BY_KIND = {POINT: "cosine", GAUSSIAN: "csd", SET: "smooth_chamfer"}  # what ranks by default


def evaluate(options):
    """Measures what the options of `halo evaluate` name, and prints it."""
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
    """An array by its name; an InputError that lists the others if it is missing."""
    if name not in arrays:
        raise InputError(f"{path}: lacks the array {name!r}; it has {sorted(arrays)}")
    return arrays[name]


def _embedding(arrays, side, options):
    """One side's embedding, a dict of arrays by part. Raises InputError without a mean or
    elements."""
    embedding = {part: arrays[f"{side}_{part}"] for part in PARTS if f"{side}_{part}" in arrays}
    if "mean" not in embedding and "elements" not in embedding:
        _array(arrays, f"{side}_mean", options.embeddings)  # raises, naming it
    return embedding


def _similarity(name, images):
    """The similarity layer of a name, or the usual one for this kind of embedding. Raises
    InputError if it cannot compare them."""
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
