"""PVSE: polysemous embeddings, compared by their best pair."""

from typing import Any

import keras

from zoo import layers, losses
from zoo.encoders.image_features import ImageBackbone
from zoo.models.dual_encoder import DualEncoder
from zoo.models.sets import set_backbones, set_model, set_similarity


def pvse(
    image_backbone: ImageBackbone = "resnet152",
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 1024,
    num_embeddings: int = 2,
    similarity: str = "maximum_pair",
    alpha: float = 16.0,
    margin: float = 0.1,
    mining: str = "hardest",
    discrepancy_weight: float = 0.01,
    diversity_weight: float = 0.1,
    hidden_dim: int | None = None,
    **backbones: Any,
) -> DualEncoder:
    """PVSE whole: two towers with PIE-Net, the maximum over pairs (MIL), triplets.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.pvse("tiny", words, dim=8, word_dim=4, num_embeddings=2, image_size=32)
    model.encode_captions(["a red bird"])  # a set of two points
    ```

    Args:
        image_backbone, tokenizer, dim, **backbones: see `zoo.models.sets.set_backbones`.
        num_embeddings: embeddings an item (K); 1 is a single embedding, which has no diversity.
        similarity, alpha: as for `zoo.models.dive`; the paper's is `"maximum_pair"`.
        margin, mining: of `zoo.losses.TripletRanking`.
        discrepancy_weight, diversity_weight: of the maximum mean discrepancy between images and
            captions, and of the diversity of the local parts; 0 leaves a term out.
        hidden_dim: width of the local attention's hidden layer; None for half the channels.

    Returns:
        A `DualEncoder` of sets, not compiled. `zoo.encoders.with_attention` shows what each
        embedding looks at.

    Raises:
        ValueError: if there is nothing to make a caption encoder of, or a size or name is wrong.

    Reference: Song and Soleymani, "Polysemous Visual-Semantic Embedding for Cross-Modal
        Retrieval", CVPR 2019.

    Released code differs: its MMD has an unsquared distance; a sentence's state is both directions
        of the GRU at the last word.
    """

    def set_layer(name):
        return layers.PolysemousEmbedding(dim, num_embeddings, hidden_dim, name=name)

    several = num_embeddings > 1
    return set_model(
        set_backbones(image_backbone, tokenizer=tokenizer, dim=dim, **backbones),
        dim,
        set_layer,
        [
            losses.MaximumMeanDiscrepancy(discrepancy_weight),
            losses.OrthogonalDiversity(diversity_weight if several else 0.0),
        ],
        "pvse",
        similarity=set_similarity(similarity, alpha),
        loss=losses.TripletRanking(margin, mining=mining, reduction="mean"),
        tokenizer=tokenizer,
    )
