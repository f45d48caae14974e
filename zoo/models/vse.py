"""VSE0, VSE++ and VSRN: points trained by a triplet loss."""

from typing import Any

import keras

from zoo import encoders, losses, similarities
from zoo.encoders import point_towers
from zoo.encoders.stored_features import ImageBackbone, replay
from zoo.layers.region_reasoning import RegionReasoning
from zoo.models.backbones import backbones
from zoo.models.dual_encoder import DualEncoder

_ONE_WAY = {"bidirectional": False}


def vsepp(
    image_backbone: ImageBackbone = "resnet152",
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 1024,
    margin: float = 0.2,
    mining: str = "hardest",
    unit_features: bool | None = None,
    **options: Any,
) -> DualEncoder:
    """VSE++: mean-pooled image features, a GRU, cosine, hardest negatives.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.vsepp("tiny", words, dim=8, word_dim=4, image_size=32)
    model.encode_captions(["a red bird"])  # (1, 8)
    ```

    Train it with the sum of hinges first (`compile(loss=TripletRanking(margin))` for an epoch or
    so): from random weights, hardest negatives can draw everything into one point.

    Args:
        image_backbone, tokenizer, **options: see `zoo.models.backbones`; without anything to make a
            caption encoder of, a ValueError.
        dim: dimension of the embedding (D).
        margin, mining: see `zoo.losses.TripletRanking`, which sums over the batch.
        unit_features: whether a network's features have length one before the linear map too.
            None for yes, except for precomputed features.
    Reference: Faghri et al., "VSE++: Improving Visual-Semantic Embeddings with Hard Negatives",
        BMVC 2018. The length of the features is that of the released code (`EncoderImageFull`;
        `EncoderImagePrecomp` has none), which the paper does not print.
    """
    if unit_features is None:
        unit_features = not isinstance(image_backbone, (tuple, list))
    images, words = backbones(image_backbone, tokenizer, dim, gru=_ONE_WAY, **options)
    return DualEncoder(
        point_towers.mean_image_encoder(images, dim, unit_features),
        encoders.sentence_caption_encoder(words, dim),
        similarity=similarities.Cosine(),
        loss=losses.TripletRanking(margin, mining=mining),
        tokenizer=tokenizer,
        name="vse0" if mining == "sum" else "vsepp",
    )


def vse0(
    image_backbone: ImageBackbone = "resnet152",
    tokenizer: keras.layers.Layer | None = None,
    **options: Any,
) -> DualEncoder:
    """VSE0: VSE++ with all negatives, a hinge each; arguments and errors of `vsepp`.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    zoo.models.vse0("tiny", words, dim=8, word_dim=4, image_size=32)
    ```

    Reference: Kiros et al., "Unifying Visual-Semantic Embeddings with Multimodal Neural Language
        Models", 2014, as Faghri et al. (BMVC 2018) call it.
    """
    return vsepp(image_backbone, tokenizer, mining="sum", **options)


def vsrn(
    image_backbone: ImageBackbone = (36, 2048),
    tokenizer: keras.layers.Layer | None = None,
    dim: int = 2048,
    num_layers: int = 4,
    margin: float = 0.2,
    mining: str = "hardest",
    released: str | None = None,
    **options: Any,
) -> DualEncoder:
    """VSRN: regions related by graph convolutions and read by a GRU, cosine, hardest negatives.

    ```python
    words = zoo.data.WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.vsrn((36, 64), words, dim=8, word_dim=4)  # 36 regions of 64 numbers each
    model.encode_images(np.ones((1, 36, 64), "float32"))  # (1, 8)
    ```

    Args:
        image_backbone, tokenizer, **options: see `zoo.models.backbones`; the cells of a network's
            map are taken for regions. Without anything to make a caption encoder of, a ValueError.
        dim: dimension of the embedding (D).
        num_layers: graph convolutions.
        margin, mining: see `zoo.losses.TripletRanking`, which sums over the batch.
        released: see `zoo.encoders.point_towers.reasoning_image_encoder`.
    Relations: the paper's second loss, which makes the regions tell the caption, comes with
        `with_captioning`.
    Reference: Li et al., "Visual Semantic Reasoning for Image-Text Matching", ICCV 2019.
    Released code differs: for COCO it normalises the regions over regions, before the graphs and
        after them; for Flickr30K a BatchNorm follows the GRU over regions (`released`).
    """
    images, words = backbones(image_backbone, tokenizer, dim, gru=_ONE_WAY, **options)
    return DualEncoder(
        point_towers.reasoning_image_encoder(images, dim, num_layers, released),
        encoders.sentence_caption_encoder(words, dim),
        similarity=similarities.Cosine(),
        loss=losses.TripletRanking(margin, mining=mining),
        tokenizer=tokenizer,
        name="vsrn",
    )


def with_captioning(
    model: DualEncoder,
    weight: float = 1.0,
    vocabulary_size: int | None = None,
    word_dim: int = 300,
    hidden_dim: int = 512,
) -> DualEncoder:
    """VSRN as it is trained with its second loss: the related regions must tell the caption.

    Fit what this returns, and go on with the model that was given: they share all weights but the
    decoder's. Its image embeddings also have `"regions"`.

    ```python
    training = zoo.models.with_captioning(model)
    training.compile("adam")
    training.fit(batches)
    model.save("vsrn.keras")
    ```

    Args:
        model: of `vsrn` or `gaussian_vsrn`.
        weight, word_dim, hidden_dim: of `zoo.losses.Captioning`; the paper adds both losses as they
            are.
        vocabulary_size: number of token ids, where the model has no tokenizer.

    Raises:
        ValueError: if the model has no region reasoning, or there is neither a tokenizer nor
            `vocabulary_size`.
    Reference: VSRN (Li et al., ICCV 2019), section 3.4.
    """
    if model.tokenizer is not None:
        vocabulary_size = model.tokenizer.vocabulary_size()
    if vocabulary_size is None:
        raise ValueError("`vocabulary_size` must be given for a model without a tokenizer")
    encoder, outputs = replay(
        model.image_encoder,
        lambda layer: isinstance(layer, RegionReasoning) and layer.name == "reasoning",
    )
    if not outputs:
        raise ValueError("`model` must have a layer 'reasoning' in its image encoder, as `vsrn`")
    ((regions, _),) = outputs.values()
    regions = keras.ops.copy(regions)  # without Keras' mask: they are zero at padding
    captioning = losses.Captioning(
        vocabulary_size, regions.shape[-1], word_dim, hidden_dim, weight=weight
    )
    telling = keras.Model(encoder.input, {**encoder.output, "regions": regions}, name=encoder.name)
    return DualEncoder(
        telling,
        model.caption_encoder,
        similarity=model.similarity,
        loss=model.loss,
        auxiliaries=[*model.auxiliaries, captioning],
        tokenizer=model.tokenizer,
        uncertainty_measure=model.uncertainty_measure,
        name=model.name,
    )
