"""Writers that are hindered: a read-only folder, a full disk, SIGKILL at a random moment.

`python hindered.py FOLDER HOW [NAME …]`, HOW being readonly, full or killed. Every step runs in a
fork of this process, which has only imported modules. After a hindered change what was there
answers as before, and the change, made again, leaves nothing of the first behind. For full, FOLDER
is a small file system; for readonly, this process must not be one that may write everywhere
(`setpriv --bounding-set=-dac_override,-dac_read_search`). Prints JSON: for each writer how often it
was hindered, went through, and left things as they were.
"""

import contextlib
import io
import json
import os
import random
import shutil
import signal
import stat
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import zoo
from export import __main__ as export
from halo_search import Retriever, collection
from halo_search.cli import confidence
from halo_search.cli.parser import run
from halo_search.cli.search import main as search
from halo_search.files.atomic import is_temporary
from halo_search.photos import FOLDER
from zoo.data.text.captions import WordTokenizer

sys.path.insert(0, str(Path(export.__file__).parents[1] / "recipes"))
MODEL, QUESTION = "photos_pfe", "a dog"
LOG = Path(tempfile.gettempdir()) / f"hindered-{os.getpid()}.log"  # what forks print
FEW = {"killed": 6, "full": 4, "readonly": 1}  # times that each is hindered


def photos(folder, count):
    folder.mkdir(exist_ok=True)
    for path in sorted(FOLDER.glob("*.jpg"))[:count]:
        shutil.copy(path, folder)


class Build:
    """A gallery that the command builds, and brings up to date."""

    flags = ()

    def start(self, folder):
        photos(folder / "source", 4)
        outcome = self.change(folder)
        photos(folder / "source", 7)
        return outcome

    def change(self, folder):
        words = ["build", folder / "source", folder / "out", "--model", MODEL, "--yes"]
        return command(search, *words, "--include-training", *self.flags)

    def look(self, folder):
        retriever = Retriever.load(folder / "out")
        return sorted(retriever.ask(QUESTION, 4).names), len(retriever)


class Lance(Build):
    """The same on the disk."""

    flags = ("--engine", "lance")


class Save(Build):
    """A gallery that was loaded, has shrunk, and is saved where it was."""

    def start(self, folder):
        photos(folder / "source", 4)
        return Build.change(self, folder)

    def change(self, folder):
        def save():
            retriever = Retriever.load(folder / "out")
            retriever.remove(retriever.index.ids[:1])
            retriever.save(folder / "out")

        return command(save)


class Encode(Build):
    """Parts."""

    def change(self, folder):
        words = ["encode", folder / "source", folder / "out", "--model", MODEL]
        return command(search, *words, "--shard-size", 2)

    def look(self, folder):
        return sorted(collection.Collection(folder / "out").whole().names)


class Preset:
    """A preset in the place of another."""

    def start(self, folder):
        self.save(folder, 4)

    def change(self, folder):
        return command(self.save, folder, 8)

    def save(self, folder, dim):
        tokenizer = WordTokenizer(["bird", "red"], max_words=4)
        model = zoo.models.pcme("tiny", tokenizer, dim=dim, word_dim=4, image_size=16)
        zoo.save_preset(model, folder / "out", {"dim": dim}, overwrite=True)

    def look(self, folder):
        model = zoo.from_preset(folder / "out")
        card = json.loads((folder / "out" / "preset.json").read_text())
        return card["dim"], model.encode_captions(["red bird"]).mean().shape[-1]


class Probes:
    """The probes of a preset, made again."""

    def start(self, folder):
        (folder / "out").mkdir()

    def change(self, folder):
        few = ("--images", 30, "--captions", 30)
        return command(confidence.main, "probes", "toy_birds_pfe", "--out", folder / "out", *few)

    def look(self, folder):
        path = folder / "out" / "probes.npz"
        return len(np.load(path)["image_labels"]) if path.exists() else None


class Export:
    """A version beside another: ONNX has none, so a folder."""

    def start(self, folder):
        (folder / "out").mkdir()

    def change(self, folder):
        return command(export.main, "toy_birds_pfe", folder / "out" / "onnx", "--format", "onnx")

    def look(self, folder):
        path = folder / "out" / "onnx"
        return sorted(one.name for one in path.iterdir()) if path.exists() else None


class Train:
    """A recipe that resumes."""

    def start(self, folder):
        rng = np.random.default_rng(0)
        truth = rng.normal(size=(300, 8))
        for name in ("images", "captions"):
            noisy = 3 * truth + rng.normal(size=truth.shape)
            np.save(folder / f"{name}.npy", noisy.astype("float32"))

    def change(self, folder):
        import tensorflow as tf

        import own_vectors

        tf.config.run_functions_eagerly(True)
        arguments = [f"--{name}={folder / name}.npy" for name in ("images", "captions")]
        small = ("--method=pcmepp", "--batch-size=64", "--epochs=3", "--steps-per-epoch=2")
        return command(own_vectors.main, *arguments, *small, f"--out={folder / 'out'}")

    def look(self, folder):
        if not (folder / "out" / "metrics.json").exists():
            return None
        weights = zoo.from_preset(folder / "out").get_weights()
        return [round(float(np.abs(one).sum()), 3) for one in weights]


class OwnPairs(Train):
    """Training on photos of one's own: the toy scenes."""

    def start(self, folder):
        (folder / "cache").mkdir()

    def change(self, folder):
        import own_pairs

        os.environ["HALO_CACHE"] = str(folder.parent / "cache")
        return command(own_pairs.main, "--smoke", f"--out={folder / 'out'}")


WRITERS = {
    "build": Build,
    "lance": Lance,
    "save": Save,
    "encode": Encode,
    "preset": Preset,
    "probes": Probes,
    "train": Train,
    "export": Export,
    "own_pairs": OwnPairs,
}


def command(main, *words):
    """`(exit code, standard error)` of a command; of a function of ours without words."""
    said, printed = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
        try:
            run(main, *([list(map(str, words))] if main.__module__ != __name__ else words))
        except SystemExit as end:
            lines = [one for one in said.getvalue().splitlines() if one.startswith("error:")]
            return end.code, "" if end.code == 0 else (lines or [said.getvalue()[-500:]])[-1]


def start_fork(function, *arguments):
    """`(number, descriptor)` of a fork that writes what a function returns as JSON."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        for number in (1, 2):
            os.dup2(os.open(LOG, os.O_WRONLY | os.O_CREAT), number)
        with os.fdopen(writing, "w") as file:
            json.dump([function(*arguments)], file)
            file.flush()
        os._exit(0)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)


def forked(function, *arguments):
    """What a function returns in a fork, as JSON values."""
    child, reading = start_fork(function, *arguments)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(child, 0)
    if not text:
        raise AssertionError(LOG.read_text()[-3000:])
    return json.loads(text)[0]


def killed(writer, folder, seconds):
    """None if a change was killed after some seconds, else its outcome."""
    child, reading = start_fork(writer.change, folder)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading) as file:
        text = file.read()
    return json.loads(text)[0] if text else None


def writable(folder, may):
    """Lets nobody, or its owner, write below a folder."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            os.chmod(path, mode | stat.S_IWUSR if may else mode & ~0o222)


def filled(disk, leave):
    """Writes a file until `leave` bytes are free."""
    with contextlib.suppress(OSError), (disk / "ballast").open("wb") as file:
        while (free := shutil.disk_usage(disk).free) > leave:
            file.write(bytes(min(2**16, max(512, free - leave))))
            file.flush()


def hindered(how, writer, folder, root, share, draw, span):
    """The outcome of a hindered change."""
    if how == "killed":
        return killed(writer, folder, draw.uniform(0.02, span))
    if how == "readonly":
        writable(folder, False)
        try:
            return forked(writer.change, folder)
        finally:
            writable(folder, True)
    filled(root, int(share * 2e6))
    try:
        return forked(writer.change, folder)
    finally:
        (root / "ballast").unlink()


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def temporary(folder):
    """What unfinished writers leave."""
    return [p.name for p in folder.rglob("*") if is_temporary(p.name) or p.name.startswith(".out")]


def main(root, how, names):
    draw, counts = random.Random(0), {}
    for name in names:
        writer = WRITERS[name]()
        template = root / f"start-{name}"
        template.mkdir(parents=True)
        assert forked(writer.start, template) in (None, [0, ""]), name
        whole = root / name
        shutil.copytree(template, whole, symlinks=True)
        before, begun = forked(writer.look, whole), time.monotonic()
        assert forked(writer.change, whole)[0] == 0, name
        span = time.monotonic() - begun
        after = forked(writer.look, whole)
        clean = sorted(path.name for path in (whole / "out").iterdir())
        shutil.rmtree(whole)
        assert before != after, name
        count = counts[name] = {"hindered": 0, "through": 0, "before": 0}
        for number in range(FEW[how]):
            # Copies are where the first one was, which some writers remember.
            shutil.copytree(template, whole, symlinks=True)
            share = number / FEW[how]
            outcome = hindered(how, writer, whole, root, share, draw, span)
            found = forked(writer.look, whole)
            assert found in (before, after), (name, number, outcome, found)
            count["before"] += found == before
            if outcome is None or outcome[0] != 0:
                count["hindered"] += 1
                if outcome is not None:
                    assert (outcome[0], outcome[1].count("\n")) == (2, 0), (name, outcome)
                    assert outcome[1].startswith("error: "), (name, outcome)
                    count.setdefault("said", outcome[1].replace(str(root), "")[:200])
                    assert not temporary(whole), (name, number, temporary(whole))
                if how != "killed":
                    assert found == before, (name, number, outcome)
                # One that was killed after its last step may have left what the next one clears.
                if found == before or temporary(whole):
                    again = forked(writer.change, whole)
                    assert again[0] == 0, (name, number, again)
                assert forked(writer.look, whole) == after, (name, number)
                assert not temporary(whole), (name, number, temporary(whole))
                there = sorted(path.name.partition("-")[0] for path in (whole / "out").iterdir())
                assert there == sorted(one.partition("-")[0] for one in clean), (name, there, clean)
            else:
                count["through"] += 1
            shutil.rmtree(whole)
        shutil.rmtree(template)
        print(json.dumps({name: count}), flush=True)
    LOG.unlink(missing_ok=True)
    print(json.dumps(counts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:] or list(WRITERS))
