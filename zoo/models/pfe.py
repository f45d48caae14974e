"""Variances over a frozen model of points: probabilistic face embeddings, of images and texts."""

import math

import keras

from zoo import losses, similarities
from zoo.layers.gaussian_head import Covariance
from zoo.models import inputs as checked
from zoo.models.dual_encoder import DualEncoder


def pfe(
    model: DualEncoder,
    scale: float = 5.0,
    shift: float = 5.0,
    likelihood_weight: float = 1.0,
    regularization: float = 0.01,
    image_features: bool = False,
    ambiguity_weight: float = 0.0,
) -> DualEncoder:
    """Makes Gaussians of a trained model of points, whose means stay the points that they were.

    A linear map of each point gives its log σ², learnt from pairs: by their mutual likelihood,
    which makes Σσ² of an image and a caption add up to the squared distance of pairs like them, and
    by PCME++'s matching loss on CSD, which also learns its scale and shift. Everything else is
    frozen, so nothing of the points is lost.

    ```python
    model = zoo.models.pfe(zoo.models.vector_points(8))  # or any trained model of points
    model.encode_images(np.eye(8))  # a MultivariateNormalDiag
    ```

    Args:
        model: a `DualEncoder` of points of length one, with Functional encoders. Its layers are
            shared, and frozen from now on.
        scale, shift: initial a and b of the logit −a · CSD + b.
        likelihood_weight: of `zoo.losses.MutualLikelihood` beside the matching loss.
        regularization: L2 penalty of the maps; without it variances fit the training's items.
        image_features: whether an image's variance reads what its head reads, in place of the
            point, as the paper's does: it then knows of pictures that are unlike training's.
        ambiguity_weight: of `zoo.losses.Ambiguity`, by which the variance follows the number of
            items that fit in place of the distance of pairs; 0 leaves it out. 100 outweighs the
            other terms, which pull the other way.

    Returns:
        A `DualEncoder`, not compiled, with CSD and the tokenizer of the points. Its uncertainty is
        the total variance.

    Raises:
        ValueError: if the model's embeddings are not points, or its encoders not Functional; with
            `image_features`, if the image encoder has no `"head"` that reads a map.
    Reference: Shi and Jain, "Probabilistic Face Embeddings", ICCV 2019; PCME++ (Chun, ICLR 2024),
        equations 1 to 3, for CSD and its loss.
    Paper differs: faces are compared by the mutual likelihood itself, whose log σ² terms prefer
        certain items of a gallery.
    """
    terms = [losses.MutualLikelihood(likelihood_weight)]
    if ambiguity_weight:
        terms.append(losses.Ambiguity(ambiguity_weight))
    points = _unit_points(model.image_encoder, "image_encoder")
    read = _scaled_features(model.image_encoder) if image_features else points
    return DualEncoder(
        _with_variance(model.image_encoder, read, "image_encoder", regularization),
        _with_variance(
            model.caption_encoder,
            _unit_points(model.caption_encoder, "caption_encoder"),
            "caption_encoder",
            regularization,
        ),
        similarity=similarities.ClosedFormSampledDistance(scale, shift),
        loss=losses.MatchingCrossentropy(),
        auxiliaries=terms,
        tokenizer=model.tokenizer,
        uncertainty_measure="total_variance",
        name="pfe",
    )


def _unit_points(encoder, name):
    """The points scaled by √dim, so that each coordinate has variance one whatever the
    dimension."""
    checked.check_gives_points(encoder, name)
    mean = encoder.output["mean"]
    # Coordinates of a unit vector are of the size 1 / √dim: the penalty is to mean the same for
    # any dimension.
    scale = math.sqrt(mean.shape[-1])
    return keras.layers.Rescaling(scale, dtype="float32", name="unit_variance")(mean)


def _scaled_features(encoder):
    """The mean of the cells that the head reads, of unit variance in training, for the same."""
    head = next((layer for layer in encoder.layers if layer.name == "head"), None)
    features = None if head is None else head.input
    features = features[0] if isinstance(features, list) else features
    if features is None or len(features.shape) != 3:
        description = "no head" if features is None else f"one that reads {features.shape}"
        raise ValueError(
            "`image_features` needs an image encoder with a head that reads (batch, positions, "
            f"channels); received {description}"
        )
    pooled = keras.layers.GlobalAveragePooling1D(name="mean_feature")(features)
    return keras.layers.BatchNormalization(
        center=False, scale=False, momentum=0.95, dtype="float32", name="feature_scale"
    )(pooled)


def _with_variance(encoder, read, name, regularization):
    """The frozen encoder with a log variance, a linear map of `read` that starts at a constant."""
    encoder.trainable = False
    mean = encoder.output["mean"]
    dim = mean.shape[-1]
    change = keras.layers.Dense(
        dim,
        use_bias=False,  # `Covariance` has one
        kernel_initializer="zeros",
        kernel_regularizer=keras.regularizers.L2(regularization),
        dtype="float32",
        name="variance_map",
    )(read)
    # Pairs start at a squared distance of one, between those of equal and of unrelated vectors.
    log_variance = Covariance(
        "ellipsoidal", -math.log(2 * dim), dtype="float32", name="covariance"
    )(change)
    return keras.Model(encoder.input, {"mean": mean, "log_variance": log_variance}, name=name)
