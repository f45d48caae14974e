"""Gaussian VSE++ and Gaussian VSRN."""

from typing import Any

import keras

from zoo.encoders.image_features import ImageBackbone
from zoo.models.dual_encoder import DualEncoder
from zoo.models.gaussian import gaussian
from zoo.models.vse import vsepp
from zoo.models.vsrn import vsrn


def gaussian_vsepp(
    image_backbone: ImageBackbone = "resnet152",
    tokenizer: keras.layers.Layer | None = None,
    covariance: str = "ellipsoidal",
    similarity: keras.layers.Layer | None = None,
    bounds: tuple[float, float] = (0.1, 10.0),
    initial_log_variance: float = 0.0,
    **points: Any,
) -> DualEncoder:
    """Gaussian VSE++: VSE++ with a second linear map and a second GRU for log σ².

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.gaussian_vsepp("tiny", words, dim=8, word_dim=4, image_size=32)
    model.encode_captions(["a red bird"]).stddev()  # (1, 8)
    ```

    The defaults are the paper's for COCO. For Flickr30K it has `covariance="spherical_mean",
    similarity=zoo.similarities.KLDivergence()`.

    Args:
        image_backbone, tokenizer, **points: of `vsepp`.
        covariance, similarity, bounds, initial_log_variance: of `gaussian`.

    Returns:
        A `DualEncoder` of Gaussians, not compiled. Its loss sums over the batch.

    Raises:
        ValueError: as `vsepp` and `gaussian`.

    Reference: Pishdad et al., "Uncertainty-based Cross-Modal Retrieval with Probabilistic
        Representations", 2022.
    """
    model = vsepp(image_backbone, tokenizer, **points)
    return gaussian(model, covariance, similarity, bounds, initial_log_variance)


def gaussian_vsrn(
    image_backbone: ImageBackbone = (36, 2048),
    tokenizer: keras.layers.Layer | None = None,
    covariance: str = "spherical_mean",
    similarity: keras.layers.Layer | None = None,
    bounds: tuple[float, float] = (0.1, 10.0),
    initial_log_variance: float = 0.0,
    margin: float = 0.1,
    **points: Any,
) -> DualEncoder:
    """Gaussian VSRN: VSRN with a second GRU over regions and one over words for log σ².

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.gaussian_vsrn((36, 64), words, dim=8, word_dim=4)  # 36 regions of 64 numbers
    model.encode_images(np.ones((1, 36, 64), "float32"))
    ```

    The defaults are the paper's for Flickr30K. For COCO it has `covariance="ellipsoidal"`.

    Args:
        image_backbone, tokenizer, **points: of `vsrn`.
        covariance, similarity, bounds, initial_log_variance: of `gaussian`.
        margin: of the triplet loss.

    Returns:
        A `DualEncoder` of Gaussians, not compiled. Its loss sums over the batch.

    Raises:
        ValueError: as `vsrn` and `gaussian`.

    Reference: Pishdad et al., "Uncertainty-based Cross-Modal Retrieval with Probabilistic
        Representations", 2022.
    """
    model = vsrn(image_backbone, tokenizer, margin=margin, **points)
    return gaussian(model, covariance, similarity, bounds, initial_log_variance)
