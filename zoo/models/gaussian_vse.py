"""Gaussian VSE++ and Gaussian VSRN."""

from zoo.models.gaussian import gaussian
from zoo.models.vse import vsepp
from zoo.models.vsrn import vsrn


def gaussian_vsepp(
    image_backbone="resnet152",
    tokenizer=None,
    covariance="ellipsoidal",
    similarity=None,
    bounds=(0.1, 10.0),
    initial_log_variance=0.0,
    **points,
):
    """Gaussian VSE++: VSE++ with a second linear map and a second GRU for log σ².

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
    image_backbone=(36, 2048),
    tokenizer=None,
    covariance="spherical_mean",
    similarity=None,
    bounds=(0.1, 10.0),
    initial_log_variance=0.0,
    margin=0.1,
    **points,
):
    """Gaussian VSRN: VSRN with a second reasoning over regions and a second GRU for log σ².

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
