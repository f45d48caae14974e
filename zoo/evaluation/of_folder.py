"""Retrieval metrics of any model: over a folder of photos with captions, or its own test split."""

import os
from typing import Any

from zoo import metrics, similarities
from zoo.data.loaders.captioned import captioned_folder
from zoo.embeddings import kind
from zoo.errors import InputError
from zoo.evaluation.retrieval import encode
from zoo.evaluation.runs import open_run
from zoo.files.run_folder import RunFolder
from zoo.metrics.command import show
from zoo.models import Tower
from zoo.models.cards import card_of
from zoo.models.presets import from_preset


def evaluate_folder(
    model: Any,
    folder: str | os.PathLike,
    images: str | os.PathLike | None = None,
    similarity: Any = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Encodes the photos and captions of a folder and measures how they find each other.

    ```python
    zoo.evaluation.evaluate_folder("siglip2_base_patch16_224", "flickr8k/")["t2i_recall@1"]
    ```

    Args:
        model: a `DualEncoder`, or what `zoo.from_preset` takes.
        folder, images: see `zoo.data.captioned_folder`.
        similarity: a layer; None takes the model's own.
        progress: whether to draw bars.

    Returns:
        As `zoo.metrics.evaluate_retrieval`, and `"recognised"`, one line on the folder.

    Raises:
        InputError: if the model or the folder cannot be read, or the model reads no pictures or no
            texts.
    """
    towers = {side: Tower(model, side) for side in ("images", "captions")}
    towers["images"].expect("pictures")
    towers["captions"].expect("texts")
    found = captioned_folder(folder, images)
    encoded = (
        towers["images"].of_files(found.photos, progress=progress),
        towers["captions"].of_texts(found.captions, progress=progress),
    )
    pairs = metrics.PairwiseSimilarity(*encoded, similarity or towers["images"].model.similarity)
    relevance = metrics.LabelRelevance(range(len(found.photos)), found.caption_image)
    return {"recognised": found.recognised, **metrics.evaluate_retrieval(pairs, relevance)}


def main(options):
    """What `halo evaluate --model` does."""
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
    show({"similarity": layer.identifier, **results}, options.out)
