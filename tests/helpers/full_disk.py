"""Writers on a file system that is really full, or read-only: a script for `test_attacks.py`.

`python full_disk.py FOLDER KIND`. FOLDER is a small file system of its own, which this fills to
another degree each time, so that each step of a save fails once. Prints JSON: how many saves
failed, and how many did not.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np

from halo_search import Retriever, collection
from halo_search.collection import Encoded
from halo_search.errors import InputError
from halo_search.files.atomic import is_temporary
from halo_search.index import Index

ITEMS, MORE, DIM, STEPS = 3000, 1500, 32, 12


def gaussians(items, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(items, DIM)).astype("f4") for name in ("mean", "log_variance")}


QUERIES = gaussians(5, seed=9)


class OfIndex:
    """An index in memory that grows."""

    def start(self, folder):
        self.kind.build(gaussians(ITEMS), "csd").save(folder)

    @property
    def kind(self):
        return Index

    def change(self, folder):
        index = self.kind.load(folder)
        index.add(gaussians(MORE, seed=1))
        index.save(folder)

    def look(self, folder):
        index = self.kind.load(folder)
        return len(index), index.search(QUERIES, 5)[1].tolist()


class OfLance(OfIndex):
    """The same, by LanceDB."""

    @property
    def kind(self):
        from halo_search.index.lance import LanceIndex

        return LanceIndex

    def start(self, folder):
        self.kind.build(folder, gaussians(ITEMS), "csd")


class OfRetriever:
    """A gallery with its judge."""

    def start(self, folder):
        self.items(ITEMS, 0).save(folder)

    def items(self, count, seed):
        width = Retriever.build("photos_pfe", photos()).index.description["dim"]
        rng = np.random.default_rng(seed)
        names = ("mean", "log_variance")
        made = {name: rng.normal(size=(count, width)).astype("f4") for name in names}
        return Retriever.build("photos_pfe", made, names=[f"{seed} {n}" for n in range(count)])

    def change(self, folder):
        retriever = Retriever.load(folder)
        retriever.remove(retriever.index.ids[::3])
        retriever.save(folder)

    def look(self, folder):
        retriever = Retriever.load(folder)
        return len(retriever), retriever.ask("a dog", 5).ids.tolist()


class OfParts:
    """Pictures that are encoded in parts."""

    def start(self, folder):
        self.encode(folder, 20)

    def change(self, folder):
        self.encode(folder, 40)

    def encode(self, folder, count):
        def encoder(items, advance=lambda count: None):
            return Encoded(list(items.names), {"mean": np.ones((len(items.names), 4096), "f4")})

        items = collection.captions([f"text {number}" for number in range(count)])
        collection.encode(items, encoder, folder, {"side": "captions"}, part_size=5, progress=False)

    def look(self, folder):
        return len(collection.Collection(folder))


KINDS = {"index": OfIndex, "lance": OfLance, "retriever": OfRetriever, "parts": OfParts}


def photos():
    from halo_search.photos import FOLDER

    return sorted(FOLDER.glob("*.jpg"))[:2]


def temporary(folder):
    return [path for path in folder.rglob("*") if is_temporary(path.name)]


def fill(disk, leave):
    """Writes a file until `leave` bytes are free, as df tells."""

    def free():
        return shutil.disk_usage(disk).free

    with (disk / "ballast").open("wb") as file:
        while free() > leave:
            try:
                file.write(bytes(min(2**16, max(512, free() - leave))))
                file.flush()
            except OSError:
                return


def refusal(case, folder):
    """What a change says that cannot be, or None."""
    try:
        case.change(folder)
    except InputError as error:
        return str(error)
    return None


def main(disk, name):
    case, folder = KINDS[name](), disk / "saved"
    case.start(folder)
    before, size = (
        case.look(folder),
        sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()),
    )
    failed = through = 0
    for step in range(STEPS):
        fill(disk, int(3 * size * step / STEPS))
        said = refusal(case, folder)
        (disk / "ballast").unlink()
        found = case.look(folder)
        if said is None:
            through += 1
            shutil.rmtree(folder)
            case.start(folder)
        else:
            failed += 1
            assert "\n" not in said, said
            assert found == before, (name, step, found, before)
        assert not temporary(folder), (name, step)
    case.change(folder)  # nothing is in its way
    after = case.look(folder)
    assert after != before
    assert not temporary(folder)
    names = sorted(os.listdir(folder))
    print(json.dumps({"failed": failed, "through": through, "left": names}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
