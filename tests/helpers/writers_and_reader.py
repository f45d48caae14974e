"""Two processes change one index while a third reads it: a script for `test_attacks.py`.

`python writers_and_reader.py FOLDER ENGINE SECONDS`. A writer loads, adds an item of its own and
saves, and begins again where somebody else was faster. Prints JSON: saves, refusals and reads;
fails if an item that was saved is not there in the end, or the reader ever saw a wrong answer.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from halo_search.errors import InputError
from halo_search.index import Index

DIM, FIRST = 8, 20
OF_ITSELF = 5.0  # the score of a point with itself, by `squared_euclidean`


def vectors(ids):
    """The point of each id, which tells what its answer has to be."""
    return np.stack([np.random.default_rng(int(one)).normal(size=DIM) for one in ids]).astype("f4")


def engine_of(name):
    if name == "memory":
        return Index
    from halo_search.index.lance import LanceIndex

    return LanceIndex


def write(kind, folder, first, seconds, log):
    """Adds items `first`, `first + 1` …, and logs the ids that were saved."""
    saved, refused, end = [], 0, time.monotonic() + seconds
    while time.monotonic() < end:
        number = first + len(saved)
        try:
            index = kind.load(folder)
            index.add(vectors([number]), [number])
            index.save(folder)
            saved.append(number)
        except InputError:
            refused += 1
            time.sleep(0.01)
        finally:
            index = None
    log.write_text(json.dumps({"saved": saved, "refused": refused}))


def read(kind, folder, seconds, log):
    """Asks for items that are there, each of which has to come first, at distance 0."""
    reads, wrong, end = 0, [], time.monotonic() + seconds
    rng = np.random.default_rng(0)
    while time.monotonic() < end:
        try:
            index = kind.load(folder)
            wanted = rng.choice(index.ids, 3)
            scores, ids = index.search(vectors(wanted), 1)
        except InputError as error:
            if "load the index again" not in str(error):
                wrong.append(str(error))
            continue
        if (ids[:, 0] != wanted).any() or np.abs(scores - OF_ITSELF).max() > 1e-3:
            wrong.append(f"{wanted} gave {ids}, {scores}")
        reads += 1
    log.write_text(json.dumps({"reads": reads, "wrong": wrong}))


def main(folder, name, seconds):
    kind, index = engine_of(name), folder / "index"
    start = np.arange(FIRST)
    if name == "memory":
        Index.build(vectors(start), "squared_euclidean", start).save(index)
    else:
        kind.build(index, vectors(start), "squared_euclidean", start)
    work = [(write, 1000), (write, 100_000), (read, None)]
    logs = [folder / f"{number}.json" for number in range(len(work))]
    children = []
    for (what, first), log in zip(work, logs, strict=True):
        # Processes of their own: LanceDB does not survive a fork.
        more = [] if first is None else [str(first)]
        more = [what.__name__, name, str(index), str(seconds), str(log), *more]
        children.append(subprocess.Popen([sys.executable, __file__, *more]))
    assert not any(child.wait() for child in children)
    writers, reader = (
        [json.loads(log.read_text()) for log in logs[:2]],
        json.loads(logs[2].read_text()),
    )
    there = kind.load(index)
    ids = there.search(vectors(there.ids), 1)[1]
    lost = set(range(FIRST)).union(*(one["saved"] for one in writers)) - set(there.ids.tolist())
    extra = len(there) - FIRST - sum(len(one["saved"]) for one in writers)
    assert not lost, lost
    assert not extra, extra
    assert (ids[:, 0] == there.ids).all()
    assert not reader["wrong"], reader["wrong"][:3]
    print(
        json.dumps(
            {
                "saved": [len(one["saved"]) for one in writers],
                "refused": [one["refused"] for one in writers],
                "reads": reader["reads"],
            }
        )
    )


if __name__ == "__main__":
    if sys.argv[1] in ("write", "read"):
        what, name, index, seconds, log, *first = sys.argv[1:]
        arguments = engine_of(name), Path(index)
        if what == "write":
            write(*arguments, int(first[0]), float(seconds), Path(log))
        else:
            read(*arguments, float(seconds), Path(log))
    else:
        main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
