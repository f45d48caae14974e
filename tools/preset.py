"""Makes a preset of a finished run: its model in half precision, its card and its probes.

    python -m tools.preset runs/birds zoo/presets/birds_infonce --about about.json

`about.json` holds what a run does not know, or says with paths of one machine: `trained_on`,
`command`, `license`, `terms`, `not_for`.
"""

import json
from pathlib import Path

import zoo
from halo_search.confidence.probes import DIRECTIONS
from halo_search.errors import InputError
from zoo.cli import OneLineParser, run
from zoo.evaluation.calibration import Answers, calibrated, measure
from zoo.models.run_folder import RunFolder

# Where the data lie is each user's own, and Toy Birds' further classes are to train on alone: who
# asks a preset wants its validation and its test, which are the same without.
OWN = ("root", "more_classes")
ABOUT = ("trained_on", "command", "license", "terms", "not_for")
SAID = ("nauc", "calibration_error")  # of the confidence, each direction


def main(argv=None):
    options = _parser().parse_args(argv)
    folder = RunFolder.existing(options.run)
    if not folder.finished:
        raise InputError(f"{folder.path}: is not finished")
    about = json.loads(options.about.read_text(encoding="utf-8"))
    if set(about) != set(ABOUT):
        raise InputError(f"{options.about}: expected {', '.join(ABOUT)}; found {sorted(about)}")
    model = zoo.from_preset(folder.path)
    zoo.save_preset(
        model,
        options.out,
        card_of(folder, model, about),
        half_precision=True,
        files=[folder.probes_path] if folder.probes_path.is_file() else [],
    )
    size = sum(path.stat().st_size for path in options.out.iterdir())
    print(f"{options.out}: {size / 1e6:.1f} MB")
    return 0


def card_of(folder, model, about):
    """What the card of a run's model says."""
    settings, results = folder.config["settings"], folder.metrics
    retrieval = next(iter(results["retrieval"].values()))
    return {
        **about,
        "system": model.name,
        "seed": settings["seed"],
        "data": {name: value for name, value in folder.data.items() if name not in OWN},
        "evaluated_on": results["split"],
        "metrics": {name: round(value, 2) for name, value in retrieval.items()},
        "chance": {
            name: round(value, 2)
            for name, value in results["chance"].items()
            if name.endswith(("recall@1", "r_precision"))
        },
        "confidence": {
            direction: {name: round(confidence[name], 3) for name in SAID if name in confidence}
            for direction, confidence in results["confidence"].items()
        },
    }


def said_by(probes, similarity, encoded):
    """What a preset's probes give of the test gallery, for its card: by direction a dict."""
    probabilities = {}
    for direction in DIRECTIONS:
        confidence = calibrated(probes, similarity, encoded, direction)
        answers = Answers.of(encoded, similarity, direction, copies=confidence.copies)
        worth = measure(confidence, answers)
        probabilities[direction] = {name: round(worth[name], 3) for name in SAID}
    return probabilities


def _parser():
    parser = OneLineParser(prog="python -m tools.preset", description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path, help="a finished run folder")
    parser.add_argument("out", type=Path, help="the folder to make; its name is the preset's")
    parser.add_argument("--about", type=Path, required=True, help="JSON of what the run cannot say")
    return parser


if __name__ == "__main__":
    run(main)
