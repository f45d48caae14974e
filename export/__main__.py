"""`python -m export RUN OUT`: a trained model as a versioned SavedModel, or as ONNX files."""

import argparse
import importlib

from export.choices import FORMATS, MAX_PIXELS, SAVED_MODEL, STORAGE
from halo_search.cli.checks import check_model
from halo_search.cli.numbers import number, whole_number
from halo_search.cli.parser import OneLineParser, program, run


def main(argv=None):
    options = _parser().parse_args(argv)
    check_model(options.run)
    # Imported after the flags are read: help needs no TensorFlow.
    importlib.import_module("export.command").main(options)


def _parser():
    parser = OneLineParser(prog=program("python -m export"), description=__doc__)
    parser.add_argument("run", metavar="RUN", help="name, folder or handle of a model")
    parser.add_argument("out", metavar="OUT", help="folder of the versions; created if missing")
    parser.add_argument(
        "--version", type=whole_number(), default=1, help="version number (default 1)"
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default=SAVED_MODEL,
        help=f"{SAVED_MODEL} (default) takes bytes and strings; onnx pixels and token ids",
    )
    parser.add_argument("--image-only", action="store_true", help="no captions, no tokenizer")
    parser.add_argument(
        "--index",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="signatures with search-space vectors",
    )
    parser.add_argument(
        "--batch-size", type=whole_number(), help="the one size of a batch (default: any)"
    )
    parser.add_argument(
        "--image-size", type=whole_number(), help="where the image encoder leaves it free"
    )
    parser.add_argument(
        "--storage", choices=STORAGE, default="float32", help="of the weights (float32)"
    )
    parser.add_argument(
        "--resize",
        choices=("crop", "stretch"),
        help="crop the middle, or stretch the whole (as the run did)",
    )
    parser.add_argument(
        "--crop-fraction", type=number(0, 1), help="of the shorter side, for crop (as the run did)"
    )
    parser.add_argument(
        "--max-pixels",
        type=whole_number(),
        default=MAX_PIXELS,
        help=f"of a picture ({MAX_PIXELS:,})",
    )
    return parser


if __name__ == "__main__":
    run(main)
