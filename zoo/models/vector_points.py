"""A model of stored vectors that trains nothing: the vectors themselves, at unit length."""

import keras

from zoo import similarities
from zoo.encoders.stored_features import vectors
from zoo.models.dual_encoder import DualEncoder


def vector_points(dim: int) -> DualEncoder:
    """Vectors of images and captions as they are, compared by cosine.

    With it evaluation, calibration, reports, indexes and exports take embeddings that another
    model has made, without any training.

    ```python
    model = zoo.models.vector_points(512)
    model.encode_images(np.eye(512))  # (512, 512), of length one
    ```

    Args:
        dim: channels of a vector, the same on both sides.

    Returns:
        A `DualEncoder` of points, without weights and without a loss.

    Relations: `zoo.models.infonce` of `zoo.encoders.vectors` with linear maps that are the
        identity.
    """
    return DualEncoder(
        _as_it_is(dim, "image_encoder"),
        _as_it_is(dim, "caption_encoder"),
        similarity=similarities.Cosine(),
        name="vector_points",
    )


def _as_it_is(dim, name):
    backbone = vectors(dim, normalize=True)
    inputs = keras.Input((dim,), name=name.partition("_")[0] + "s")
    return keras.Model(inputs, {"mean": backbone(inputs)["pooled"]}, name=name)
