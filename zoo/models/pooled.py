"""Systems that pool all tokens by rank: VSE∞, InfoNCE and PCME++."""

from typing import Any

import keras

from zoo import losses, similarities
from zoo.embeddings import POINT
from zoo.encoders import gaussian_towers
from zoo.models.backbones import backbones, parted
from zoo.models.dual_encoder import DualEncoder
from zoo.similarities import by_name


def pooled_encoders(
    image_backbone,
    tokenizer,
    dim,
    drop_rate=0.2,
    drop_varies=True,
    seed=0,
    caption_pooling=None,
    **options,
):
    """An image and a caption encoder that pool all tokens of their backbones by rank; `**options`
    are of `backbones` and `zoo.layers.PooledGaussianHead`, the dropping is of images alone."""
    backbone_options, head = parted(options)
    # Words are lost by the input pipeline, which can also replace and delete them.
    images, captions = backbones(
        image_backbone, tokenizer, dim, gru={"merge": "ave"}, **backbone_options
    )
    dropping = {"drop_rate": drop_rate, "drop_varies": drop_varies, "seed": seed}
    images = gaussian_towers.pooled_image_encoder(images, dim, **dropping, **head)
    if caption_pooling is not None:
        head["pooling"] = caption_pooling
    return images, gaussian_towers.pooled_caption_encoder(captions, dim, **head)


def infonce(
    image_backbone: str | keras.Model = "resnet50",
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 1024,
    temperature: float = 0.07,
    **towers: Any,
) -> DualEncoder:
    """Points trained by the symmetric softmax over the batch, with a learned temperature.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.infonce("tiny", words, dim=8, word_dim=4, image_size=32)
    model.encode_captions(["a red bird"])  # (1, 8)
    ```

    Args:
        image_backbone, tokenizer, dim, **towers: see `zoo.models.pooled.pooled_encoders`.
        temperature: initial τ of the softmax of cosine / τ. The default is CLIP's; PCME++'s
            baseline "InfoNCE" (section 3.1) starts at 1.0.

    Raises:
        ValueError: if there is nothing to make a caption encoder of, or the temperature is not
            at least 0.01, beyond which CLIP clips it.
    Released code differs: PCME++'s learns the factor 1 / τ itself, this its logarithm, as CLIP.
    Reference: Radford et al., "Learning Transferable Visual Models From Natural Language
        Supervision", ICML 2021, section 2.3.
    """
    if not temperature >= 0.01:
        raise ValueError(f"`temperature` must be at least 0.01; received {temperature}")
    return DualEncoder(
        *pooled_encoders(image_backbone, tokenizer, dim, covariance=None, **towers),
        similarity=similarities.Cosine(1.0 / temperature, learn_scale=True),
        loss=losses.InfoNCE(),
        tokenizer=tokenizer,
        name="infonce",
    )


def vse_infinity(
    image_backbone: str | keras.Model = "resnet50",
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 1024,
    margin: float = 0.2,
    mining: str = "hardest",
    **towers: Any,
) -> DualEncoder:
    """VSE∞: all tokens pooled by learned weights of their ranks, cosine, hardest negatives.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.vse_infinity("tiny", words, dim=8, word_dim=4, image_size=32)
    model.encode_captions(["a red bird"])  # (1, 8)
    ```

    Args:
        image_backbone, tokenizer, dim, **towers: see `zoo.models.pooled.pooled_encoders`. Raises
            ValueError if they do not say how to build the caption encoder.
        margin, mining: see `zoo.losses.TripletRanking`, which sums over the batch, as VSE++'s does.
    Reference: Chen et al., "Learning the Best Pooling Strategy for Visual Semantic Embedding",
        CVPR 2021.
    """
    return DualEncoder(
        *pooled_encoders(image_backbone, tokenizer, dim, covariance=None, **towers),
        similarity=similarities.Cosine(),
        loss=losses.TripletRanking(margin, mining=mining),
        tokenizer=tokenizer,
        name="vse_infinity",
    )


def pcmepp(
    image_backbone: str | keras.Model = "resnet50",
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 1024,
    distance: str = "csd",
    scale: float = 5.0,
    shift: float = 5.0,
    num_samples: int = 8,
    pseudo_positive_weight: float = 0.1,
    kl_weight: float = 1e-4,
    kl_reduction: str = "mean_per_dimension",
    reduction: str = "mean",
    pair_weight: float = 1.0,
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
    `zoo.data.pipeline.streams`.

    Args:
        image_backbone, tokenizer, dim, **towers: see `zoo.models.pooled.pooled_encoders`;
            `caption_backbone`, `drop_rate`, `drop_varies`, `pooling`, `log_variance_bias` and
            others.
        distance: name of the similarity, one whose logits are the log-odds of a match: `"csd"`; or
            an ablation: `"squared_wasserstein_2"`, which learns no uncertainty,
            `"match_probability"`, PCME's over samples, or `"squared_euclidean"`, points
            without variance ("μ only", no VIB).
        scale, shift: initial a and b of the logit −a · distance + b.
        num_samples: J of `"match_probability"`, 8 in the paper's comparison.
        pseudo_positive_weight: α; 0 leaves the pseudo-positives out.
        kl_weight: β of KL(N(μ, σ²) ‖ N(0, I)), the information bottleneck; 0 leaves it out.
        kl_reduction: of it, as in `KLRegularizer`. `"mean_per_dimension"` is figure A.1's mean
            over items and dimensions. `"mean"` sums over dim, as a KL is written: beside a matching
            loss that is a mean over N · N pairs it keeps the Σσ² of an item above β N dim / (2 a),
            about 1.3 with the paper's settings.
        reduction, pair_weight: of `zoo.losses.MatchingCrossentropy`. The released code has
            `pair_weight=2`, and for the baseline `"match_probability"` a sum beside 1e-3 of VIB.
        seed: of all sampling.

    Raises:
        ValueError: if the distance is unknown, or there is nothing to make a caption encoder of.
    Reference: Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024.
    Released code differs: it counts each pair twice (`pair_weight=2`), so its VIB is half as
        strong as in figure A.1; log σ² starts at 0, logits near −10⁴ at D = 1024 (see
        `PooledGaussianHead`).
    """
    similarity = _similarity(distance, scale, shift, num_samples, seed)
    is_gaussian = POINT not in similarity.embeddings
    if not is_gaussian:
        towers["covariance"] = None
    bottleneck = []
    if is_gaussian and kl_weight:
        bottleneck = [losses.KLRegularizer(kl_weight, kl_reduction)]
    return DualEncoder(
        *pooled_encoders(image_backbone, tokenizer, dim, seed=seed, **towers),
        similarity=similarity,
        loss=losses.MatchingCrossentropy(pseudo_positive_weight, reduction, pair_weight),
        auxiliaries=bottleneck,
        tokenizer=tokenizer,
        uncertainty_measure="total_variance" if is_gaussian else None,
        name="pcmepp",
    )


def _similarity(distance, scale, shift, num_samples, seed):
    """A log-odds similarity by its name, with PCME++'s initial scale and shift."""
    chosen = by_name.get_class(distance)
    if not chosen.is_log_odds:
        known = similarities.names(lambda cls: cls.is_log_odds)
        raise ValueError(
            f"`distance` must be one of {known}, whose logits are the log-odds of a match; "
            f"received {distance!r}"
        )
    sampling = {}
    if issubclass(chosen, similarities.MatchProbability):
        sampling = {"num_samples": num_samples, "seed": seed}
    return chosen(scale, shift, **sampling)
