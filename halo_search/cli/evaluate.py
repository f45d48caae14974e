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

from pathlib import Path

from halo_search.cli.checks import check_model, check_path
from halo_search.cli.parser import OneLineParser, naming
from halo_search.towers import keras_models


def main(argv=None):
    parser = _parser()
    options = parser.parse_args(argv)
    if (options.embeddings is None) == (options.model is None):
        parser.error("expected EMBEDDINGS.npz or --model, one of these")
    if options.model is None and (options.pairs or options.image_dir):
        parser.error("--pairs and --image-dir need --model")
    if options.model is not None and options.coco:
        parser.error("--coco needs EMBEDDINGS.npz")
    check_path(options.embeddings, f"{options.embeddings}: there is no such file")
    check_path(options.pairs, f"--pairs {options.pairs}: no such file or folder")
    check_path(options.image_dir, f"--image-dir {options.image_dir}: no such folder")
    check_path(options.coco, f"--coco {options.coco}: no such folder")
    with naming("--model", options.model):
        check_model(options.model)
    keras_models().evaluate(options)


def _parser():
    description, details = __doc__.split("\n\n", 1)
    parser = OneLineParser(
        prog="halo evaluate",
        description=description,
        epilog=details,
    )
    parser.add_argument("embeddings", type=Path, nargs="?", metavar="EMBEDDINGS.npz")
    parser.add_argument("--model", help="name, folder or handle of a model to encode with")
    parser.add_argument(
        "--pairs", type=Path, metavar="FOLDER", help="folder of photos with captions"
    )
    parser.add_argument(
        "--image-dir",
        type=Path,
        metavar="DIR",
        help="folder of its photos (default: found below FOLDER)",
    )
    parser.add_argument(
        "--similarity",
        metavar="NAME",
        help="name of a similarity of zoo.similarities, with its default settings (default: the "
        "model's own; of a file cosine for points, csd for Gaussians, smooth_chamfer for sets)",
    )
    parser.add_argument(
        "--coco",
        type=Path,
        metavar="DIR",
        help="folder of ECCV Caption's files; prints COCO 1K and 5K, CxC and ECCV Caption",
    )
    parser.add_argument(
        "--instances",
        type=Path,
        nargs="+",
        metavar="JSON",
        help="COCO instances of the test images, for PMRP; requires --coco",
    )
    parser.add_argument("--out", type=Path, metavar="JSON", help="file to write the figures to")
    return parser
