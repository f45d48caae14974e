"""`python -m export RUN OUT`: a trained model as a versioned SavedModel with signatures."""

import argparse
import json
from pathlib import Path

from export.requests import MAX_PIXELS
from export.saved_model import export_model
from export.stored_weights import STORAGE
from zoo import evaluation, models
from zoo.cli import OneLineParser, program, run
from zoo.confidence import Confidence
from zoo.errors import InputError
from zoo.files import RunFolder
from zoo.retriever.retriever import CALIBRATION
from zoo.search import built


def main(argv=None):
    parser = OneLineParser(prog=program("python -m export"), description=__doc__)
    parser.add_argument("run", metavar="RUN", help="run folder, preset or .keras file")
    parser.add_argument("out", metavar="OUT", help="folder of the versions, made when missing")
    parser.add_argument("--version", type=int, default=1, help="number of the version (1)")
    parser.add_argument("--image-only", action="store_true", help="no captions, no tokenizer")
    parser.add_argument(
        "--index",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="signatures with search-space vectors",
    )
    parser.add_argument("--batch-size", type=int, help="the one size of a batch (default: any)")
    parser.add_argument("--image-size", type=int, help="where the image encoder leaves it free")
    parser.add_argument(
        "--storage", choices=STORAGE, default="float32", help="of the weights (float32)"
    )
    parser.add_argument(
        "--resize",
        choices=("crop", "stretch"),
        help="crop the middle, or stretch the whole (as the run did)",
    )
    parser.add_argument(
        "--crop-fraction", type=float, help="of the shorter side, for crop (as the run did)"
    )
    parser.add_argument(
        "--max-pixels", type=int, default=MAX_PIXELS, help=f"of a picture ({MAX_PIXELS:,})"
    )
    parser.add_argument(
        "--gallery",
        type=Path,
        metavar="FOLDER",
        help="what `halo search build` wrote: signatures say how likely an answer is right there",
    )
    options = vars(parser.parse_args(argv))
    name, out, gallery = (options.pop(key) for key in ("run", "out", "gallery"))
    if (Path(name) / built.SETUP).is_file():  # a gallery names its model
        gallery = gallery or Path(name)
        name = str(built.model_of(Path(name)))
    model = models.from_preset(name)
    resizing = evaluation.resizing_of(name)
    if options["resize"] is None:
        options["resize"] = resizing["mode"]
    if options["crop_fraction"] is None:
        options["crop_fraction"] = resizing["crop_fraction"]
    config, metrics = _record(name)
    probes = evaluation.probes_of(name)
    target = export_model(
        model,
        out,
        config=config,
        metrics=metrics,
        calibrations={} if gallery is None else _calibrations(gallery),
        known={} if probes is None else probes.known,
        **options,
    )
    facts = json.loads((target / "export.json").read_text(encoding="utf-8"))
    for output, error in facts["largest_errors"].items():
        print(f"{output:32} {error:.2g}")
    print(f"{target}: {', '.join(facts['signatures'])}")
    print(f"serve it: cd {out} && docker compose up")


def _calibrations(gallery):
    """The calibration of a gallery, by its direction."""
    retriever_of = built.read_setup(gallery)
    path = gallery / retriever_of.get("index", built.INDEX) / CALIBRATION
    if not path.is_file():
        raise InputError(f"--gallery {gallery}: is not calibrated; its model has no probes")
    return {"i2t" if retriever_of["captions"] else "t2i": Confidence.load(path)}


def _record(name):
    """The configuration and the results that a run folder or a preset tells of."""
    card, folder = evaluation.card_of(name), RunFolder(name)
    if card is not None:
        return card, card.get("metrics")
    return (folder.config, folder.metrics) if folder.is_run else ({}, None)


if __name__ == "__main__":
    run(main)
