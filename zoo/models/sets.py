"""DivE and PVSE: sets of embeddings, and what their builders share."""

from typing import Any

import keras

from zoo import encoders, layers, losses, similarities
from zoo.embeddings import SET
from zoo.encoders import set_towers
from zoo.encoders.stored_features import ImageBackbone
from zoo.models.backbones import backbones
from zoo.models.dual_encoder import DualEncoder

# Of sets and of nothing else.
SIMILARITIES = similarities.names(lambda cls: cls.embeddings == (SET,))


def set_backbones(
    image_backbone, tokenizer, dim, merge="concat", dropout=0.0, drop_rate=0.0, seed=0, **options
):
    """`zoo.models.backbones` with `zoo.encoders.regions` for a shape in place of a network. Raises
    ValueError if the input does not have the shape of region features."""
    if not isinstance(image_backbone, (str, keras.Model)):
        if len(image_backbone) != 2:
            raise ValueError(
                "`image_backbone` must be a name, a keras.Model, or a shape (num_regions, "
                f"region_dim); received {image_backbone!r}"
            )
        num_regions, region_dim = image_backbone
        image_backbone = encoders.regions(region_dim, dim, num_regions, dropout, drop_rate, seed)
    gru = {"merge": merge, "dropout": dropout, "seed": seed}
    return backbones(image_backbone, tokenizer, dim, gru=gru, **options)


def set_similarity(name, alpha=16.0):
    """The similarity of two sets by its name in DivE's ablation. Raises ValueError if it is none of
    `SIMILARITIES`."""
    if name not in SIMILARITIES:
        raise ValueError(f"`similarity` must be one of {SIMILARITIES}; received {name!r}")
    return similarities.SmoothChamfer(alpha) if name == "smooth_chamfer" else similarities.get(name)


def set_model(
    backbones, dim, set_layer, terms, name, project_map=False, dropout=0.0, seed=0, **parts
):
    """A `DualEncoder` of sets, of `set_backbones` and a sentence's dropout; `set_layer` makes the
    layer of a name, and terms without weight are left out."""
    images, captions = backbones
    return DualEncoder(
        set_towers.set_image_encoder(images, dim, set_layer("image_set"), project_map),
        set_towers.set_caption_encoder(captions, dim, set_layer("caption_set"), dropout, seed),
        auxiliaries=[term for term in terms if term.weight],
        uncertainty_measure="circular_variance",
        name=name,
        **parts,
    )


def dive(
    image_backbone: ImageBackbone = "resnet152",
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 1024,
    num_slots: int = 4,
    num_iterations: int = 4,
    similarity: str = "smooth_chamfer",
    alpha: float = 16.0,
    margin: float = 0.1,
    mining: str = "hardest",
    discrepancy_weight: float = 0.01,
    diversity_weight: float = 0.01,
    num_heads: int = 1,
    head_dim: int | None = None,
    mlp_ratio: int = 4,
    normalize_over: str = "slots",
    dropout: float = 0.0,
    seed: int = 0,
    **options: Any,
) -> DualEncoder:
    """DivE whole: two towers with set prediction, smooth-Chamfer, hardest-negative triplets.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.dive("tiny", words, dim=8, word_dim=4, num_slots=4, image_size=32)
    model.encode_captions(["a red bird"])  # a set of four points
    ```

    The defaults are the paper's for feature maps, of which a 1 × 1 convolution makes the local
    features. For 36 regions of 2048 channels it has `image_backbone=(36, 2048), margin=0.2`; for
    ResNeXt and BERT `image_backbone="resnext101_32x8d", image_size=512,
    caption_backbone=zoo.encoders.bert(…)`.

    Args:
        image_backbone, tokenizer, **options: see `zoo.models.backbones`; also `drop_rate` of
            `zoo.encoders.regions`, which reads the shape of regions, and `merge` of
            `zoo.layers.SentenceGRU`, here `"ave"`.
        dim: dimension of the elements (D).
        num_slots: elements of a set (K); 1 is a single embedding.
        num_iterations: rounds of aggregation (T).
        similarity: `"smooth_chamfer"`, `"chamfer"`, `"maximum_pair"` (MIL) or
            `"set_match_probability"` (MP): the ablation of table 3, left.
        alpha: of smooth-Chamfer (α).
        margin, mining: of `zoo.losses.TripletRanking` (δ).
        discrepancy_weight, diversity_weight: of the maximum mean discrepancy between the elements
            of images and captions, and of the diversity of the slots; 0 leaves a term out.
        num_heads, head_dim, mlp_ratio, normalize_over: of `zoo.layers.SlotAttention`, in both
            towers. The paper's D_h is `num_heads · head_dim`; None gives it the paper's size, `dim`
            for a feature map and twice that for regions (1,024 and 2,048 with `dim=1024`).
            `normalize_over="positions"` is table 3's row "Transformer".
        dropout, seed: share of the numbers that a training step zeroes: of regions, word vectors
            and sentences, and in the slots' attention and MLP. The released code has 0.1 for
            regions.

    Returns:
        A `DualEncoder` of sets, not compiled. `zoo.encoders.with_attention` shows what each
        element looks at.

    Raises:
        ValueError: if there is nothing to make a caption encoder of, or a size or name is wrong.
    Reference: Kim et al., "Improving Cross-Modal Retrieval with Set of Diverse Embeddings",
        CVPR 2023.
    Released code differs: it attends to padding; its MMD has an unsquared distance; it has 4 heads
        of 512 channels for maps too; its local features of regions, words and maps are options.
    Paper differs: it adds positions to feature maps alone (section 3.2, footnote); words have them
        here too, as released. It prints sums over the hinges of a batch and over the pairs of
        slots; the released means, which the weights go with, are taken here (see `TripletRanking`
        and `zoo.losses.diversity`).
    """
    left_out = {"dropout": dropout, "seed": seed}
    options = {"merge": "ave", **options, **left_out}
    images, captions = set_backbones(image_backbone, tokenizer, dim, **options)
    is_map = not isinstance(images.output, dict)
    if head_dim is None and dim % num_heads == 0:
        head_dim = (dim if is_map else 2 * dim) // num_heads

    def set_layer(name):
        return layers.SetPrediction(
            num_slots,
            num_iterations,
            encode_positions=name == "caption_set" or is_map,
            num_heads=num_heads,
            head_dim=head_dim,
            mlp_ratio=mlp_ratio,
            normalize_over=normalize_over,
            dropout=dropout,
            seed=seed + (name == "caption_set"),
            name=name,
        )

    return set_model(
        (images, captions),
        dim,
        set_layer,
        [losses.MaximumMeanDiscrepancy(discrepancy_weight), losses.Diversity(diversity_weight)],
        "dive",
        project_map=True,
        **left_out,
        similarity=set_similarity(similarity, alpha),
        loss=losses.TripletRanking(margin, mining=mining, reduction="mean"),
        tokenizer=tokenizer,
    )


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
    dropout: float = 0.0,
    seed: int = 0,
    **options: Any,
) -> DualEncoder:
    """PVSE whole: two towers with PIE-Net, the maximum over pairs (MIL), triplets.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.pvse("tiny", words, dim=8, word_dim=4, num_embeddings=2, image_size=32)
    model.encode_captions(["a red bird"])  # a set of two points
    ```

    Args:
        image_backbone, tokenizer, dim, **options: as for `dive`, but for `merge`, here `"concat"`.
        num_embeddings: embeddings an item (K); 1 is a single embedding, which has no diversity.
        similarity, alpha, margin, mining, discrepancy_weight, diversity_weight: as for `dive`; the
            diversity is of the local parts.
        hidden_dim: of `zoo.layers.LocalAttention`.
        dropout, seed: share of the numbers that a training step zeroes, of regions, word vectors
            and sentences.

    Returns and Raises: as of `dive`.
    Reference: Song and Soleymani, "Polysemous Visual-Semantic Embedding for Cross-Modal
        Retrieval", CVPR 2019.
    Released code differs: its MMD has an unsquared distance; a sentence's state is both directions
        of the GRU at the last word.
    """

    def set_layer(name):
        return layers.PolysemousEmbedding(dim, num_embeddings, hidden_dim, name=name)

    several = num_embeddings > 1
    left_out = {"dropout": dropout, "seed": seed}
    return set_model(
        set_backbones(image_backbone, tokenizer, dim, **left_out, **options),
        dim,
        set_layer,
        [
            losses.MaximumMeanDiscrepancy(discrepancy_weight),
            losses.OrthogonalDiversity(diversity_weight if several else 0.0),
        ],
        "pvse",
        **left_out,
        similarity=set_similarity(similarity, alpha),
        loss=losses.TripletRanking(margin, mining=mining, reduction="mean"),
        tokenizer=tokenizer,
    )
