"""Learns for a preset of photos how likely results fit, and the captioned photos it asks.

    python -m tools.preset_fits photos_pfe ../shared/data zoo/presets/photos_pfe/probes.npz

Reads Flickr8k's validation photos, which training has not seen, Flickr8k's training photos and
COCO's that nobody is shown, which become the bank of the second opinion, and the half of the eye
labels that is to learn from (`studies.people_data`). Writes the preset's probes with the bank and
what was learnt; of Gaussians for their means alone too, which `photos_points` searches. `--short`
learns again what is said of short questions alone, in minutes.
"""

import dataclasses
from pathlib import Path

import numpy as np

from halo_search import open_tower
from halo_search.confidence.bank import Bank
from halo_search.confidence.probes import OF_POINTS
from halo_search.confidence.senses import Lexicon, worded
from halo_search.embeddings.arrays import joined
from studies.people_data import Encoded, labels_to_learn
from tools.preset_photos import unshown
from zoo import evaluation, similarities
from zoo.cli import OneLineParser, run
from zoo.evaluation.fits import learn_fits, learn_short, with_fits


def main(argv=None):
    options = _parser().parse_args(argv)
    flickr, cache = options.data / "flickr8k", options.cache
    data = Encoded.of(flickr, options.preset, "validation", cache=cache)
    captions = open_tower(options.preset, "captions")
    probes = evaluation.probes_of(options.preset)
    bank = probes.bank
    if not options.short:
        train = Encoded.of(flickr, options.preset, "train", cache=cache, sentences=False)
        shown = options.data / "coco_subset/images"
        coco = Encoded.of_rows(shown, unshown(options.data), options.preset, "coco", cache)
        bank = bank_of(train, coco)
    bank = bank.with_lexicon(Lexicon(worded(), captions.of_texts(worded())["mean"]))
    captioned = data.captioned(probes, captions.of_texts, "Flickr8k's validation split")
    captioned = dataclasses.replace(captioned, near=bank)
    labelled = labels_to_learn(options.data, options.preset, cache)

    def learn(captioned, labelled, prefix=""):
        if not options.short:
            return learn_fits(captioned, seed=options.seed, labelled=labelled)
        known = {
            name.removeprefix(prefix): fits
            for name, fits in probes.fits.items()
            if name.startswith(OF_POINTS) == bool(prefix)
        }
        return learn_short(captioned, known, labelled, seed=options.seed)

    learned = learn(captioned, labelled)
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
        means = [gallery._replace(images={"mean": gallery.images["mean"]}) for gallery in labelled]
        of_points = learn(points, means, OF_POINTS)
        learned |= {f"{OF_POINTS}{name}": fits for name, fits in of_points.items()}
    probes = with_fits(probes, learned, bank)
    probes.save(options.out)
    for name, gallery in learned.items():
        weights = {
            kind: second.weights.round(2).tolist() for kind, second in gallery.second.items()
        }
        print(
            f"{name}: ρ {gallery.sentence.round(2)}; second opinion {weights}; "
            f"below {gallery.below}"
        )
        for trial in gallery.trials:
            cuts = [gallery.cut(share, trial.size) for share in (0.2, 0.3, 0.4)]
            listed = ", ".join(
                "none" if cut is None else f"{cut.threshold:.2f} answers {cut.answered:.2f}"
                for cut in cuts
            )
            print(f"  {trial.size} items: at 20, 30 and 40 % unfit: {listed}")
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.2f} MB")
    return 0


def bank_of(*parts):
    """The `Bank` of several `Encoded`."""
    starts = np.cumsum([0, *(len(part.names) for part in parts)])
    owners = [part.owners + start for part, start in zip(parts, starts, strict=False)]
    sides = [joined([getattr(part, side) for part in parts]) for side in ("images", "captions")]
    texts = [text for part in parts for text in part.texts]
    return Bank.of(*(side["mean"] for side in sides), np.concatenate(owners), texts)


def _parser():
    parser = OneLineParser(prog="python -m tools.preset_fits", description=__doc__.split("\n")[0])
    parser.add_argument("preset", help="its name")
    parser.add_argument("data", type=Path, help="folder with flickr8k and coco_subset")
    parser.add_argument("out", type=Path, help="file of the probes to write")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    parser.add_argument("--short", action="store_true", help="learn short questions alone")
    parser.add_argument("--cache", type=Path, help="folder to keep the encoded photos in")
    return parser


if __name__ == "__main__":
    run(main)
