"""Plants errors in the code, one at a time, and prints which test catches each.

    python -m tools.mutants                     # all of tools/mutants.toml
    python -m tools.mutants --only confidence   # those whose file contains this

Works on copies of the tree in a temporary folder, one per core. TensorFlow is imported once, and
each error is tried in a fork. Exits with 1 if fewer than 95 % are caught in one of the rooms (the
packages of `zoo`, and other folders), or if a test fails without an error.
"""

import argparse
import itertools
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("mutants.toml")
LEAST = 0.95
_TIMES = itertools.count(1_000_000_000, 10)  # when files were changed
_NONE = 5  # pytest's code where no test ran, as of those for `make test-slow`: the error survives
SECONDS = 180  # of computing, and ten times as many by the clock: then a fork is ended, as caught


class Mutant(NamedTuple):
    """One planted error."""

    file: str  # of the tree
    tests: tuple  # files or tests, relative to `tests`, that should catch it
    old: str  # stands in the file once
    new: str  # takes its place

    @property
    def room(self):
        """The package of `zoo`, or another folder."""
        first, second = self.file.split("/")[:2]
        return second if first in ("halo_search", "zoo") else first


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="text that the file must contain")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    options = parser.parse_args(argv)
    mutants = [mutant for mutant in read(LIST) if options.only in mutant.file]
    _warm()
    start, survivors = time.monotonic(), []
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        queue = context.SimpleQueue()
        for number in range(options.jobs):
            queue.put(str(copy_of_tree(Path(folder) / str(number))))
        # Its processes are no daemons, which may start none: tests do.
        with ProcessPoolExecutor(options.jobs, context, _begin, [queue]) as pool:
            tests = sorted({test for mutant in mutants for test in mutant.tests})
            parts = [tests[number :: options.jobs] for number in range(options.jobs)]
            broken = [
                failure
                for failures in pool.map(_baseline, filter(None, parts))
                for failure in failures
            ]
            for test in broken:
                print(f"fails without an error: {test}", flush=True)
            tried_all = zip(mutants, pool.map(_planted, mutants), strict=True)
            for place, (mutant, (code, tests, seconds)) in enumerate(tried_all, start=1):
                by = tests[0] if tests else "an error on import, or endless"
                change = f"{mutant.file}: {_short(mutant.old)} → {_short(mutant.new)}"
                outcome = f"caught by {by}" if code else "SURVIVES"
                print(f"{place} {change}: {outcome} ({seconds:.0f} s)", flush=True)
                if not code:
                    survivors.append(mutant)
    print(summary(mutants, survivors))
    print(f"{time.monotonic() - start:.0f} s, {options.jobs} processes")
    return 1 if broken or min(shares(mutants, survivors).values(), default=1) < LEAST else 0


def shares(mutants, survivors):
    """The share that is caught, by room."""
    tried, survived = Counter(m.room for m in mutants), Counter(m.room for m in survivors)
    return {room: 1 - survived[room] / tried[room] for room in sorted(tried)}


def summary(mutants, survivors):
    """Lines: caught errors by room, of all, and what survives."""
    tried, lines = Counter(m.room for m in mutants), []
    for room, share in shares(mutants, survivors).items():
        lines.append(f"{room}: {round(share * tried[room])} of {tried[room]} ({share:.0%})")
    caught = len(mutants) - len(survivors)
    share = caught / max(len(mutants), 1)
    lines.append(f"{caught} of {len(mutants)} planted errors are caught ({share:.0%})")
    lines += [f"survives: {m.file}: {_short(m.old)} → {_short(m.new)}" for m in survivors]
    return "\n".join(lines)


def read(path):
    """The list of planted errors. Raises ValueError with all whose place is not there once."""
    mutants, gone = [], []
    for file, by_tests in tomllib.loads(path.read_text(encoding="utf-8")).items():
        text = (ROOT / file).read_text(encoding="utf-8")
        for tests, changes in by_tests.items():
            for old, new in changes:
                if text.count(old) != 1:
                    gone.append(f"{file} has {old!r} {text.count(old)} times")
                mutants.append(Mutant(file, tuple(tests.split()), old, new))
    if gone:
        raise ValueError(f"{path.name}: {'; '.join(gone)}")
    return mutants


def copy_of_tree(folder):
    """The tracked files in a folder of their own, beside the data of tests."""
    tree = folder / "main"
    tree.mkdir(parents=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        wanted = not name.startswith("docs/") or name.endswith(".md")  # which tests read
        if wanted and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    beside = ROOT.parent / "shared"
    if beside.exists():
        (folder / "shared").symlink_to(beside.resolve())
    return tree


def _begin(queue):
    global _TREE
    _TREE = Path(queue.get())


def _baseline(tests):
    return tried(_TREE, tests, every=True)[1]


def _planted(mutant):
    path = _TREE / mutant.file
    text = path.read_text(encoding="utf-8")
    try:
        _write(path, text.replace(mutant.old, mutant.new))
        code, failed, seconds = tried(_TREE, mutant.tests)
        return (0 if code == _NONE else code), failed, seconds
    finally:
        _write(path, text)


def _write(path, text):
    """Writes a file whose compiled form is of no other: each time is later than the last one."""
    path.write_text(text, encoding="utf-8")
    later = next(_TIMES)
    os.utime(path, (later, later))


def tried(tree, tests, every=False):
    """Runs tests in a fork until one fails, or `every` one: `(code, failed tests, seconds)`."""
    start, times = time.monotonic(), 100 if every else 1
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _in_child(tree, tests, writing, times, [] if every else ["-x"])
    os.close(writing)
    code = None
    while code is None and time.monotonic() - start < 10 * SECONDS * times:
        done, status = os.waitpid(child, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status) if done else None
        time.sleep(0.05)
    if code is None:
        os.kill(child, 9)
        os.waitpid(child, 0)
        code = 1
    with os.fdopen(reading, encoding="utf-8") as pipe:
        failed = pipe.read().splitlines()
    return code, failed or ["no test ran"] * (code and every), time.monotonic() - start


class _Failures:
    """A plugin of pytest that says which tests failed."""

    def __init__(self, writing):
        self.writing = writing

    def pytest_runtest_logreport(self, report):
        if report.failed:
            os.write(self.writing, f"{report.nodeid}\n".encode())


def _in_child(tree, tests, writing, times, more):
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (times * SECONDS,) * 2)
    os.chdir(tree)
    sys.path[:] = [str(tree), *(path for path in sys.path if Path(path or ".") != ROOT)]
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    flags = ["-q", *more, "-n", "0", "-p", "no:cacheprovider", "--rootdir", str(tree)]
    code = pytest.main([*flags, *(f"tests/{test}" for test in tests)], plugins=[_Failures(writing)])
    os._exit(int(code))


def _warm():
    """What every fork would import, but for the code of the tree."""
    sys.dont_write_bytecode = False
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import keras  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import scipy.stats  # noqa: F401
    import tensorflow  # noqa: F401


def _short(text):
    text = " ".join(text.split())
    return f"`{text[:50]}{'…' if len(text) > 50 else ''}`"


if __name__ == "__main__":
    sys.exit(main())
