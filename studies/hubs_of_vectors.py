"""What correcting hubs changes for stored vectors of images and captions that belong together.

    python -m studies.hubs_of_vectors clip.npz [--others more.npz]

The file holds `images` and `captions`, and the `owner` of each caption where it is not row by row.
Captions of one half of the images are the bank, those of the other half ask all images, and of the
images their captions: recall with and without, over `--draws` halves.
"""

from pathlib import Path

import numpy as np

from halo_search.index import Index
from zoo.cli import OneLineParser, run

KS = (1, 5, 10)


def main(argv=None):
    parser = OneLineParser(prog="python -m studies.hubs_of_vectors", description=__doc__)
    parser.add_argument("vectors", type=Path, help="an .npz file")
    parser.add_argument("--others", type=Path, help="an .npz file of further `images`")
    parser.add_argument("--draws", type=int, default=5, help="halves (default 5)")
    options = parser.parse_args(argv)
    with np.load(options.vectors, allow_pickle=False) as file:
        images, captions = (file[name].astype("float32") for name in ("images", "captions"))
        owner = file["owner"] if "owner" in file.files else np.arange(len(captions))
    others = images[:0]
    if options.others is not None:
        with np.load(options.others, allow_pickle=False) as file:
            others = file["images"].astype("float32")
    print(f"| direction | hubs | {' | '.join(f'R@{k}' for k in KS)} |\n|---|---|{'---|' * len(KS)}")
    for direction in ("t2i", "i2t"):
        for corrected in (False, True):
            results = [
                recalls(images, captions, owner, others, direction, corrected, draw)
                for draw in range(options.draws)
            ]
            cells = " | ".join(f"{100 * value:.1f}" for value in np.mean(results, axis=0))
            print(f"| {direction} | {'corrected' if corrected else 'as they are'} | {cells} |")
    return 0


def recalls(images, captions, owner, others, direction, corrected, seed):
    """R@K of half of the images' questions."""
    inside = np.random.default_rng(seed).permutation(len(images)) < len(images) // 2
    asks = inside[owner]
    if direction == "t2i":
        items, queries, bank = np.concatenate([images, others]), captions[asks], captions[~asks]
        matches = owner[asks][:, None] == np.arange(len(items))
    else:
        items, queries, bank = captions, images[inside], images[~inside]
        matches = np.flatnonzero(inside)[:, None] == owner
    bank = {"mean": np.concatenate([bank, others]) if direction == "i2t" else bank}
    hubs = bank if corrected and len(bank["mean"]) >= 100 else None
    index = Index.build({"mean": items}, "cosine", hubs=hubs)
    ids = index.search({"mean": queries}, min(max(KS), len(items)))[1]
    return [np.take_along_axis(matches, ids[:, :k], axis=1).any(axis=1).mean() for k in KS]


if __name__ == "__main__":
    run(main)
