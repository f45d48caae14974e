"""SGRAF: similarity reasoning and filtration over regions and words."""

import os

import keras

from zoo import encoders, losses, similarities
from zoo.embeddings import Tensor
from zoo.encoders.image_features import ImageBackbone
from zoo.encoders.words import caption_features
from zoo.models.dual_encoder import DualEncoder

MODULES = ("saf", "sgr", "both")


def sgraf(
    image_backbone: ImageBackbone = (36, 2048),
    tokenizer: keras.layers.Layer | None = None,
    vocabulary_size: int | None = None,
    dim: int = 1024,
    similarity_dim: int = 256,
    module: str = "both",
    num_steps: int = 3,
    word_dim: int = 300,
    word_vectors: Tensor | None = None,
    max_length: int = 40,
    image_size: int = 224,
    image_weights: str | os.PathLike | None = None,
    dropout: float = 0.4,
    margin: float = 0.2,
    mining: str = "hardest",
    seed: int = 0,
    caption_backbone: keras.Model | None = None,
) -> DualEncoder:
    """SAF, SGR or both: regions, words of a bidirectional GRU, cross-attention, triplets.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.sgraf((36, 64), words, dim=8, similarity_dim=4, word_dim=4, module="sgr")
    model.encode_images(np.ones((1, 36, 64), "float32"))  # tokens
    ```

    The paper's SGRAF averages a SAF and an SGR that were trained apart: train one run of each and
    average them (`--ensemble` of the recipe). `module="both"` is a single model with shared
    towers, whose similarity is the mean of both.

    Args:
        image_backbone: the shape of precomputed regions; or a name of
            `zoo.encoders.convolutional` or a `keras.Model`, whose cells are taken for regions.
        tokenizer, vocabulary_size, word_dim, word_vectors, max_length, image_size, image_weights,
            caption_backbone: see `vsepp`.
        dim: channels of a region and of a word (D).
        similarity_dim: channels of an alignment.
        module: `"saf"`, `"sgr"` or `"both"`.
        num_steps: graph convolutions of SGR.
        dropout: of the word vectors, and within the attention that pools a side.
        margin, mining: see `zoo.losses.TripletRanking`.
        seed: of the dropout.

    Returns:
        A `DualEncoder` of token sequences, not compiled. Its loss sums over the batch. Two items
        can only be compared together: there is no uncertainty, and no index.

    Raises:
        ValueError: if there is nothing to make a caption encoder of, or the module is unknown.

    Reference: Diao et al., "Similarity Reasoning and Filtration for Image-Text Matching",
        AAAI 2021.

    Released code differs: BatchNorm within SAF is of each caption of a batch apart.
    """
    if module not in MODULES:
        raise ValueError(f"`module` must be one of {MODULES}; received {module!r}")
    backbone = encoders.image_features(image_backbone, image_size, image_weights)
    words = caption_features(
        caption_backbone,
        tokenizer,
        vocabulary_size,
        dim,
        max_length,
        word_dim=word_dim,
        merge="ave",
        word_vectors=word_vectors,
        dropout=dropout,
        seed=seed,
    )
    parts = {
        "saf": lambda: similarities.SimilarityFiltration(dim, similarity_dim, name="saf"),
        "sgr": lambda: similarities.SimilarityReasoning(
            dim, similarity_dim, num_steps=num_steps, name="sgr"
        ),
    }
    both = (parts[name]() for name in parts)
    similarity = (
        similarities.AverageSimilarity(both, name="sgraf") if module == "both" else parts[module]()
    )
    return DualEncoder(
        encoders.region_token_encoder(backbone, dim, dropout, seed),
        encoders.word_token_encoder(words, dropout, seed, dim),
        similarity=similarity,
        loss=losses.TripletRanking(margin, mining=mining),
        tokenizer=tokenizer,
        name="sgraf" if module == "both" else module,
    )
