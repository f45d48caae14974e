"""SGRAF: similarity reasoning and filtration over regions and words."""

from typing import Any

import keras

from zoo import losses, similarities
from zoo.encoders import set_towers
from zoo.encoders.stored_features import ImageBackbone
from zoo.models.backbones import backbones
from zoo.models.dual_encoder import DualEncoder

MODULES = ("saf", "sgr", "both")


def sgraf(
    image_backbone: ImageBackbone = (36, 2048),
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 1024,
    similarity_dim: int = 256,
    module: str = "both",
    num_steps: int = 3,
    dropout: float = 0.4,
    margin: float = 0.2,
    mining: str = "hardest",
    seed: int = 0,
    **options: Any,
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
        image_backbone, tokenizer, **options: see `zoo.models.backbones`; the cells of a network's
            map are taken for regions.
        dim: channels of a region and of a word (D).
        similarity_dim: channels of an alignment.
        module: `"saf"`, `"sgr"` or `"both"`.
        num_steps: graph convolutions of SGR.
        dropout, seed: of the word vectors, and within the attention that pools a side.
        margin, mining: see `zoo.losses.TripletRanking`, which sums over the batch.

    Returns:
        A `DualEncoder` of token sequences, not compiled. Two items can only be compared together:
        there is no uncertainty, and no index.

    Raises:
        ValueError: if there is nothing to make a caption encoder of, or the module is unknown.
    Reference: Diao et al., "Similarity Reasoning and Filtration for Image-Text Matching",
        AAAI 2021.
    Released code differs: BatchNorm within SAF is of each caption of a batch apart.
    """
    if module not in MODULES:
        raise ValueError(f"`module` must be one of {MODULES}; received {module!r}")
    gru = {"merge": "ave", "dropout": dropout, "seed": seed}
    options = {"max_length": 40, **options}
    images, words = backbones(image_backbone, tokenizer, dim, gru=gru, **options)
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
        set_towers.region_token_encoder(images, dim, dropout, seed),
        set_towers.word_token_encoder(words, dropout, seed, dim),
        similarity=similarity,
        loss=losses.TripletRanking(margin, mining=mining),
        tokenizer=tokenizer,
        name="sgraf" if module == "both" else module,
    )
