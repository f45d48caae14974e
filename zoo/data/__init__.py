"""Data: loaders that return records and a pipeline, tokenisers, augmentation, batches."""

from zoo.data import (
    batches,
    captions,
    class_folders,
    coco,
    crop_triplets,
    cub,
    datasets,
    features,
    flickr30k,
    images,
    own_pairs,
    prompts,
    regions,
    shards,
    sources,
    streams,
    toy_birds,
    toy_scenes,
    vectors,
    visual_genome,
)
from zoo.data.augmentation import Augmentation
from zoo.data.bert_tokenizer import BertTokenizer, read_bert_tokenizer
from zoo.data.captions import WordTokenizer, word_tokenizer
from zoo.data.clip_tokenizer import ClipTokenizer, read_clip_tokenizer
from zoo.data.datasets import LOADERS, Split, open
from zoo.data.packaged_photos import packaged_photos, photo_credits
from zoo.data.records import Loaded, Records, Skipped
from zoo.data.skipped import write_skipped
from zoo.data.streams import MixedStream, Stream, phase_seed

__all__ = [
    "LOADERS",
    "Augmentation",
    "BertTokenizer",
    "ClipTokenizer",
    "Loaded",
    "MixedStream",
    "Records",
    "Skipped",
    "Split",
    "Stream",
    "WordTokenizer",
    "batches",
    "captions",
    "class_folders",
    "coco",
    "crop_triplets",
    "cub",
    "datasets",
    "features",
    "flickr30k",
    "images",
    "open",
    "own_pairs",
    "packaged_photos",
    "phase_seed",
    "photo_credits",
    "prompts",
    "read_bert_tokenizer",
    "read_clip_tokenizer",
    "regions",
    "shards",
    "sources",
    "streams",
    "toy_birds",
    "toy_scenes",
    "vectors",
    "visual_genome",
    "word_tokenizer",
    "write_skipped",
]
