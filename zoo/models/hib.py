"""HIB: hedged instance embeddings, PCME on one modality."""

import keras

from zoo import encoders, losses, similarities
from zoo.models.dual_encoder import DualEncoder


def hib(
    backbone="resnet50",
    dim=512,
    image_size=224,
    image_weights=None,
    num_samples=7,
    method="sampled",
    scale=10.0,
    shift=10.0,
    kl_weight=1e-3,
    seed=0,
    name="hib",
    **head,
):
    """Images against images: one tower on both sides, the sampled match probability, its loss.

    A batch is as every `DualEncoder`'s, with images where captions are otherwise: those under
    `"images"` are compared with those under `"captions"`, and match where labels are equal.

    ```python
    model = zoo.models.hib("mobilenet_v2")
    batch = {"images": x, "image_labels": classes, "captions": y, "caption_labels": others}
    ```

    Args:
        backbone: a name of `zoo.encoders.convolutional`, or a `keras.Model` to features: a feature
            map of images, or `{"features", "mask"}` of token ids, such as `zoo.encoders.bert(…)`,
            which makes it captions against captions.
        dim: dimension of the embedding (D).
        image_size, image_weights: of a named network, see `zoo.encoders.convolutional`.
        num_samples: samples J of each embedding.
        method: of `zoo.similarities.MatchProbability`.
        scale, shift: initial a and b of sigmoid(−a·distance + b).
        kl_weight: weight of KL(N(μ, σ²) ‖ N(0, I)), the information bottleneck; 0 leaves it out.
        seed: of the sampling.
        name: of the model.
        **head: options of `zoo.layers.GaussianHead`.

    Returns:
        A `DualEncoder`, not compiled, of which both encoders are one. Its loss sums over the pairs
        of a batch. Items are embedded alike by `encode_images` and `encode_captions`.

    Raises:
        ValueError: if there are no variances, which HIB is about.

    Relations: `zoo.models.pcme` with one tower for both modalities and without uniformity; the
        defaults are PCME's for CUB.

    Reference: Oh et al., "Modeling Uncertainty with Hedged Instance Embeddings", ICLR 2019; PCME
        (Chun et al., CVPR 2021), section 3.1.
    """
    if head.get("covariance", "ellipsoidal") is None:
        raise ValueError("`covariance` must be one of `GaussianHead`'s kinds; received None")
    if not isinstance(backbone, keras.Model):
        backbone = encoders.convolutional(backbone, image_size, image_weights)
    of_tokens = isinstance(backbone.output, dict)
    make = encoders.gaussian_caption_encoder if of_tokens else encoders.gaussian_image_encoder
    encoder = make(backbone, dim, **head)
    return DualEncoder(
        encoder,
        encoder,
        similarity=similarities.MatchProbability(scale, shift, num_samples, seed, method),
        loss=losses.MatchingCrossentropy(reduction="sum"),
        auxiliaries=[losses.KLRegularizer(kl_weight, reduction="sum")] if kl_weight else [],
        uncertainty_measure="geometric_mean",
        name=name,
    )
