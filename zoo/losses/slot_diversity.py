"""Diversity: keeps the elements of one set from becoming the same point."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, EmbeddingLike, Tensor, as_embedding, elements
from zoo.losses.auxiliary import Auxiliary
from zoo.numerics import safe_sqrt, unit


def diversity(slots: EmbeddingLike) -> Tensor:
    """Mean over items and pairs k < l of exp(−2‖s_k − s_l‖²), slots normalised to length one.

    On unit vectors the distance is 2 − 2 cos, so a pair costs exp(−4(1 − cos)): 1 if the two
    coincide, e⁻⁴ if they are orthogonal, e⁻⁸ if they are opposite.

    Args:
        slots: sets `(batch, num_elements, dim)`; an embedding of sets may carry a `"mask"`.

    Returns:
        A float32 scalar in [0, 1]: the mean over the items that have a pair, 0 if none has.

    Raises:
        ValueError: if these are not sets.

    Relations: the uniformity of Wang and Isola inside each set, before its logarithm.

    Reference: DivE (Kim et al., CVPR 2023) section 3.4.

    Paper differs: it prints a plain sum over the pairs of slots as they are. The mean over items
        and pairs, of slots of unit length, is what its code takes, and what its 0.01 weighs.
    """
    values, mask = elements(slots, "slots")
    directions = unit(values)
    cosines = ops.matmul(directions, ops.transpose(directions, (0, 2, 1)))
    present = ops.ones_like(values[:, :, 0]) if mask is None else ops.cast(mask, "float32")
    index = ops.arange(ops.shape(values)[1])
    pairs = ops.cast(ops.less(index[:, None], index[None, :]), "float32")
    pairs = pairs * present[:, :, None] * present[:, None, :]
    count = ops.sum(pairs, axis=(1, 2))
    closeness = ops.sum(pairs * ops.exp(4.0 * (cosines - 1.0)), axis=(1, 2))
    items = ops.sum(ops.cast(ops.greater(count, 0.0), "float32"))
    return ops.divide_no_nan(ops.sum(ops.divide_no_nan(closeness, count)), items)


def orthogonal_diversity(slots: EmbeddingLike) -> Tensor:
    """Mean over items of ‖G − I‖ / K², G the cosines of the K slots of an item, Frobenius norm.

    Args:
        slots: sets `(batch, num_elements, dim)`; an embedding of sets may carry a `"mask"`.

    Returns:
        A float32 scalar in [0, 1): 0 if the slots of each item are orthogonal, or there is one.

    Raises:
        ValueError: if these are not sets.

    Relations: `diversity` also rewards slots that are opposite.

    Reference: PVSE (Song and Soleymani, CVPR 2019), equation 7.
    """
    values, mask = elements(slots, "slots")
    directions = unit(values)
    cosines = ops.matmul(directions, ops.transpose(directions, (0, 2, 1)))
    present = ops.ones_like(values[:, :, 0]) if mask is None else ops.cast(mask, "float32")
    others = present[:, :, None] * present[:, None, :] * (1.0 - ops.eye(values.shape[1]))
    norm = safe_sqrt(ops.sum((others * cosines) ** 2, axis=(1, 2)))
    return ops.mean(norm / ops.maximum(ops.sum(present, axis=1), 1.0) ** 2)


@keras.saving.register_keras_serializable(package="halo")
class Diversity(Auxiliary):
    """Diversity of the sets of the images plus that of the captions.

    ```python
    sets = {"elements": np.ones((4, 2, 8), "float32"), "slots": np.ones((4, 2, 8), "float32")}
    zoo.losses.Diversity()(sets, sets)
    ```

    Reads `"slots"` of an embedding if it has them (DivE takes its slots before they are
    normalised and joined by the global feature), else its `"elements"`.

    Args:
        weight: of the term; 0.01 in DivE.
        name: under which it is logged.

    Call arguments:
        images: sets, `(N, K, dim)`.
        captions: sets, `(M, L, dim)`.

    Output: a float32 scalar, unweighted.

    Raises:
        ValueError: if the embeddings are not sets.

    Reference: DivE (Kim et al., CVPR 2023) section 3.4.
    """

    def __init__(self, weight: float = 0.01, name: str = "diversity", **kwargs: Any):
        super().__init__(weight, name, **kwargs)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        return diversity(_slots(images)) + diversity(_slots(captions))


@keras.saving.register_keras_serializable(package="halo")
class OrthogonalDiversity(Auxiliary):
    """`orthogonal_diversity` of the images' slots plus that of the captions' (PVSE).

    ```python
    sets = {"elements": np.ones((4, 2, 8), "float32"), "slots": np.ones((4, 2, 8), "float32")}
    zoo.losses.OrthogonalDiversity()(sets, sets)
    ```

    Reads `"slots"` of an embedding if it has them (the local parts of PIE-Net's embeddings), else
    its `"elements"`.

    Args:
        weight: of the term.
        name: under which it is logged.

    Call arguments:
        images: sets, `(N, K, dim)`.
        captions: sets, `(M, L, dim)`.

    Output: a float32 scalar, unweighted.

    Reference: PVSE (Song and Soleymani, CVPR 2019), equation 7.
    """

    def __init__(self, weight: float = 0.1, name: str = "diversity", **kwargs: Any):
        super().__init__(weight, name, **kwargs)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        return orthogonal_diversity(_slots(images)) + orthogonal_diversity(_slots(captions))


def _slots(embedding):
    embedding = as_embedding(embedding)
    if "slots" not in embedding:
        return embedding
    return {"elements": embedding["slots"], "mask": embedding.get("mask")}


# The name in files of version 0.1.
keras.saving.get_custom_objects()["halo>GramDiversity"] = OrthogonalDiversity
