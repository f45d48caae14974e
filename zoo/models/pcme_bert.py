"""PCME with BERT for the captions, the first base model of DAA."""

import os
from typing import Any

import keras

from zoo import encoders
from zoo.models import backbones
from zoo.models.dual_encoder import DualEncoder
from zoo.models.pcme import pcme

# From scratch, for words of a small vocabulary.
SMALL = {"num_layers": 2, "num_heads": 4, "hidden_dim": 64}


def pcme_bert(
    image_backbone: str | keras.Model = "resnet152",
    tokenizer: keras.layers.Layer | None = None,
    caption_backbone: keras.Model | None = None,
    vocabulary_size: int | None = None,
    dim: int = 1024,
    max_length: int = 40,
    num_samples: int = 5,
    scale: float = 30.0,
    shift: float = 30.0,
    kl_weight: float = 1e-5,
    uniformity_weight: float = 0.0,
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

    The defaults are DAA's for COCO; for CUB it has `image_backbone="resnet50", dim=512,
    scale=10.0, shift=10.0, kl_weight=1e-3, uniformity_weight=10.0`.

    Args:
        image_backbone: as for `zoo.models.pcme`.
        tokenizer: a layer from strings to token ids, such as `zoo.data.read_bert_tokenizer`. It
            is saved with the model, and says how many tokens there are and how long a caption.
        caption_backbone: a folder with BERT's weights, see `zoo.encoders.bert`; a `keras.Model`
            from ids to `{"features", "mask"}`; or None for a small BERT from scratch.
        vocabulary_size: number of token ids, where there is no tokenizer.
        dim, max_length, num_samples, scale, shift, kl_weight, uniformity_weight: as for `pcme`.
        dropout: of a BERT from scratch.
        **options: further ones of `pcme`.

    Returns:
        A `DualEncoder` of Gaussians, not compiled. Its loss sums over the pairs of a batch.

    Raises:
        ValueError: if there is nothing to make a caption encoder of.
        InputError: if the folder is no preset of BERT.

    Reference: DAA (Li et al., "A Differentiable Semantic Metric Approximation in Probabilistic
        Embedding for Cross-Modal Retrieval", NeurIPS 2022), section 5.2.

    Released code differs: hidden states are projected, normalised and rectified before their
        mean, which counts padding.
    """
    if tokenizer is not None:
        vocabulary_size, max_length = tokenizer.vocabulary_size(), tokenizer.max_words
    if caption_backbone is None:
        if vocabulary_size is None:
            raise ValueError(backbones.NOTHING)
        caption_backbone = encoders.bert(None, vocabulary_size, max_length, dropout, **SMALL)
    elif isinstance(caption_backbone, (str, os.PathLike)):
        caption_backbone = encoders.bert(caption_backbone, max_length=max_length)
    if not isinstance(caption_backbone, keras.Model):
        raise ValueError(
            "`caption_backbone` must be a folder, a keras.Model or None; received "
            f"{caption_backbone!r}"
        )
    return pcme(
        image_backbone,
        tokenizer,
        vocabulary_size,
        dim,
        max_length=max_length,
        num_samples=num_samples,
        scale=scale,
        shift=shift,
        kl_weight=kl_weight,
        uniformity_weight=uniformity_weight,
        caption_backbone=caption_backbone,
        name="pcme_bert",
        **options,
    )
