"""PCME's match probability with the elements of sets in place of samples."""

import keras
from keras import ops

from zoo.embeddings import SET
from zoo.similarities.sampled import sampled_logit
from zoo.similarities.scale import ScaledSimilarity


@keras.saving.register_keras_serializable(package="halo")
class SetMatchProbability(ScaledSimilarity):
    """Mean over all pairs of elements of sigmoid(−scale · ‖x − y‖₂ + shift); DivE's row "MP".

    A probability, for losses with a margin, where `MatchProbability` is its logit.

    ```python
    images = np.array([[[1.0, 0.0], [0.0, 1.0]]])  # one set of two
    captions = np.array([[[0.6, 0.8]]])  # one set of one
    zoo.similarities.SetMatchProbability()(images, captions)  # (1, 1)
    ```

    Args:
        scale: initial value of the learned a > 0.
        shift: initial value of the learned b.

    Call arguments:
        images: sets `(N, K, dim)`, optionally with a mask.
        captions: sets `(M, L, dim)`, optionally with a mask.

    Output: `(N, M)` float32 in [0, 1].

    Relations: the sigmoid of `MatchProbability` on sets.

    Reference: DivE (Kim et al., CVPR 2023), table of similarities; PCME (Chun et al., CVPR 2021),
        equation 3.

    Released code differs: DivE's is of the cosine, with a = 1 and b = 0 that are not learned.
    """

    identifier = "set_match_probability"
    embeddings = (SET,)
    space = "elements"

    def __init__(self, scale=5.0, shift=5.0, **kwargs):
        super().__init__(scale, shift, **kwargs)

    def call(self, images, captions):
        return ops.sigmoid(sampled_logit(images, captions, self.scale, self.shift))
