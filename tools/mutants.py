"""Plants errors in the code of the five papers, one at a time, and says which test catches each.

    python -m tools.mutants                     # all of tools/mutants.toml, on the terminal
    python -m tools.mutants --part 2/6          # every sixth, from the second
    python -m tools.mutants --only pcme         # those whose paper or file says so

Works on a copy of the tree in a temporary folder. TensorFlow is imported once, and each error is
tried in a fork. Exits with 1 if fewer than 95 % are caught, or a test fails without any error.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("mutants.toml")
LEAST = 0.95
SECONDS = 180  # of computing, and ten times as many by the clock: then a fork is ended, as caught


class Mutant(NamedTuple):
    """One planted error."""

    paper: str  # whose code it is in
    file: str  # of the tree
    old: str  # what stands there once, and what takes its place
    new: str  # what stands there once, and what takes its place
    tests: tuple  # files or tests, relative to `tests`, that should catch it


def main(argv=None):
    options = _parser().parse_args(argv)
    number, parts = map(int, options.part.split("/"))
    mutants = [m for m in read(LIST) if options.only in f"{m.paper} {m.file}"][number - 1 :: parts]
    survivors, broken, catchers = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_of_tree(Path(folder))
        _warm()
        if not options.no_baseline:
            for tests in sorted({mutant.tests for mutant in mutants}):
                code, test, _ = tried(tree, tests)
                if code:
                    broken.append(test or " ".join(tests))
                    print(f"fails without an error: {broken[-1]}", flush=True)
        for place, mutant in enumerate(mutants, start=1):
            path = tree / mutant.file
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
            code, test, seconds = tried(tree, mutant.tests)
            path.write_text(text, encoding="utf-8")
            said = f"caught by {test or 'an error on import, or endless'}" if code else "SURVIVES"
            change = f"{_short(mutant.old)} → {_short(mutant.new)}"
            print(f"{place} {mutant.paper}: {mutant.file}: {change}: {said} ({seconds:.0f} s)")
            sys.stdout.flush()
            if code:
                catchers.append(test.partition("::")[0])
            else:
                survivors.append(mutant)
    print(summary(mutants, survivors, catchers))
    return 1 if broken or len(catchers) < LEAST * len(mutants) else 0


def summary(mutants, survivors, catchers):
    """Lines: caught errors by paper, of all, what survives, and the files that catch most."""
    tried, left = Counter(m.paper for m in mutants), Counter(m.paper for m in survivors)
    lines = [f"{paper}: {tried[paper] - left[paper]} of {tried[paper]}" for paper in tried]
    share = 100 * len(catchers) / max(len(mutants), 1)
    lines.append(f"{len(catchers)} of {len(mutants)} planted errors are caught ({share:.0f} %)")
    lines += [f"survives: {m.file}: {_short(m.old)} → {_short(m.new)}" for m in survivors]
    most = [f"{file or 'import'} {count}" for file, count in Counter(catchers).most_common(8)]
    return "\n".join([*lines, f"caught most: {', '.join(most)}"])


def read(path):
    """The list of planted errors."""
    mutants = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
        mutant = Mutant(**{**entry, "tests": tuple(entry["tests"])})
        found = (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old)
        if found != 1:
            raise ValueError(f"{path.name}: {mutant.file} has {mutant.old!r} {found} times, not 1")
        mutants.append(mutant)
    return mutants


def copy_of_tree(folder):
    """The tracked files in a folder of their own, beside the data of tests."""
    tree = folder / "main"
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("docs/"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    beside = ROOT.parent / "shared"
    if beside.exists():
        (folder / "shared").symlink_to(beside.resolve())
    return tree


def tried(tree, tests):
    """Runs tests in a fork: whether one fails, its name, and the seconds it took."""
    start = time.monotonic()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _in_child(tree, tests, writing)
    os.close(writing)
    code = None
    while code is None and time.monotonic() - start < 10 * SECONDS:
        done, status = os.waitpid(child, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status) if done else None
        time.sleep(0.1)
    if code is None:
        os.kill(child, 9)
        os.waitpid(child, 0)
        code = 1
    with os.fdopen(reading, encoding="utf-8") as pipe:
        test = pipe.read()
    return code, test, time.monotonic() - start


class _Failures:
    """A plugin of pytest that says which test failed first."""

    def __init__(self, writing):
        self.writing = writing

    def pytest_runtest_logreport(self, report):
        if report.failed:
            os.write(self.writing, report.nodeid.encode())


def _in_child(tree, tests, writing):
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    os.chdir(tree)
    sys.path[:] = [str(tree), *(path for path in sys.path if Path(path or ".") != ROOT)]
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    flags = ["-q", "-x", "-p", "no:cacheprovider", "--rootdir", str(tree)]
    code = pytest.main([*flags, *(f"tests/{test}" for test in tests)], plugins=[_Failures(writing)])
    os._exit(int(code))


def _warm():
    """What every fork would import, but for the code of the tree."""
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import keras  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import scipy.stats  # noqa: F401
    import tensorflow  # noqa: F401


def _short(text):
    text = " ".join(text.split())
    return f"`{text[:50]}{'…' if len(text) > 50 else ''}`"


def _parser():
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--part", default="1/1", help="which of how many parts; default: 1/1")
    parser.add_argument("--only", default="", help="text that the paper or the file must contain")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests as is")
    return parser


if __name__ == "__main__":
    sys.exit(main())
