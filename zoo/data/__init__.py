"""Data: loaders that return records and a pipeline, tokenisers, augmentation, batches.

Rooms, each of which imports the ones before it:

    text      captions to word ids; tokenizers; prompts
    records   what a split is: images, captions, which belongs to which, and where images come from
    pipeline  what training does to pictures and words; batches for training and for encoding
    loaders   one file for each data set, from its files to records
    toy       drawn data sets with the truth about ambiguity
    datasets  the loaders that `open` knows
"""

from halo_search.photos import (
    packaged_captions,
    packaged_photos,
    photo_credits,
)
from zoo.data import datasets
from zoo.data.datasets import LOADERS, Split, open
from zoo.data.loaders import (
    coco,
    cub,
    flickr30k,
    own_pairs,
    regions,
    vectors,
    visual_genome,
)
from zoo.data.loaders.own_pairs import Captioned, captioned_folder
from zoo.data.pipeline import batches, streams
from zoo.data.pipeline.augmentation import Augmentation
from zoo.data.pipeline.streams import Stream, phase_seed
from zoo.data.records import Loaded, Records, Skipped, features, sources
from zoo.data.records.records import write_skipped
from zoo.data.text import captions, prompts
from zoo.data.text.bert_tokenizer import BertTokenizer, read_bert_tokenizer
from zoo.data.text.captions import WordTokenizer, word_tokenizer
from zoo.data.text.clip_tokenizer import ClipTokenizer, read_clip_tokenizer
from zoo.data.text.vocabulary_tokenizer import VocabularyTokenizer, read_vocabulary_tokenizer
from zoo.data.toy import birds as toy_birds
from zoo.data.toy import scenes as toy_scenes
from zoo.images import pictures as images

__all__ = [
    "LOADERS",
    "Augmentation",
    "BertTokenizer",
    "Captioned",
    "ClipTokenizer",
    "Loaded",
    "Records",
    "Skipped",
    "Split",
    "Stream",
    "VocabularyTokenizer",
    "WordTokenizer",
    "batches",
    "captioned_folder",
    "captions",
    "coco",
    "cub",
    "datasets",
    "features",
    "flickr30k",
    "images",
    "open",
    "own_pairs",
    "packaged_captions",
    "packaged_photos",
    "phase_seed",
    "photo_credits",
    "prompts",
    "read_bert_tokenizer",
    "read_clip_tokenizer",
    "read_vocabulary_tokenizer",
    "regions",
    "sources",
    "streams",
    "toy_birds",
    "toy_scenes",
    "vectors",
    "visual_genome",
    "word_tokenizer",
    "write_skipped",
]
