"""Kills changes of saved indexes at random moments, and looks at what is left.

`python killed_changes.py FOLDER MOMENTS`. Every change runs in a fork of this process, which has
computed nothing with threads. Prints JSON: how many changes were killed and how many were through.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import faiss
import numpy as np

from halo_search import collection
from halo_search.collection import Encoded
from halo_search.files.written import Written
from halo_search.index import Index, built, storage

faiss.omp_set_num_threads(1)  # a fork has no threads of its parent
DIM = 4


def gaussians(items, seed=0):
    rng = np.random.default_rng(seed)
    return {key: rng.normal(size=(items, DIM)) for key in ("mean", "log_variance")}


QUERIES = gaussians(5, seed=9)


def answers(index):
    scores, ids = index.search(QUERIES, 5)
    return len(index), scores.tolist(), ids.tolist()


def of_index(folder):
    return answers(Index.load(folder / "index"))


def of_build(folder):
    if not (folder / "out" / built.SETUP).exists():
        return None
    if "index" not in json.loads((folder / "out" / built.SETUP).read_text()):
        return None
    _, names, index, *_ = built.load(folder / "out")
    assert names.keys() == set(index.ids.tolist())
    _, scores, ids = answers(index)  # ids tell in which order items were encoded
    return sorted(names.values()), scores, [[names[one] for one in row] for row in ids]


def start(folder):
    index = Index.build(gaussians(40), "kl", candidates=40)
    index.save(folder / "index")


def add(folder):
    index = Index.load(folder / "index")
    index.add(gaussians(30, seed=1))
    index.save(folder / "index")


def remove(folder):
    index = Index.load(folder / "index")
    index.remove(np.arange(0, 40, 3))
    index.save(folder / "index")


def save(folder):
    Index.build(gaussians(25, seed=2), "csd").save(folder / "index")


def encoder(items, advance=lambda count: None):
    numbers = [float(Path(path).read_text()) for path in items.values]
    return Encoded(list(items.names), {"mean": np.array([[one, 1, 0, 0] for one in numbers])})


def build(folder):
    """What the command does, with numbers in files as pictures and without a model."""
    items, identity = collection.pictures(folder / "source"), {"side": "images"}
    with built.locked(folder / "out") as written:
        where = built.parts_for(written, lambda folder: True)
        more = {"part_size": 4, "progress": False}
        parts = collection.encode(items, encoder, where, identity, **more)
        index, names = built.index_of(parts, "euclidean")
        target = built.fresh(written, built.INDEX)
        index.save(target)
        Written(target, storage.MANIFEST).claim(built.NAMES)
        built.write_names(target, names)
        setup = {"parts": {"folder": where.name, "files": parts.parts}, "index": target.name}
        built.commit(written, setup)


def start_source(folder):
    (folder / "source").mkdir()
    for number in range(10):
        (folder / "source" / f"{number}.png").write_text(str(number))


def start_build(folder):
    start_source(folder)
    build(folder)


def update(folder):
    for number in (3, 10, 11):
        (folder / "source" / f"{number}.png").write_text(str(number + 0.5))
    build(folder)


CASES = {
    "add": SimpleNamespace(start=start, change=add, look=of_index),
    "remove": SimpleNamespace(start=start, change=remove, look=of_index),
    "save": SimpleNamespace(start=start, change=save, look=of_index),
    "build": SimpleNamespace(start=start_source, change=build, look=of_build),
    "update": SimpleNamespace(start=start_build, change=update, look=of_build),
}


def fork(function, folder):
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        function(folder)
        code = 0
    finally:
        os._exit(code)


def whole(case, folder):
    """How long a change takes that is left alone, and the answers before and after."""
    return min(
        (_whole(case, folder.with_name(f"{folder.name} {n}")) for n in range(3)),
        key=lambda found: found[0],
    )


def _whole(case, folder):
    folder.mkdir()
    case.start(folder)
    before, began = case.look(folder), time.monotonic()
    _, status = os.waitpid(fork(case.change, folder), 0)
    assert not status
    return time.monotonic() - began, before, case.look(folder)


def killed(case, folder, seconds):
    """Whether a change was killed after some seconds, and not through before."""
    child = fork(case.change, folder)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def main(root, moments):
    draw, counts = random.Random(0), {}
    for name, case in CASES.items():
        span, before, after = whole(case, root / f"whole {name}")
        assert before != after
        template = root / f"start {name}"
        template.mkdir()
        case.start(template)
        counts[name] = {"killed": 0, "through": 0, "before": 0, "after": 0}
        for number in range(moments):
            folder = root / f"{name} {number}"
            shutil.copytree(template, folder)
            case.look(folder)
            was_killed = killed(case, folder, draw.uniform(0, 1.1 * span))
            found = case.look(folder)
            assert found in (before, after), (name, number)
            counts[name]["killed" if was_killed else "through"] += 1
            counts[name]["before" if found == before else "after"] += 1
            if found == before:  # what was left lying about is in nobody's way
                case.change(folder)
                assert case.look(folder) == after, (name, number)
            shutil.rmtree(folder)
    print(json.dumps(counts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
