"""Retrieval metrics of any model: over a folder of photos with captions, or its own test split."""

import os
from typing import Any

from zoo import metrics
from zoo.data.loaders.own_pairs import captioned_folder
from zoo.models import Tower


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
