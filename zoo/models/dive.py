"""DivE: sets of diverse embeddings by slot attention, compared by smooth-Chamfer."""

from typing import Any

import keras

from zoo import layers, losses
from zoo.encoders.image_features import ImageBackbone
from zoo.models.dual_encoder import DualEncoder
from zoo.models.sets import set_backbones, set_model, set_similarity


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
    **backbones: Any,
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
        image_backbone, tokenizer, dim, **backbones: see `zoo.models.sets.set_backbones`, which
            has `merge="ave"` here.
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
    towers = {"tokenizer": tokenizer, "dim": dim, "merge": "ave", **backbones}
    images, captions = set_backbones(image_backbone, **towers)
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
            name=name,
        )

    return set_model(
        (images, captions),
        dim,
        set_layer,
        [losses.MaximumMeanDiscrepancy(discrepancy_weight), losses.Diversity(diversity_weight)],
        "dive",
        project_map=True,
        similarity=set_similarity(similarity, alpha),
        loss=losses.TripletRanking(margin, mining=mining, reduction="mean"),
        tokenizer=tokenizer,
    )
