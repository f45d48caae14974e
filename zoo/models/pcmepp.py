"""PCME++: improved probabilistic cross-modal embeddings."""

from typing import Any

import keras

from zoo import losses, similarities
from zoo.models.dual_encoder import DualEncoder
from zoo.models.pooled import pooled_encoders

DISTANCES = {
    "csd": similarities.ClosedFormSampledDistance,
    "wasserstein_2": similarities.SquaredWasserstein2,
    "match_probability": similarities.MatchProbability,
    "mean": similarities.SquaredEuclidean,
}


def pcmepp(
    image_backbone: str | keras.Model = "resnet50",
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 1024,
    distance: str = "csd",
    scale: float = 5.0,
    shift: float = 5.0,
    pseudo_positive_weight: float = 0.1,
    kl_weight: float = 1e-4,
    kl_reduction: str = "mean",
    seed: int = 0,
    **towers: Any,
) -> DualEncoder:
    """PCME++ whole: towers that pool all tokens by rank, CSD in closed form, its loss.

    The defaults are the paper's, but for the backbones, which are CLIP's:

    ```python
    model = zoo.models.pcmepp(
        zoo.encoders.clip_image("vit_b_32", weights), tokenizer,
        caption_backbone=zoo.encoders.clip_text(weights=weights),
    )
    ```

    What belongs to the batches (Mixup and CutMix with soft labels, lost words) is in
    `zoo.data.mixing`.

    Args:
        image_backbone, tokenizer, dim, **towers: see `zoo.models.pooled.pooled_encoders`;
            `caption_backbone`, `drop_rate`, `pooling`, `log_variance_bias` and others.
        distance: `"csd"`; or an ablation: `"wasserstein_2"`, which learns no uncertainty,
            `"match_probability"`, PCME's over seven samples, or `"mean"`, points without
            variance ("μ only", no VIB).
        scale, shift: initial a and b of the logit −a · distance + b.
        pseudo_positive_weight: α; 0 leaves the pseudo-positives out.
        kl_weight: β of KL(N(μ, σ²) ‖ N(0, I)), the information bottleneck; 0 leaves it out.
        kl_reduction: of it, as in `KLRegularizer`. `"mean"` sums over dim, as KL is written. Beside
            a matching loss that is a mean over N · N pairs it keeps the Σσ² of an item above
            β N dim / (2 a), about 1.3 with the paper's settings; `"mean_per_dimension"` is the
            released code's, which gave the paper's results.
        seed: of all sampling.

    Returns:
        A `DualEncoder`, not compiled. Its loss is a mean over the pairs of a batch.

    Raises:
        ValueError: if the distance is unknown, or there is nothing to make a caption encoder of.

    Reference: Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024.

    Released code differs: the matching loss counts twice; VIB is averaged over D; log σ² starts
        at 0, logits near −10⁴ at D = 1024 (see `PooledGaussianHead`).
    """
    if distance not in DISTANCES:
        raise ValueError(f"`distance` must be one of {tuple(DISTANCES)}; received {distance!r}")
    if distance == "mean":
        towers["covariance"] = None
    image_encoder, caption_encoder = pooled_encoders(
        image_backbone, tokenizer=tokenizer, dim=dim, seed=seed, **towers
    )
    is_gaussian = distance != "mean"
    bottleneck = []
    if is_gaussian and kl_weight:
        bottleneck = [losses.KLRegularizer(kl_weight, kl_reduction)]
    sampling = {"num_samples": 7, "seed": seed} if distance == "match_probability" else {}
    return DualEncoder(
        image_encoder,
        caption_encoder,
        similarity=DISTANCES[distance](scale, shift, **sampling),
        loss=losses.MatchingCrossentropy(pseudo_positive_weight=pseudo_positive_weight),
        auxiliaries=bottleneck,
        tokenizer=tokenizer,
        uncertainty_measure="total_variance" if is_gaussian else None,
        name="pcmepp",
    )
