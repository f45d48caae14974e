"""Evaluates saved embeddings: `python -m zoo.metrics EMBEDDINGS.npz`.

The file holds `image_mean` and `caption_mean` `(items, dim)`, for Gaussians also
`image_log_variance` and `caption_log_variance`, for sets `image_elements` and `caption_elements`
`(items, elements, dim)` instead; and `image_labels` and `caption_labels` `(items,)`, equal labels
match. With `--coco DIR` the labels are `image_ids` and `caption_ids` of the Karpathy test split.
"""

import importlib
from pathlib import Path

from zoo.choices import BY_KIND, SIMILARITIES
from zoo.cli import OneLineParser, program, run


def main(argv=None):
    options = _parser().parse_args(argv)
    importlib.import_module("zoo.metrics.command").main(options)


def _parser():
    description, details = __doc__.split("\n\n", 1)
    parser = OneLineParser(
        prog=program("python -m zoo.metrics"), description=description, epilog=details
    )
    parser.add_argument("embeddings", type=Path, metavar="EMBEDDINGS.npz")
    parser.add_argument(
        "--similarity",
        metavar="NAME",
        help=f"{', '.join(SIMILARITIES)}, with its default settings "
        f"(default: {', '.join(f'{name} for {kind}' for kind, name in BY_KIND.items())})",
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


if __name__ == "__main__":
    run(main)
