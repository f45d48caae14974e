"""PCME: probabilistic cross-modal embeddings."""

import os
from typing import Any

import keras

from zoo import encoders, losses, similarities
from zoo.embeddings import Tensor
from zoo.models import backbones
from zoo.models.dual_encoder import DualEncoder


def pcme(
    image_backbone: str | keras.Model = "resnet50",
    tokenizer: keras.layers.Layer | None = None,
    vocabulary_size: int | None = None,
    dim: int = 512,
    word_dim: int = 300,
    word_vectors: Tensor | None = None,
    max_length: int = 32,
    image_size: int = 224,
    image_weights: str | os.PathLike | None = None,
    num_samples: int = 7,
    method: str = "sampled",
    scale: float = 10.0,
    shift: float = 10.0,
    kl_weight: float = 1e-3,
    uniformity_weight: float = 10.0,
    seed: int = 0,
    caption_backbone: keras.Model | None = None,
    sentence_dim: int | None = None,
    variance_gru: bool = True,
    at_last_word: bool = False,
    name: str = "pcme",
    **head: Any,
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
        image_backbone: a name of `zoo.encoders.convolutional`, or a `keras.Model` from images to
            local features.
        tokenizer: a layer from strings to token ids, such as `zoo.data.captions.word_tokenizer`.
            It is saved with the model, and says how many words there are and how long a caption.
        vocabulary_size: number of token ids, where there is no tokenizer.
        dim: dimension of the embedding (D).
        word_dim: dimension of the word vectors.
        word_vectors: initial word vectors `(vocabulary, word_dim)`, such as GloVe's, or None.
        max_length: length of a caption in ids, where there is no tokenizer.
        image_size: height and width of the images.
        image_weights: `"imagenet"`, a local path, or None (see `zoo.encoders.convolutional`).
        num_samples: samples J of each embedding.
        method: how the match probability is computed, `"sampled"` as in the paper or
            `"moment_matched"` without noise, see `zoo.similarities.MatchProbability`.
        scale, shift: initial a and b of sigmoid(−a·distance + b).
        kl_weight: weight of KL(N(μ, σ²) ‖ N(0, I)).
        uniformity_weight: weight of the uniformity of the samples; 0 leaves it out.
        seed: seed of the sampling.
        caption_backbone: a `keras.Model` from ids to local features, see
            `zoo.encoders.gaussian_caption_encoder`; None for a bidirectional GRU over words.
        sentence_dim: width of that GRU, `dim` if None as in the paper; in a plane two numbers
            cannot carry a sentence.
        variance_gru: whether the log variance of a caption has a second GRU, see
            `zoo.encoders.gaussian_caption_encoder`.
        at_last_word: whether both GRUs give a sentence's states at its last word, as released,
            see `zoo.layers.SentenceGRU`.
        name: of the model.
        **head: options of `zoo.layers.GaussianHead`, for both towers: the paper's ablations.
            `covariance=None` trains the means alone.

    Returns:
        A `DualEncoder`, not compiled. Its loss sums over the pairs of a batch, as the paper's.

    Raises:
        ValueError: if neither `tokenizer` nor `vocabulary_size` is given.

    Relations: `covariance=None` is the paper's "μ only": the distance between two points takes
        the place of the distances between samples, and there are no regularisers.

    Reference: Chun et al., "Probabilistic Embeddings for Cross-Modal Retrieval", CVPR 2021.

    Released code differs: its sigmoid is sigmoid(2x), so its a and b are half of these; the loss
        counts every pair twice; the KL takes the mean of the samples for μ; uniformity is taken
        on 128 rows drawn with replacement; a sentence's state is both directions of the GRU at
        the last word (`at_last_word`), and samples take the head's sum for log σ
        (`log_deviation`).
    """
    image_backbone = backbones.pictures(image_backbone, image_size, image_weights)
    caption_backbone = backbones.captions(
        caption_backbone,
        tokenizer,
        vocabulary_size,
        sentence_dim or dim,
        max_length,
        word_dim=word_dim,
        word_vectors=word_vectors,
        at_last_word=at_last_word,
    )
    image_encoder = encoders.gaussian_image_encoder(image_backbone, dim, **head)
    caption_encoder = encoders.gaussian_caption_encoder(
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
        loss=losses.MatchingCrossentropy(reduction="sum"),
        auxiliaries=_regularisers(kl_weight, uniformity_weight, num_samples, seed)
        if is_gaussian
        else [],
        tokenizer=tokenizer,
        uncertainty_measure="geometric_mean" if is_gaussian else None,
        name=name,
    )


def _regularisers(kl_weight, uniformity_weight, num_samples, seed):
    terms = [losses.KLRegularizer(weight=kl_weight, reduction="sum")] if kl_weight else []
    if uniformity_weight:
        terms.append(
            losses.Uniformity(weight=uniformity_weight, num_samples=num_samples, seed=seed)
        )
    return terms
