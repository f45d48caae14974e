"""DivE's match probability of sets: the mean over pairs of elements of a sigmoid of the cosine."""

import keras
from keras import ops

from zoo.embeddings import SET
from zoo.numerics import element_pair, elements_first, product, sizes, unit
from zoo.similarities.base import Similarity
from zoo.similarities.scale import add_scale_and_shift


@keras.saving.register_keras_serializable(package="halo")
class SetMatchProbability(Similarity):
    """Mean over all pairs of elements of sigmoid(scale · cos(x, y) + shift); DivE's row "MP".

    A probability, for losses with a margin, and not a logit.

    ```python
    images = np.array([[[1.0, 0.0], [0.0, 1.0]]])  # one set of two
    captions = np.array([[[0.6, 0.8]]])  # one set of one
    zoo.similarities.SetMatchProbability()(images, captions)  # (1, 1)
    ```

    Args:
        scale: initial value of the learned α > 0.
        shift: initial value of the learned β.

    Call arguments:
        images: sets `(N, K, dim)`, optionally with a mask.
        captions: sets `(M, L, dim)`, optionally with a mask.

    Output: `(N, M)` float32 in [0, 1]; 0 for a set without a valid element.

    Raises:
        ValueError: if one side is not a set, the dimensions differ, a mask does not fit or the
            scale is not positive.

    Relations: `MatchProbability` is PCME's, of the distances between samples; on unit vectors the
        squared distance is 2 − 2 cos.

    Reference: DivE (Kim et al., CVPR 2023), section 3.3 and table 3. It prints the sum over pairs,
        and speaks of their average, which this is.

    Released code differs: its α = 1 and β = 0 are no parameters of the model and stay.
    """

    identifier = "set_match_probability"
    embeddings = (SET,)
    space = "elements"

    def __init__(self, scale=1.0, shift=0.0, **kwargs):
        super().__init__(**kwargs)
        add_scale_and_shift(self, scale, shift)

    def call(self, images, captions):
        (images, image_mask), (captions, caption_mask) = element_pair(images, captions)
        (n, k, _), (m, length, _) = sizes(images), sizes(captions)
        cosines = product(elements_first(unit(images)), elements_first(unit(captions)))
        pairs = ops.sigmoid(self.scale * ops.reshape(cosines, (k, n, length, m)) + self.shift)
        rows = ops.sum(pairs * _shares(image_mask, (k, n, 1, 1)), axis=0)
        return ops.sum(rows * _shares(caption_mask, (1, length, m)), axis=1)

    def get_config(self):
        return {**super().get_config(), "scale": self.initial_scale, "shift": self.initial_shift}


def _shares(mask, shape):
    """What each element counts in the mean of its set, elements before items."""
    if mask is None:
        count = shape[0] if len(shape) == 4 else shape[1]
        return ops.cast(1.0 / count, "float32")
    mask = ops.cast(mask, "float32")
    shares = mask / ops.maximum(ops.sum(mask, axis=1, keepdims=True), 1.0)
    return ops.reshape(ops.transpose(shares), shape)
