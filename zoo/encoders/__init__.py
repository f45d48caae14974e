"""Encoders: images and captions to features, and to embeddings."""

from zoo.encoders.convolutional import CONVOLUTIONAL, backbone_of_file, convolutional
from zoo.encoders.gru import gru
from zoo.encoders.pooled_towers import pooled_caption_encoder, pooled_image_encoder
from zoo.encoders.towers import gaussian_caption_encoder, gaussian_image_encoder

__all__ = [
    "CONVOLUTIONAL",
    "backbone_of_file",
    "convolutional",
    "gaussian_caption_encoder",
    "gaussian_image_encoder",
    "gru",
    "pooled_caption_encoder",
    "pooled_image_encoder",
]
