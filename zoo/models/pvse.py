"""PVSE: polysemous embeddings, compared by their best pair."""

from zoo import layers, losses
from zoo.models.sets import caption_backbone as captions_of
from zoo.models.sets import image_backbone as images_of
from zoo.models.sets import set_model, set_similarity


def pvse(
    image_backbone="resnet152",
    caption_backbone=None,
    tokenizer=None,
    vocabulary_size=None,
    dim=1024,
    num_embeddings=2,
    similarity="maximum_pair",
    alpha=16.0,
    margin=0.1,
    mining="hardest",
    discrepancy_weight=0.01,
    diversity_weight=0.1,
    word_dim=300,
    word_vectors=None,
    max_length=32,
    image_size=224,
    image_weights=None,
    dropout=0.0,
    drop_rate=0.0,
    seed=0,
    hidden_dim=None,
):
    """PVSE whole: two towers with PIE-Net, the maximum over pairs (MIL), triplets.

    Args:
        image_backbone, caption_backbone, tokenizer, vocabulary_size, dim, word_dim, word_vectors,
            max_length, image_size, image_weights, dropout, drop_rate, seed: as for
            `zoo.models.dive`.
        num_embeddings: embeddings an item (K); 1 is a single embedding.
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
    backbones = (
        images_of(
            image_backbone,
            dim,
            image_size,
            image_weights,
            dropout=dropout,
            drop_rate=drop_rate,
            seed=seed,
        ),
        captions_of(
            caption_backbone,
            dim,
            tokenizer,
            vocabulary_size,
            max_length,
            word_dim=word_dim,
            word_vectors=word_vectors,
        ),
    )

    def set_layer(name):
        return layers.PolysemousEmbedding(dim, num_embeddings, hidden_dim, name=name)

    terms = []
    if discrepancy_weight:
        terms.append(losses.MeanDiscrepancy(weight=discrepancy_weight))
    if diversity_weight and num_embeddings > 1:
        terms.append(losses.GramDiversity(weight=diversity_weight))
    return set_model(
        backbones,
        dim,
        set_layer,
        "pvse",
        similarity=set_similarity(similarity, alpha),
        loss=losses.TripletRanking(margin, mining=mining, reduction="mean"),
        auxiliaries=terms,
        tokenizer=tokenizer,
    )
