"""PCME: probabilistic cross-modal embeddings."""

import os
from typing import Any

import keras

from zoo import encoders, losses, similarities
from zoo.encoders.gaussian_towers import gaussian_caption_encoder, gaussian_image_encoder
from zoo.encoders.words import NOTHING
from zoo.models.backbones import backbones, parted
from zoo.models.dual_encoder import DualEncoder

# From scratch, for words of a small vocabulary.
SMALL = {"num_layers": 2, "num_heads": 4, "hidden_dim": 64}
# DAA's PCME-BERT of COCO, where it is not PCME's of CUB.
_DAA = {"num_samples": 5, "scale": 30.0, "shift": 30.0, "kl_weight": 1e-5, "uniformity_weight": 0.0}
_DAA |= {"variance_gru": True}


def pcme(
    image_backbone: str | keras.Model = "resnet50",
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 512,
    num_samples: int = 7,
    method: str = "sampled",
    scale: float = 10.0,
    shift: float = 10.0,
    kl_weight: float = 1e-3,
    uniformity_weight: float = 10.0,
    pair_weight: float = 1.0,
    seed: int = 0,
    sentence_dim: int | None = None,
    variance_gru: bool | None = None,
    at_last_word: bool = False,
    name: str = "pcme",
    **options: Any,
) -> DualEncoder:
    """PCME whole: two towers with Gaussian heads, the sampled match probability, its loss.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.pcme("tiny", words, dim=8, word_dim=4, image_size=32)
    model.encode_captions(["a red bird"])  # a distribution of dimension 8
    ```

    The defaults are the paper's for CUB; for COCO it has `image_backbone="resnet152", dim=1024,
    scale=30.0, shift=30.0, kl_weight=1e-5, uniformity_weight=0.0`.

    Args:
        image_backbone, tokenizer: see `zoo.models.backbones`.
        dim: dimension of the embedding (D).
        num_samples, method, scale, shift, seed: of `zoo.similarities.MatchProbability`.
        kl_weight: weight of KL(N(μ, σ²) ‖ N(0, I)).
        uniformity_weight: weight of the uniformity of the samples; 0 leaves it out.
        pair_weight: of `zoo.losses.MatchingCrossentropy`; 2 is the released strength.
        sentence_dim: width of the GRU over words, `dim` if None as in the paper; in a plane two
            numbers cannot carry a sentence.
        variance_gru: whether the log variance of a caption has a second GRU, see
            `gaussian_caption_encoder`.
        at_last_word: of both GRUs, see `zoo.layers.SentenceGRU`.
        **options: of `zoo.models.backbones`; and of `zoo.layers.GaussianHead`, for both towers:
            the paper's ablations. `covariance=None` trains the means alone: the distance between
            two points takes the place of those between samples, and there is no KL ("μ only").

    Returns:
        A `DualEncoder`, not compiled. Its loss sums over the pairs of a batch, as the paper's.

    Raises:
        ValueError: if neither `tokenizer` nor `vocabulary_size` is given.
    Reference: Chun et al., "Probabilistic Embeddings for Cross-Modal Retrieval", CVPR 2021.
    Released code differs: its sigmoid is sigmoid(2x), so its a and b are half of these; the loss
        counts every pair twice (`pair_weight=2`); the KL takes the mean of the samples for μ;
        uniformity is taken on 128 rows drawn with replacement; a sentence's state is both
        directions of the GRU at the last word (`at_last_word`), and samples take the head's sum
        for log σ (`log_deviation`).
    """
    backbone_options, head = parted(options)
    image_backbone, caption_backbone = backbones(
        image_backbone,
        tokenizer,
        sentence_dim or dim,
        gru={"at_last_word": at_last_word},
        **backbone_options,
    )
    image_encoder = gaussian_image_encoder(image_backbone, dim, **head)
    caption_encoder = gaussian_caption_encoder(
        caption_backbone, dim, variance_gru, at_last_word, **head
    )
    is_gaussian = head.get("covariance", "ellipsoidal") is not None
    return DualEncoder(
        image_encoder,
        caption_encoder,
        similarity=(
            similarities.MatchProbability(scale, shift, num_samples, seed, method)
            if is_gaussian
            else similarities.EuclideanDistance(scale, shift)
        ),
        loss=losses.MatchingCrossentropy(reduction="sum", pair_weight=pair_weight),
        auxiliaries=_regularisers(kl_weight, uniformity_weight, num_samples, seed, is_gaussian),
        tokenizer=tokenizer,
        uncertainty_measure="geometric_mean" if is_gaussian else None,
        name=name,
    )


def pcme_bert(
    image_backbone: str | keras.Model = "resnet152",
    tokenizer: keras.layers.Layer | None = None,
    caption_backbone: keras.Model | None = None,
    vocabulary_size: int | None = None,
    dim: int = 1024,
    max_length: int = 40,
    dropout: float = 0.1,
    **options: Any,
) -> DualEncoder:
    """PCME whose caption encoder reads BERT's hidden states.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    bert = zoo.encoders.bert(None, 4, 4, num_layers=1, num_heads=2, hidden_dim=8)
    model = zoo.models.pcme_bert("tiny", words, bert, dim=8, image_size=32)
    model.encode_captions(["a red bird"])  # a distribution of dimension 8
    ```

    The defaults are DAA's for COCO (`num_samples=5, scale=30.0, shift=30.0, kl_weight=1e-5,
    uniformity_weight=0.0, variance_gru=True`); for CUB it has `image_backbone="resnet50", dim=512,
    scale=10.0, shift=10.0, kl_weight=1e-3, uniformity_weight=10.0`.

    Args:
        image_backbone, tokenizer, **options: as for `pcme`, as are the other arguments; the
            tokenizer is such as `zoo.data.read_bert_tokenizer`, and `variance_gru` over BERT's
            states is as released, else the log variance is linear in their mean.
        caption_backbone: a folder with BERT's weights, see `zoo.encoders.bert`; a `keras.Model`
            from ids to `{"features", "mask"}`; or None for a small BERT from scratch.
        dropout: of a BERT from scratch.

    Raises:
        ValueError: if there is nothing to make a caption encoder of.
        InputError: if the folder is no preset of BERT.
    Reference: DAA (Li et al., "A Differentiable Semantic Metric Approximation in Probabilistic
        Embedding for Cross-Modal Retrieval", NeurIPS 2022), section 5.2.
    Released code differs: hidden states are projected, normalised and rectified before their
        mean, which counts padding; the GRU's state is both directions at the last token
        (`at_last_word`).
    """
    if tokenizer is not None:
        vocabulary_size, max_length = tokenizer.vocabulary_size(), tokenizer.max_words
    if caption_backbone is None:
        if vocabulary_size is None:
            raise ValueError(NOTHING)
        caption_backbone = encoders.bert(None, vocabulary_size, max_length, dropout, **SMALL)
    elif isinstance(caption_backbone, (str, os.PathLike)):
        caption_backbone = encoders.bert(caption_backbone, max_length=max_length)
    if not isinstance(caption_backbone, keras.Model):
        raise ValueError(
            "`caption_backbone` must be a folder, a keras.Model or None; received "
            f"{caption_backbone!r}"
        )
    options = {**_DAA, **options}
    return pcme(
        image_backbone,
        tokenizer,
        dim,
        vocabulary_size=vocabulary_size,
        max_length=max_length,
        caption_backbone=caption_backbone,
        name="pcme_bert",
        **options,
    )


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
        image_size, image_weights: of a named network, see `zoo.encoders.convolutional`.
        kl_weight: weight of KL(N(μ, σ²) ‖ N(0, I)), the information bottleneck; 0 leaves it out.
        dim, num_samples, method, scale, shift, seed, **head: as of `pcme`, of which the defaults
            are those for CUB; without variances a ValueError.

    Returns:
        A `DualEncoder`, not compiled, of which both encoders are one. Its loss sums over the pairs
        of a batch. Items are embedded alike by `encode_images` and `encode_captions`.
    Reference: Oh et al., "Modeling Uncertainty with Hedged Instance Embeddings", ICLR 2019; PCME
        (Chun et al., CVPR 2021), section 3.1.
    """
    if head.get("covariance", "ellipsoidal") is None:
        raise ValueError("`covariance` must be one of `GaussianHead`'s kinds; received None")
    if not isinstance(backbone, keras.Model):
        backbone = encoders.convolutional(backbone, image_size, image_weights)
    of_tokens = isinstance(backbone.output, dict)
    make = gaussian_caption_encoder if of_tokens else gaussian_image_encoder
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


def _regularisers(kl_weight, uniformity_weight, num_samples, seed, is_gaussian):
    """The auxiliary terms that have a weight: KL of Gaussians, uniformity of samples or points."""
    terms = []
    if kl_weight and is_gaussian:
        terms.append(losses.KLRegularizer(weight=kl_weight, reduction="sum"))
    if uniformity_weight:
        samples = num_samples if is_gaussian else None
        terms.append(losses.Uniformity(weight=uniformity_weight, num_samples=samples, seed=seed))
    return terms
