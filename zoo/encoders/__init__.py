"""Encoders: images and captions to features, and to embeddings."""

from zoo.encoders.clip import CLIP, clip_image, clip_text
from zoo.encoders.convolutional import (
    CONVOLUTIONAL,
    FROM_SCRATCH,
    backbone_of_file,
    convolutional,
    resnext,
)
from zoo.encoders.efficientnet_lite import (
    efficientnet_lite2,
    load_efficientnet_lite_weights,
    stage_layers,
)
from zoo.encoders.open_clip import open_clip_image, open_clip_text
from zoo.encoders.point_towers import sentence_caption_encoder, vector_encoder
from zoo.encoders.sentence import sentences, with_trainable_blocks
from zoo.encoders.set_towers import map_size, with_attention
from zoo.encoders.stored_features import (
    head_alone,
    image_features,
    mean_and_max,
    regions,
    side_by_side,
    vectors,
)
from zoo.encoders.words import bert, gru

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
    "gru",
    "head_alone",
    "image_features",
    "load_efficientnet_lite_weights",
    "map_size",
    "mean_and_max",
    "open_clip_image",
    "open_clip_text",
    "regions",
    "resnext",
    "sentence_caption_encoder",
    "sentences",
    "side_by_side",
    "stage_layers",
    "vector_encoder",
    "vectors",
    "with_attention",
    "with_trainable_blocks",
]
