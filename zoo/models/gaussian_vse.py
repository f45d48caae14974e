"""Gaussians out of any system of points, and of VSE++ and VSRN by name."""

from typing import Any

import keras

from zoo import similarities
from zoo.encoders.stored_features import ImageBackbone, replay
from zoo.layers.gaussian_head import Covariance
from zoo.layers.masking import UnitLength
from zoo.layers.pooled_gaussian_head import PooledGaussianHead
from zoo.layers.region_reasoning import RegionReasoning
from zoo.layers.sentence_gru import SentenceGRU
from zoo.models import inputs as checked
from zoo.models.dual_encoder import DualEncoder
from zoo.models.vse import vsepp, vsrn

_PREFIX = "variance_"


def gaussian(
    model: DualEncoder,
    covariance: str = "ellipsoidal",
    similarity: keras.layers.Layer | None = None,
    bounds: tuple[float, float] = (0.1, 10.0),
    initial_log_variance: float = 0.0,
) -> DualEncoder:
    """Makes a system of Gaussians out of one of points.

    The point becomes the mean. Each encoder's learnable embedding layers are duplicated, with
    fresh weights of their own and without the last L2 normalisation, and make log σ². The image
    backbone is the features' and is shared, as is a caption backbone that is frozen. A
    recurrent caption backbone has a second GRU over shared word vectors; VSRN has a second GRU over
    the regions, over shared related regions.

    ```python
    model = zoo.models.gaussian(zoo.models.vse_infinity("resnet50", tokenizer), "spherical_mean")
    ```

    Args:
        model: a `DualEncoder` of points with Functional encoders, trained or not. Its layers are
            those of the means, weights included, and learn with them.
        covariance: `"ellipsoidal"`, `"spherical_mean"` or `"spherical_one"`, see
            `zoo.layers.Covariance`.
        similarity: a layer of `zoo.similarities` for Gaussians: `Wasserstein2()`, which is the
            default, `KLDivergence()`, `MinKLDivergence()`, and others.
        bounds: lowest and highest variance σ² of a dimension.
        initial_log_variance: initial bias of log σ²; 0 is the middle of the paper's bounds.

    Returns:
        A `DualEncoder`, not compiled, with the point model's loss and tokenizer. Its uncertainty
        is log det Σ.

    Raises:
        ValueError: if the model's embeddings are not points or its encoders not Functional, or
            the covariance is unknown.
    Reference: Pishdad et al., "Uncertainty-based Cross-Modal Retrieval with Probabilistic
        Representations", 2022, sections 3 and 4.2.
    """
    head = (covariance, bounds, initial_log_variance)
    return DualEncoder(
        _with_variance(model.image_encoder, "image_encoder", True, *head),
        _with_variance(model.caption_encoder, "caption_encoder", False, *head),
        similarity=similarities.Wasserstein2() if similarity is None else similarity,
        loss=model.loss,
        auxiliaries=model.auxiliaries,
        tokenizer=model.tokenizer,
        uncertainty_measure="log_det",
        name=f"gaussian_{model.name}",
    )


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
        image_backbone, tokenizer, **points: of `vsepp`, as are errors.
        covariance, similarity, bounds, initial_log_variance: of `gaussian`, as are errors.
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
        image_backbone, tokenizer, margin, **points: of `vsrn`, as are errors.
        covariance, similarity, bounds, initial_log_variance: of `gaussian`, as are errors.
    Reference: Pishdad et al., 2022, see `gaussian_vsepp`.
    """
    model = vsrn(image_backbone, tokenizer, margin=margin, **points)
    return gaussian(model, covariance, similarity, bounds, initial_log_variance)


def _with_variance(encoder, name, share_backbone, covariance, bounds, initial_log_variance):
    """The encoder of points with a second branch for log σ²: shared up to the backbone, or with a
    copy of the GRU, then a copy of the head's layers and a `Covariance`."""
    checked.check_gives_points(encoder, name)

    def is_shared(layer):
        if layer.name == "backbone":
            return share_backbone or not layer.trainable or _gru(layer) is not None
        return id(layer) in before_regions

    before_regions = _up_to_regions(encoder)
    mean, features = replay(encoder, is_shared)
    for layer, output in features.items():  # the backbone runs once, for both
        if not share_backbone and layer.trainable:  # section 4.2: the GRU alone is duplicated
            states, sentence = _duplicate(_gru(layer))(output["words"], mask=output["mask"])
            features[layer] = {**output, "states": states, "sentence": sentence}
    last = encoder.output["mean"]._keras_history.operation

    def call(layer, *args, **kwargs):
        if isinstance(layer, RegionReasoning):
            regions, _ = features[layer]
            return regions, _duplicate(layer.reader)(regions, mask=kwargs.get("mask"))[1]
        return features[layer] if layer in features else layer(*args, **kwargs)

    def duplicate(layer):
        if is_shared(layer):
            return layer
        if layer is last and isinstance(layer, UnitLength):  # log σ² has any length
            return keras.layers.Identity(name=_PREFIX + layer.name)
        return _duplicate(layer)

    variance = keras.models.clone_model(
        encoder, input_tensors=mean.input, clone_function=duplicate, call_function=call
    )
    log_variance = Covariance(covariance, initial_log_variance, bounds, name=f"{name}_covariance")(
        variance.output["mean"]
    )
    embedding = {"mean": mean.output["mean"], "log_variance": log_variance}
    return keras.Model(mean.input, embedding, name=name)


def _gru(backbone):
    """The layer that reads the sentence in a recurrent backbone over words, or None."""
    layers = getattr(backbone, "layers", ())
    return next((layer for layer in layers if isinstance(layer, SentenceGRU)), None)


def _up_to_regions(encoder):
    """The ids of VSRN's layers up to its related regions, which are features (section 4.2)."""
    layers = encoder.layers
    last = next((n for n, part in enumerate(layers) if isinstance(part, RegionReasoning)), -1)
    return {id(layer) for layer in layers[: last + 1]}


def _duplicate(layer):
    """A layer of the same configuration with weights of its own, and a name of its own, since
    optimizers and checkpoints know weights by their paths."""
    if not isinstance(layer, keras.layers.Layer):
        return layer  # a function of `keras.ops`
    name = _PREFIX + layer.name
    if isinstance(layer, keras.Model):
        copy = keras.models.clone_model(layer, clone_function=_duplicate)
        return keras.Model(copy.input, copy.output, name=name)
    config = {**layer.get_config(), "name": name}
    if isinstance(layer, PooledGaussianHead):
        config["normalize"] = False
    return type(layer).from_config(config)
