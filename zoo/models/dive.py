"""DivE: sets of diverse embeddings by slot attention, compared by smooth-Chamfer."""

from zoo import layers, losses
from zoo.models.sets import caption_backbone as captions_of
from zoo.models.sets import image_backbone as images_of
from zoo.models.sets import set_model, set_similarity


def dive(
    image_backbone="resnet152",
    caption_backbone=None,
    tokenizer=None,
    vocabulary_size=None,
    dim=1024,
    num_slots=4,
    num_iterations=4,
    similarity="smooth_chamfer",
    alpha=16.0,
    margin=0.1,
    mining="hardest",
    discrepancy_weight=0.01,
    diversity_weight=0.01,
    word_dim=300,
    word_vectors=None,
    max_length=32,
    image_size=224,
    image_weights=None,
    dropout=0.0,
    drop_rate=0.0,
    seed=0,
    num_heads=1,
    head_dim=None,
    mlp_ratio=4,
):
    """DivE whole: two towers with set prediction, smooth-Chamfer, hardest-negative triplets.

    The defaults are the paper's for feature maps. For 36 regions of 2048 channels it has
    `image_backbone=(36, 2048), margin=0.2`; for ResNeXt and BERT `image_backbone=
    "resnext101_32x8d", image_size=512, caption_backbone=zoo.encoders.bert(…)`.

    Args:
        image_backbone: a name of `zoo.encoders.convolutional`; the shape `(num_regions,
            region_dim)` of precomputed regions, which `zoo.encoders.regions` reads; or a
            `keras.Model` to features, see `zoo.encoders.set_image_encoder`.
        caption_backbone: a `keras.Model` from ids to features, such as `zoo.encoders.bert(…)`, see
            `zoo.encoders.set_caption_encoder`; None for a bidirectional GRU.
        tokenizer: a layer from strings to token ids, which is saved with the model. For a GRU it
            says how many words there are and how long a caption.
        vocabulary_size: number of token ids, for a GRU where there is no tokenizer.
        dim: dimension of the elements (D).
        num_slots: elements of a set (K); 1 is a single embedding.
        num_iterations: rounds of aggregation (T).
        similarity: `"smooth_chamfer"`, `"chamfer"`, `"maximum_pair"` (MIL) or
            `"match_probability"` (MP): the paper's ablation.
        alpha: of smooth-Chamfer (α).
        margin, mining: of `zoo.losses.TripletRanking` (δ).
        discrepancy_weight, diversity_weight: of the maximum mean discrepancy between the elements
            of images and captions, and of the diversity of the slots; 0 leaves a term out.
        word_dim, word_vectors, max_length: of the GRU, see `zoo.encoders.gru`.
        image_size, image_weights: of a named network, see `zoo.encoders.convolutional`.
        dropout, drop_rate, seed: of `zoo.encoders.regions`.
        num_heads, head_dim, mlp_ratio: of `zoo.layers.SlotAttention`.

    Returns:
        A `DualEncoder` of sets, not compiled. `zoo.encoders.with_attention` shows what each
        element looks at.

    Raises:
        ValueError: if there is nothing to make a caption encoder of, or a size or name is wrong.

    Reference: Kim et al., "Improving Cross-Modal Retrieval with Set of Diverse Embeddings",
        CVPR 2023.

    Released code differs: it attends to padding; its MMD has an unsquared distance; it has 4 heads
        of 512 channels; its local features of regions, words and maps are options.
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
            merge="ave",
        ),
    )
    is_map = not isinstance(backbones[0].output, dict)

    def set_layer(name):
        return layers.SetPrediction(
            num_slots,
            num_iterations,
            encode_positions=name == "caption_set" or is_map,
            num_heads=num_heads,
            head_dim=head_dim,
            mlp_ratio=mlp_ratio,
            name=name,
        )

    terms = []
    if discrepancy_weight:
        terms.append(losses.MeanDiscrepancy(weight=discrepancy_weight))
    if diversity_weight:
        terms.append(losses.Diversity(weight=diversity_weight))
    return set_model(
        backbones,
        dim,
        set_layer,
        "dive",
        similarity=set_similarity(similarity, alpha),
        loss=losses.TripletRanking(margin, mining=mining, reduction="mean"),
        auxiliaries=terms,
        tokenizer=tokenizer,
    )
