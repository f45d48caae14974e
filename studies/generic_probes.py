"""How far off probes of other photos are, and how much thirty own pairs help, text → photo.

    python -m studies.generic_probes ../shared/data > table.md

Galleries of Flickr8k's test photos are asked their captions with COCO's packaged photos as probes,
and COCO's other photos with Flickr8k's: alone, and with pairs of thirty photos that lie outside
the gallery. Also real CLIP vectors, whose model is not here: half of their pairs are the probes.
The interval is one of nine galleries of ten; galleries of one row share the shift between sources.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np
from scipy.special import logit

from studies.people_data import Encoded
from zoo import Tower, evaluation
from zoo.arrays import joined, length, take
from zoo.cli import OneLineParser, run
from zoo.confidence import Probes
from zoo.data import packaged_photos
from zoo.models.presets import from_preset
from zoo.search import Index

MODELS = ("photos_points",)
SIZES = (100, 250, 500)
OWN = 30
COLUMNS = "said | right | shift | \\|said − right\\| | most | interval holds | its width"


@dataclasses.dataclass
class Pairs:
    """Photos and captions, dicts of arrays, and the row of each caption's photo."""

    images: dict
    captions: dict
    owners: np.ndarray

    def of(self, photos):
        """Those of some photos."""
        rows = np.flatnonzero(np.isin(self.owners, photos))
        place = np.full(length(self.images), -1)
        place[photos] = np.arange(len(photos))
        return Pairs(take(self.images, photos), take(self.captions, rows), place[self.owners[rows]])

    def probes(self):
        numbers = np.arange(length(self.images))
        return Probes.of(self.images, self.captions, numbers, self.owners, self.owners)


def main(argv=None):
    parser = OneLineParser(prog="python -m studies.generic_probes", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with clip_vectors, flickr8k, coco_subset")
    parser.add_argument("--draws", type=int, default=10, help="galleries of each row (default 10)")
    options = parser.parse_args(argv)
    print(f"| model | gallery | photos | probes | {COLUMNS} |")
    print("|---" * 11 + "|")
    clip_vectors(options.data / "clip_vectors", options.draws)
    for name in MODELS:
        model = from_preset(name)
        general = evaluation.general_probes(model)
        flickr = Encoded.of(options.data / "flickr8k", name)
        sources = {
            "Flickr8k": Pairs(flickr.images, flickr.captions, flickr.owners),
            "COCO": coco(options.data / "coco_subset", model),
        }
        elsewhere = Pairs.of(sources["Flickr8k"], np.arange(0, 1000, 6)).probes()
        elsewhere = dataclasses.replace(
            elsewhere, general=np.ones(len(elsewhere.caption_labels), bool)
        )
        for gallery, probes, of in (
            ("Flickr8k", general, "COCO"),
            ("COCO", elsewhere, "Flickr8k"),
        ):
            pairs = sources[gallery]
            sizes = [size for size in SIZES if size + OWN <= length(pairs.images)]
            for size in sizes:
                for own in (0, OWN):
                    told = f"{of}, {length(probes.images)}" + (f" + {own} own" if own else "")
                    _row(
                        (name, gallery, f"{size}", told),
                        [
                            drawn(pairs, probes, size, own, model.similarity, seed)
                            for seed in range(options.draws)
                        ],
                    )
    return 0


def coco(folder, model):
    """Photos of COCO that are not packaged."""
    told = json.loads((folder / "captions.json").read_text())
    packaged = {path.name for path in packaged_photos()}
    shown = [one for one in told["images"] if one["file_name"] not in packaged]
    row = {one["id"]: place for place, one in enumerate(shown)}
    kept = [one for one in told["annotations"] if one["image_id"] in row]
    files = [folder / "images" / one["file_name"] for one in shown]
    return Pairs(
        Tower(model, "images").of_files(files),
        Tower(model, "captions").of_texts([one["caption"] for one in kept]),
        np.array([row[one["image_id"]] for one in kept]),
    )


def drawn(pairs, probes, size, own, similarity, seed):
    """What is said and so of one gallery, with so many own photos beside the probes."""
    order = np.random.default_rng(seed).permutation(length(pairs.images))
    if own:
        probes = probes.beside(pairs.of(order[-own:]).probes())
    return asked(pairs.of(order[:size]), probes, similarity)


def asked(pairs, probes, similarity, more=None):
    """`(said, right, shift, low, high)` of a gallery that is asked all of its captions."""
    items = pairs.images if more is None else joined([pairs.images, more])
    index = Index.build(items, similarity, side="images")
    confidence = probes.calibrate(index)
    scores, ids = index.search(pairs.captions, 20)
    said = confidence.probability(index.scores_of(pairs.captions, scores, ids, confidence.copies))
    right = (ids[:, 0] == pairs.owners).mean()
    low, high = (end.mean() for end in confidence.interval(said))
    return said.mean(), right, logit(right) - logit(said.mean()), low, high


def _row(names, found):
    said, right, shift, low, high = map(np.array, zip(*found, strict=True))
    away, holds = np.abs(said - right), (low <= right) & (right <= high)
    cells = (
        f"{said.mean():.3f}",
        f"{right.mean():.3f}",
        f"{shift.mean():+.2f}",
        f"{away.mean():.3f}",
        f"{away.max():.3f}",
        f"{holds.mean():.2f}",
        f"{(high - low).mean():.2f}",
    )
    print(f"| {' | '.join((*names, *cells))} |", flush=True)


def clip_vectors(folder, draws):
    """Half of the pairs as probes, the others asked."""
    for file, name, others in (
        ("flickr8k_clip_b32_pairs", "CLIP B/32", "flickr8k_clip_b32_images"),
        ("coco_val2017_clip_b16_pairs", "CLIP B/16", None),
    ):
        with np.load(folder / f"{file}.npz") as stored:
            images, captions = (
                {"mean": stored[key].astype(np.float32)} for key in ("images", "captions")
            )
            owners = stored["owner"] if "owner" in stored else np.arange(len(images["mean"]))
            names = stored["image_names"]
        pairs = Pairs(images, captions, owners)
        galleries, count = [("alone", None)], length(images)
        if others is not None:
            with np.load(folder / f"{others}.npz") as stored:
                fresh = ~np.isin(stored["image_names"], names)
                galleries.append(("others", {"mean": stored["images"][fresh].astype(np.float32)}))
        for _, more in galleries:
            found = []
            for seed in range(draws):
                order = np.random.default_rng(seed).permutation(count)
                probes, rest = pairs.of(order[: count // 2]).probes(), pairs.of(order[count // 2 :])
                found.append(asked(rest, probes, "cosine", more))
            size = count - count // 2 + (0 if more is None else length(more))
            source = file.split("_")[0].replace("flickr8k", "Flickr8k").replace("coco", "COCO")
            _row((name, source, f"{size:,}", f"its own, {count // 2}"), found)


if __name__ == "__main__":
    run(main)
