"""Learns for a preset of photos how likely other items than the wanted one fit, both ways.

    python -m tools.preset_fits photos_pfe ../shared/data/flickr8k zoo/presets/photos_pfe/probes.npz

Reads the validation photos of Flickr8k, which training has not seen, and writes the preset's probes
with what was learnt; of Gaussians for their means alone too, which `photos_points` searches.
"""

import dataclasses
from pathlib import Path

from studies.people_data import Encoded
from zoo import Tower, evaluation, similarities
from zoo.cli import OneLineParser, run
from zoo.confidence.probes import OF_POINTS
from zoo.evaluation.fits import learn_fits, with_fits


def main(argv=None):
    options = _parser().parse_args(argv)
    data = Encoded.of(options.folder, options.preset, "validation", cache=options.cache)
    captions = Tower(options.preset, "captions")
    probes = evaluation.probes_of(options.preset)
    captioned = data.captioned(probes, captions.of_texts, "Flickr8k's validation split")
    found = learn_fits(captioned, seed=options.seed)
    if "log_variance" in data.images:
        points = dataclasses.replace(
            captioned,
            images={"mean": data.images["mean"]},
            captions={"mean": data.captions["mean"]},
            similarity=similarities.Cosine(),
            encode=lambda texts: {"mean": captions.of_texts(texts)["mean"]},
            reference={
                direction: {"mean": side["mean"]} for direction, side in captioned.reference.items()
            },
        )
        found |= {
            f"{OF_POINTS}{name}": one for name, one in learn_fits(points, seed=options.seed).items()
        }
    probes = with_fits(probes, found)
    probes.save(options.out)
    for name, one in found.items():
        slopes = " ".join(f"{value:.2f}" for value in one.sentence)
        words = "" if one.words is None else " ".join(f"{value:.2f}" for value in one.words)
        print(
            f"{name}: sentence {slopes}; words {words}; absent below {one.absent_below:.2f}; words "
            f"below {one.words_below:.3f}; presence {one.presence.weights.round(2)}"
        )
        for trial in one.trials:
            cuts = [one.cut(share, trial.size) for share in (0.2, 0.3, 0.4)]
            told = ", ".join(
                "none" if cut is None else f"{cut.threshold:.2f} answers {cut.answered:.2f}"
                for cut in cuts
            )
            print(f"  {trial.size} items: at 20, 30 and 40 % unfit: {told}")
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.2f} MB")
    return 0


def _parser():
    parser = OneLineParser(prog="python -m tools.preset_fits", description=__doc__.split("\n")[0])
    parser.add_argument("preset", help="its name")
    parser.add_argument("folder", type=Path, help="of Flickr8k")
    parser.add_argument("out", type=Path, help="file of the probes to write")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    parser.add_argument("--cache", type=Path, help="folder to keep the encoded photos in")
    return parser


if __name__ == "__main__":
    run(main)
