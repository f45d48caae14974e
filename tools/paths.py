"""The four ways into the zoo, walked from a clean machine with the commands of the pages.

    python -m tools.paths --out /tmp/paths                       # all four, photos drawn here
    python -m tools.paths photos --photos FOLDER --image-weights mobilenet_v2.h5 --out /tmp/paths

Every path gets a clone of the checkout's last commit, and all share one new environment in which
`pip install ".[search,demo,serving,text]"` ran. Each command is one of a page, word for word; a
command that fails ends the walk. `paths.md` in the folder has minutes and CPU-minutes of each.
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import hardware_line
from benchmarks.timing import children_cpu_seconds
from tools import path_inputs

ROOT = Path(__file__).parent.parent
EXTRAS = "search,demo,serving,text"
UP = 300  # seconds that a server may take


class Step(NamedTuple):
    """A command of a page, and the port that it answers on where it stays: a server."""

    command: str
    port: int | None = None


class Way(NamedTuple):
    """A path: the page that has its commands, and these."""

    page: str
    steps: tuple[Step, ...]


WAYS = {
    "photos": Way(
        "docs/tutorials/photos.md",
        (
            Step("halo train own_pairs --data-dir photos --out runs/photos"),
            Step("halo search build other_photos index --model runs/photos"),
            Step('halo search query index "a dog on a beach"'),
            Step("halo export runs/photos served"),
            Step("halo demo runs/photos", 7860),
        ),
    ),
    "paper": Way(
        "docs/reproduce.md",
        (
            Step("halo train pcme_cub --smoke --out runs/smoke"),
            Step("halo train pcme_cub --out runs/pcme_cub"),
            Step("halo report runs/pcme_cub"),
        ),
    ),
    "vectors": Way(
        "docs/vectors.md",
        (
            Step(
                "halo train own_vectors --images images.npy --captions captions.npy --out runs/mine"
            ),
            Step("halo search build images.npy index --model runs/mine"),
            Step("halo search query index --vector captions.npy --row 7"),
            Step("halo export runs/mine served"),
        ),
    ),
    "server": Way(
        "docs/serving.md",
        (
            Step("halo export toy_birds_pfe served"),
            Step("python -m tools.stand_in served", 8501),
            Step(
                "curl -s localhost:8501/v1/models/halo:predict"
                """ -d '{"signature_name": "encode_captions","""
                """ "inputs": {"captions": ["a small red bird"]}}'"""
            ),
            Step(
                'export/rest_client.sh http://localhost:8501 captions "a small red bird" "a gull"'
            ),
            Step(
                "python -m export.grpc_client localhost:8500 --images a.jpg"
                ' --captions "a small red bird"'
            ),
        ),
    ),
}


class Walk:
    """Runs commands in an environment of their own and keeps what each took.

    Args:
        folder: of clones, environment and logs.
        variables: of the processes' environment, beside those of this one.
    """

    def __init__(self, folder, variables=()):
        self.folder = folder
        hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "TF_CPP_MIN_LOG_LEVEL"}
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        venv = folder / "venv" / "bin"
        own = {"HALO_CACHE": str(folder / "cache"), "PATH": f"{venv}:{os.environ['PATH']}"}
        self.variables = {**kept, **own, **dict(variables)}
        self.rows = []

    def run(self, name, step, where, flags=""):
        """Runs a command to its end, or until its port answers: then it is returned, running."""
        start, before = time.perf_counter(), children_cpu_seconds()
        log = self.folder / f"{name}.log"
        with log.open("a") as file:
            file.write(f"$ {step.command}{flags}\n")
            file.flush()
            process = subprocess.Popen(
                step.command + flags,
                shell=True,
                cwd=where,
                env=self.variables,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        failed = process.wait() != 0 if step.port is None else not _answers(process, step.port)
        seconds, cpu = time.perf_counter() - start, children_cpu_seconds() - before
        self.rows.append((name, step.command, seconds, None if step.port else cpu))
        print(f"{seconds:7.1f} s, {cpu:7.1f} of CPU  {step.command}{flags}", flush=True)
        if failed:
            _end(process)
            sys.exit(f"error: {step.command}: failed; its output is in {log}")
        return process

    def way(self, name, where, flags):
        """Walks a path; servers end with it."""
        running = []
        try:
            for step in WAYS[name].steps:
                process = self.run(name, step, where, flags.get(step.command, ""))
                if step.port is not None:
                    running.append(process)
        finally:
            for process in running:
                _end(process)

    def table(self):
        lines = ["| path | command | minutes | CPU-minutes |", "|---|---|---|---|"]
        for name, command, seconds, cpu in self.rows:
            used = "" if cpu is None else f"{cpu / 60:.1f}"
            lines.append(f"| {name} | `{command}` | {seconds / 60:.1f} | {used} |")
        for name in dict.fromkeys(row[0] for row in self.rows):
            own = [row for row in self.rows if row[0] == name]
            seconds, cpu = sum(row[2] for row in own), sum(row[3] or 0 for row in own)
            lines.append(f"| {name} | **all** | {seconds / 60:.1f} | {cpu / 60:.1f} |")
        return "\n".join(lines) + "\n"


def main(argv=None):
    options = _options(argv)
    folder = options.out.resolve()
    folder.mkdir(parents=True)
    walk = Walk(folder)
    try:
        walk_all(walk, options)
    finally:  # what was measured before a command failed, too
        page = f"{hardware_line()}\n\n{walk.table()}"
        (folder / "paths.md").write_text(page)
        print(page)


def walk_all(walk, options):
    """Installs, then walks each path in a clone of its own."""
    folder = walk.folder
    clone(folder / "install")
    walk.run("install", Step(f"{sys.executable} -m venv {folder / 'venv'}"), folder)
    walk.run("install", Step(f'pip install ".[{EXTRAS}]"'), folder / "install")
    for name in options.paths or WAYS:
        where = folder / name
        clone(where)
        path_inputs.prepare(name, where, options.photos)
        flags = {}
        if options.image_weights is not None:
            flags[WAYS["photos"].steps[0].command] = (
                f" --image-weights {options.image_weights.resolve()}"
            )
        walk.way(name, where, flags)


def clone(folder):
    """The last commit of this checkout, in a new folder."""
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)


def _answers(process, port):
    """Whether a port answers before the process ends, and by HTTP where it is the demo's."""
    end = time.monotonic() + UP
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            if port != WAYS["photos"].steps[-1].port:
                return True
            with urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=60) as page:
                return page.status == 200
        time.sleep(0.2)
    return False


def _end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    process.wait(60)


def _options(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help=f"default: {' '.join(WAYS)}")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--photos", type=Path, help="a folder with pairs.csv; default: drawn birds")
    parser.add_argument(
        "--image-weights", type=Path, help="a local file, where there is no network"
    )
    options = parser.parse_args(argv)
    unknown = set(options.paths) - set(WAYS)
    if unknown:
        parser.error(f"PATH must be one of {', '.join(WAYS)}; received {', '.join(unknown)}")
    if options.out.exists():
        parser.error(f"--out {options.out}: expected a folder that is not there yet")
    return options


if __name__ == "__main__":
    main()
