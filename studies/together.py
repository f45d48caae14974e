"""Several models as one: their unit vectors side by side, whose cosine is the mean of theirs."""

from collections.abc import Sequence

import numpy as np

from zoo.embeddings import SET, kind
from zoo.embeddings.arrays import as_arrays, unit
from zoo.evaluation.retrieval import EncodedSplit


def together(splits: Sequence[EncodedSplit]) -> EncodedSplit:
    """The same split as several models encode it, as one of points.

    ```python
    encoded = [zoo.evaluation.encode(model, split.records, split.source) for model in models]
    both = together.together(encoded)
    zoo.metrics.evaluate_retrieval(both.pairs(zoo.similarities.Cosine()), both.relevance)
    ```

    Args:
        splits: `EncodedSplit`s of the same images and captions, of points, directions or Gaussians,
            of which the means count.

    Returns:
        An `EncodedSplit` of unit vectors [x₁ / ‖x₁‖, …, x_n / ‖x_n‖] / √n.

    Raises:
        ValueError: if there is none, they are of other images or captions, or one is of sets.

    Relations: the cosine of two such vectors is the mean of the models' cosines, so any index
        searches the ensemble exactly. `ensemble` averages the similarities of any models.
    """
    if not splits:
        raise ValueError("`splits` must hold at least one; received none")
    records = splits[0].records
    for other in splits[1:]:
        same = np.array_equal(records.image_ids, other.records.image_ids)
        if not same or list(records.captions) != list(other.records.captions):
            raise ValueError(
                f"`splits` must be of the same images and captions; received {records.name!r} and "
                f"{other.records.name!r}"
            )
    sides = [
        _side_by_side([getattr(one, side) for one in splits]) for side in ("images", "captions")
    ]
    return EncodedSplit(records, *({"mean": vectors} for vectors in sides))


def _side_by_side(embeddings):
    parts = [as_arrays(one) for one in embeddings]
    if any(kind(part) == SET for part in parts):
        raise ValueError(f"`splits` must have one mean an item; received {SET}")
    return np.concatenate([unit(part["mean"]) for part in parts], axis=1) / np.sqrt(len(parts))
