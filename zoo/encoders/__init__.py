"""Encoders: images and captions to features, and to embeddings."""

from zoo.encoders.clip import CLIP, clip_image, clip_text
from zoo.encoders.convolutional import (
    CONVOLUTIONAL,
    FROM_SCRATCH,
    backbone_of_file,
    convolutional,
    load_torchvision_weights,
    resnext,
    torchvision_backbone,
)
from zoo.encoders.efficientnet_lite import (
    efficientnet_lite2,
    load_efficientnet_lite_weights,
    stage_layers,
)
from zoo.encoders.gaussian_towers import (
    gaussian_caption_encoder,
    gaussian_image_encoder,
    pooled_caption_encoder,
    pooled_image_encoder,
)
from zoo.encoders.open_clip import open_clip_image, open_clip_text
from zoo.encoders.point_towers import (
    hub_caption_encoder,
    hub_image_encoder,
    mean_image_encoder,
    reasoning_image_encoder,
    sentence_caption_encoder,
    vector_encoder,
)
from zoo.encoders.sentence import sentences, with_trainable_blocks
from zoo.encoders.set_towers import (
    map_size,
    region_token_encoder,
    set_caption_encoder,
    set_image_encoder,
    with_attention,
    word_token_encoder,
)
from zoo.encoders.stored_features import (
    head_alone,
    image_features,
    mean_and_max,
    regions,
    side_by_side,
    vectors,
)
from zoo.encoders.words import bert, gru
from zoo.errors import lookup

__all__ = [
    "CLIP",
    "CONVOLUTIONAL",
    "FROM_SCRATCH",
    "backbone_of_file",
    "bert",
    "clip_image",
    "clip_text",
    "convolutional",
    "efficientnet_lite2",
    "gaussian_caption_encoder",
    "gaussian_image_encoder",
    "gru",
    "head_alone",
    "hub_caption_encoder",
    "hub_image_encoder",
    "image_features",
    "load_efficientnet_lite_weights",
    "load_torchvision_weights",
    "map_size",
    "mean_and_max",
    "mean_image_encoder",
    "open_clip_image",
    "open_clip_text",
    "pooled_caption_encoder",
    "pooled_image_encoder",
    "reasoning_image_encoder",
    "region_token_encoder",
    "regions",
    "resnext",
    "sentence_caption_encoder",
    "sentences",
    "set_caption_encoder",
    "set_image_encoder",
    "side_by_side",
    "stage_layers",
    "torchvision_backbone",
    "vector_encoder",
    "vectors",
    "with_attention",
    "with_trainable_blocks",
    "word_token_encoder",
]

__getattr__ = lookup(__name__)  # names of earlier versions
