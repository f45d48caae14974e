"""What is said of COCO's photos that fit, by probes of Flickr8k and by probes of COCO.

    python -m studies.coco_fits photos_pfe ../shared/data/coco_subset

Asks the third caption of photos of COCO that training has not seen, over galleries of some of them.
*True* is the oracle's probability, since nobody judged these pairs. The probes are the model's own;
or pairs of COCO's other photos, as `Retriever.calibrate` takes them, with the model's ρ; with
`--learn` also with a ρ that was learnt from these photos. Over all photos one half of them are the
probes of the questions about the other half.
"""

import dataclasses
from pathlib import Path

import numpy as np

from studies.fits import People
from studies.people_data import Encoded
from zoo import Tower, evaluation
from zoo.cli import OneLineParser, run
from zoo.confidence import Probes
from zoo.evaluation.fits import Captioned, learn_fits

KINDS = ("the model's", "COCO's pairs, the model's ρ", "COCO's pairs and ρ")
COLUMNS = ("1", "2–20", "number", "said − true at 1")


def main(argv=None):
    options = _parser().parse_args(argv)
    model = evaluation.probes_of(options.model)
    data = Encoded.of_coco(options.folder, set(model.trained_on), options.model, options.cache)
    encode = Tower(options.model, "captions").of_texts if options.learn else None
    kinds = KINDS if options.learn else KINDS[:2]
    people = People(data, options.model, model)
    print(f"{people.count} photos of COCO\n\n| photos | probes | {' | '.join(COLUMNS)} |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    for size in (*options.sizes, people.count):
        found = {kind: [] for kind in kinds}
        for draw in range(options.draws):
            order = np.random.default_rng(options.seed + draw).permutation(people.count)
            halves = (order[size:],) if size < people.count else np.array_split(order, 2)
            for others in halves:
                asked = np.setdiff1d(order, others)
                photos = asked if size < people.count else order
                for kind, probes in zip(kinds, _probes(model, data, others, encode), strict=True):
                    people.probes = probes
                    found[kind].append(people.answers(photos, asked))
        for kind, parts in found.items():
            print(f"| {size} | {kind} | {_cells(parts)} |", flush=True)
    return 0


def _probes(model, data, photos, encode):
    """`Probes`, see `KINDS`; the third where the model's `encode` is given."""
    part = data.select(photos)
    rows = np.arange(len(photos))
    pairs = Probes.of(
        part.images,
        part.captions,
        rows,
        part.owners,
        part.owners,
        known=model.known,
        fits=model.fits,
        source="other photos of COCO",
    )
    if encode is None:
        return model, pairs
    captioned = Captioned(
        part.images, part.captions, part.owners, part.texts, part.sentences, part.similarity, encode
    )
    return model, pairs, dataclasses.replace(pairs, fits=learn_fits(captioned))


def _cells(parts):
    said, true = (np.concatenate([one[name] for one in parts]) for name in ("said", "true"))
    number, fitting = (
        np.concatenate([one[name] for one in parts]).mean() for name in ("number", "fitting")
    )
    away = [one["said"][:, 0].mean() - one["true"][:, 0].mean() for one in parts]
    cells = [
        f"{said[:, part].mean():.3f} / {true[:, part].mean():.3f}" for part in (0, slice(1, 20))
    ]
    cells.append(f"{number:.2f} / {fitting:.2f}")
    cells.append(f"{np.mean(away):+.3f} [{min(away):+.3f}, {max(away):+.3f}]")
    return " | ".join(cells)


def _parser():
    parser = OneLineParser(prog="python -m studies.coco_fits", description=__doc__.split("\n")[0])
    parser.add_argument("model", help="a preset or a run that says what else fits")
    parser.add_argument("folder", type=Path, help="of COCO's photos, with captions.json")
    parser.add_argument("--sizes", nargs="+", type=int, default=[80], help="beside all photos")
    parser.add_argument("--learn", action="store_true", help="ρ from COCO's photos too")
    parser.add_argument("--draws", type=int, default=3, help="of each gallery (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")
    parser.add_argument("--cache", type=Path, help="folder to keep the encoded photos in")
    return parser


if __name__ == "__main__":
    run(main)
