"""Photos of one's own, few and many: `own_pairs.py` on parts of Flickr8k and on birds.

    python -m studies.own_pairs_table --data-dir ../shared/data --out runs/own_pairs_table
    python -m studies.own_pairs_table --data-dir ../shared/data --seeds 0 --readers sentence gru

Of Flickr8k's training photos a part is drawn with each seed, its validation and test photos stay
as they are: 1,000 each. Birds are crops of CUB, split by photo, 1,000 of them. Prints a
table in Markdown, mean ± standard deviation over the seeds, and writes it as `table.md`; what is
finished is not run again. The GRU takes minutes a run, so it is asked for.
"""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

import own_pairs
from studies import seed_table
from studies.seed_table import Column, Row
from zoo import cli
from zoo.cli import setting
from zoo.data import cub
from zoo.errors import InputError

PARTS = (500, 1000, 2000, 5591)
BIRDS = "birds"
BIRD_PHOTOS = 1000
CAPTIONS = 5
READERS = {"sentence": "MiniLM", "gru": "GRU"}


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which part of the table to run, and on what."""

    out: Path = setting(Path("runs/own_pairs_table"), "folder of the runs, and of table.md")
    data_dir: Path | None = setting(None, "folder with flickr8k, CUB_200_2011_crops and weights")
    text_weights: str | None = setting(None, "of the sentence reader, see own_pairs.py")
    image_weights: str | None = setting(None, "weights of the image network, see own_pairs.py")
    parts: tuple[str, ...] = setting(
        (*map(str, PARTS), BIRDS), "numbers of training photos of Flickr8k, and birds"
    )
    readers: tuple[Literal[tuple(READERS)], ...] = setting(
        ("sentence",), "of captions: sentence, gru"
    )
    smoke: bool = setting(False, "runs of seconds that only show that everything works")

    def __post_init__(self):
        for part in self.parts:
            if part != BIRDS and not part.isdigit():
                raise ValueError(f"--parts must be whole numbers or {BIRDS}; received {part!r}")
        if self.run and self.data_dir is None:
            raise ValueError("--data-dir must be given; received nothing")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    if settings.run:
        for seed in settings.seeds:
            for part in settings.parts:
                data = written(settings, part, seed)
                rows = {
                    name_of(part, reader): Row(own_pairs.main, flags(settings, data, reader))
                    for reader in settings.readers
                }
                seed_table.run_rows(rows, one_seed(settings, seed))
    rows = [name_of(part, reader) for part in settings.parts for reader in settings.readers]
    seed_table.publish(settings, seed_table.markdown(rows, columns(), settings))


def one_seed(settings, seed):
    """The settings of a table of one seed, since each seed has photos of its own."""
    return seed_table.TableSettings(out=settings.out, seeds=(seed,))


def name_of(part, reader):
    photos = "birds" if part == BIRDS else f"{int(part):,} photos".replace(",", " ")
    return f"{photos}, {READERS[reader]}"


def flags(settings, data, reader):
    """The flags of `own_pairs.py` beside seed and folder."""
    given = [f"--data-dir={data}", f"--text={reader}"]
    if settings.image_weights is not None:
        given.append(f"--image-weights={settings.image_weights}")
    if settings.text_weights is not None and reader == "sentence":
        given.append(f"--text-weights={settings.text_weights}")
    return tuple([*given, "--smoke"] if settings.smoke else given)


def written(settings, part, seed):
    """A folder with `pairs.csv` of a part, and a link to its photos.

    Raises:
        InputError: if the data are not there.
    """
    folder = settings.out / "data" / f"{part}-seed-{seed}"
    root, rows = birds(settings, seed) if part == BIRDS else photos(settings, int(part), seed)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "photos").exists():
        (folder / "photos").symlink_to(root.resolve())
    with open(folder / "pairs.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("image", "caption", "split"))
        writer.writerows((f"photos/{image}", *more) for image, *more in rows)
    return folder


def photos(settings, count, seed):
    """`(folder, rows)` of so many training photos of Flickr8k, and all held-out ones."""
    root = settings.data_dir / "flickr8k"
    if not root.is_dir():
        raise InputError(f"{root}: no such folder")
    with open(root / "pairs.csv", encoding="utf-8", newline="") as file:
        rows = [(row["image"], row["caption"], row["split"]) for row in csv.DictReader(file)]
    names = sorted({image for image, _, split in rows if split == "train"})
    if count > len(names):
        raise InputError(f"--parts: Flickr8k has {len(names):,} training photos; received {count}")
    chosen = set(np.random.default_rng(seed).permutation(names)[:count].tolist())
    return root, [row for row in rows if row[2] != "train" or row[0] in chosen]


def birds(settings, seed):
    """`(folder, rows)` of crops of CUB with five captions each, split by photo."""
    root = settings.data_dir / "CUB_200_2011_crops"
    if not root.is_dir():
        raise InputError(f"{root}: no such folder")
    records, _ = cub.load(root, split="trainval", verbose=False)
    order = np.random.default_rng(seed).permutation(records.num_images)[:BIRD_PHOTOS]
    held = BIRD_PHOTOS // 10
    split = dict(zip(order[:held], ["test"] * held, strict=True))
    split |= dict(zip(order[held : 2 * held], ["val"] * held, strict=True))
    rows = []
    for image in order:
        of_it = np.flatnonzero(records.caption_image == image)[:CAPTIONS]
        path = Path(records.image_paths[image]).relative_to(root)
        rows += [(str(path), records.captions[row], split.get(image, "train")) for row in of_it]
    return root, rows


def columns():
    both = seed_table.confidence

    def seconds(name):
        return lambda metrics: metrics[f"cpu_seconds_{name}"]

    return [
        seed_table.retrieval("recall@1", "R@1"),
        seed_table.retrieval("recall@10", "R@10"),
        Column("nAUC of the judge", both(lambda found: found["nauc"]), ".2f"),
        Column("CPU seconds, encoding", (seconds("encoding"),), ".0f"),
        Column("training", (seconds("training"),), ".0f"),
    ]


if __name__ == "__main__":
    cli.run(main)
