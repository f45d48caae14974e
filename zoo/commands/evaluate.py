"""Evaluates saved embeddings, or a model over photos with captions.

    halo evaluate EMBEDDINGS.npz
    halo evaluate --model siglip2_base_patch16_224 --pairs flickr8k/

A model is whatever `zoo.from_preset` opens, and `--pairs` a folder in any layout of
`zoo.data.captioned_folder`; without it a run or preset is evaluated on its own test split. The file
of embeddings holds `image_mean` and `caption_mean` `(items, dim)`, for Gaussians also
`image_log_variance` and `caption_log_variance`, for sets `image_elements` and `caption_elements`
`(items, elements, dim)` instead; and `image_labels` and `caption_labels` `(items,)`, equal labels
match. With `--coco DIR` the labels are `image_ids` and `caption_ids` of the Karpathy test split.
"""

import argparse
import importlib
from pathlib import Path

from zoo.choices import BY_KIND, SIMILARITIES
from zoo.cli import OneLineParser


def main(argv=None):
    parser = _parser()
    options = parser.parse_args(argv)
    if (options.embeddings is None) == (options.model is None):
        parser.error("expected EMBEDDINGS.npz or --model, one of these")
    if options.model is None and (options.pairs or options.image_dir):
        parser.error("--pairs and --image-dir need --model")
    if options.model is not None and options.coco:
        parser.error("--coco needs EMBEDDINGS.npz")
    importlib.import_module("zoo.registered")  # after the flags: it imports Keras
    room = "zoo.metrics.command" if options.model is None else "zoo.evaluation.of_folder"
    importlib.import_module(room).main(options)


def _parser():
    description, details = __doc__.split("\n\n", 1)
    parser = OneLineParser(
        prog="halo evaluate",
        description=description,
        epilog=details,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("embeddings", type=Path, nargs="?", metavar="EMBEDDINGS.npz")
    parser.add_argument("--model", help="name, folder or handle of a model to encode with")
    parser.add_argument("--pairs", type=Path, metavar="FOLDER", help="photos with captions")
    parser.add_argument(
        "--image-dir", type=Path, metavar="DIR", help="its photos (default: found below it)"
    )
    parser.add_argument(
        "--similarity",
        metavar="NAME",
        help=f"{', '.join(SIMILARITIES)}, with its default settings "
        f"(default: the model's own; of a file "
        f"{', '.join(f'{name} for {kind}' for kind, name in BY_KIND.items())})",
    )
    parser.add_argument(
        "--coco",
        type=Path,
        metavar="DIR",
        help="folder of ECCV Caption's files: print COCO 1K and 5K, CxC and ECCV Caption",
    )
    parser.add_argument(
        "--instances",
        type=Path,
        nargs="+",
        metavar="JSON",
        help="with --coco: COCO instances JSON of the test images, for PMRP",
    )
    parser.add_argument("--out", type=Path, metavar="JSON", help="also write the figures")
    return parser
