"""Three thousand questions, and hundreds of changes and saves, in one process: a script for
`test_attacks.py`.

`python long_life.py FOLDER`. Prints JSON: resident memory in MiB and open descriptors after the
first tenth and at the end.
"""

import json
import os
import resource
import sys
from pathlib import Path

import numpy as np

from halo_search import Retriever
from halo_search.index import Index
from halo_search.photos import FOLDER

QUESTIONS, CYCLES, LANCE_CYCLES, DIM = 3000, 300, 60, 64
WORDS = ("dog", "bus", "beach", "red car", "two people", "snow", "a girl with a ball", "street")


def state():
    """`(MiB of resident memory, open descriptors)`."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * resource.getpagesize() / 2**20, 1), len(os.listdir("/proc/self/fd"))


def questions(retriever):
    for number in range(QUESTIONS):
        text = (
            f"{WORDS[number % len(WORDS)]} and {WORDS[number // len(WORDS) % len(WORDS)]} {number}"
        )
        retriever.ask(text, k=5)
        if number == QUESTIONS // 10:
            yield state()
    yield state()


def cycles(index, folder, count):
    rng = np.random.default_rng(0)
    for number in range(count):
        ids = index.add({"mean": rng.normal(size=(50, DIM)).astype("f4")})
        index.search({"mean": rng.normal(size=(1, DIM)).astype("f4")}, 5)
        index.remove(ids)
        index.save(folder)
        if number == count // 10:
            yield state()
    yield state()


def main(folder):
    photos = sorted(FOLDER.glob("*.jpg"))[:30]
    found = {"questions": list(questions(Retriever.build("photos_pfe", photos)))}
    items = {"mean": np.random.default_rng(1).normal(size=(500, DIM)).astype("f4")}
    index = Index.build(items, "cosine")
    found["memory cycles"] = list(cycles(index, folder / "memory", CYCLES))
    try:
        from halo_search.index.lance import LanceIndex
    except ImportError:
        pass
    else:
        index = LanceIndex.build(folder / "lance", items, "cosine")
        found["lance cycles"] = list(cycles(index, folder / "lance", LANCE_CYCLES))
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
