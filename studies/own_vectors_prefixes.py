"""Whether a prefix of a caption is less certain than the whole caption, on Toy Birds.

    python -m studies.own_vectors_prefixes                         # five minutes
    python -m studies.own_vectors_prefixes --method gaussian

The vectors are those of the packaged model: of every image, of every caption, and of one prefix of
each caption, cut after a random word. `--method` of `own_vectors.py` learns from the training
classes. Of the test captions, whose classes nobody has seen, the run counts how often the prefix is
less certain than the whole. What says less matches more images, so a true uncertainty has to be
in that order.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

import own_vectors
import own_vectors_files
from zoo import cli, models
from zoo.cli import setting
from zoo.data import vectors

PRESET = "toy_birds_pcme"
METHODS = ("pcmepp", "gaussian")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What learns, and from how much."""

    out: Path = setting(Path("runs/own_vectors_prefixes"), "run folder to write or resume")
    method: Literal[METHODS] = setting("pcmepp", "of own_vectors.py, with an uncertainty")
    batch_size: int = setting(256, "pairs; with 1,024 and 10 epochs κ hardly leaves its start")
    learning_rate: float = setting(1e-3, "peak of AdamW")
    epochs: int = setting(40, "over all captions and prefixes")
    seed: int = setting(0, "seed of the run and of the prefixes")
    smoke: bool = setting(False, "a run of seconds that only shows that everything works")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    files = write(settings)
    flags = [f"--{name}={path}" for name, path in files.items()]
    for name in ("method", "batch_size", "learning_rate", "epochs", "seed", "out"):
        flags.append(f"--{name.replace('_', '-')}={getattr(settings, name)}")
    own_vectors.main([*flags, *["--smoke"] * settings.smoke])
    shares = in_order(settings, files)
    for name, share in shares.items():
        print(f"{name}: the prefix is less certain in {100 * share:.1f} % of the pairs")
    return shares


def write(settings):
    """The files of the vectors, with a prefix of each caption behind all captions.

    Returns:
        A dict from the names of the flags to paths.
    """
    files = {name: path for name, path in own_vectors_files.toy().items() if name != "loader"}
    folder = settings.out.with_name(f"{settings.out.name}-vectors")
    own = {"captions": folder / "captions.npy", "pairs": folder / "pairs.npy"}
    own["texts"] = folder / "texts.txt"
    if not own["texts"].exists():  # written last
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(settings.seed)
        texts = Path(files["texts"]).read_text().splitlines()
        prefixes = [prefix(text, rng) for text in texts]
        found = models.from_preset(PRESET).encode_captions(prefixes)
        whole, pairs = np.load(files["captions"]), np.load(files["pairs"])
        np.save(own["captions"], np.concatenate([whole, np.asarray(found.mean())]))
        np.save(own["pairs"], np.concatenate([pairs, pairs + np.array([0, len(texts)])]))
        own["texts"].write_text("".join(f"{text}\n" for text in texts + prefixes))
    return {**files, **own}


def prefix(text, rng):
    """The first words of a text, from one to all but one."""
    words = text.split()
    return " ".join(words[: rng.integers(1, max(2, len(words)))])


def in_order(settings, files):
    """Shares of the test captions whose prefix is less certain: of all, and by what is left."""
    model = models.from_preset(settings.out)
    found, texts = np.load(files["captions"]), files["texts"].read_text().splitlines()
    count = len(found) // 2
    test = vectors.load("test", **files).records.caption_ids
    whole = test[test < count]
    first, second = (
        np.asarray(model.uncertainty(model.encode_captions(found[rows])))
        for rows in (whole, whole + count)
    )
    left = [len(texts[row + count].split()) / len(texts[row].split()) for row in whole]
    left, later = np.array(left), second > first
    parts = {
        "all": left > 0,
        "at most half of the words": left <= 0.5,
        "more than half": left > 0.5,
    }
    return {name: float(later[chosen].mean()) for name, chosen in parts.items()}


if __name__ == "__main__":
    cli.run(main)
