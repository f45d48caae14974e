"""Keeps the settings and results of measured runs, from which their tables can be made again.

    python -m tools.kept_runs runs/* --out docs/runs

Each run becomes a folder with `config.json` and `metrics.json`, some kilobytes, which
`python -m tools.models_page` reads as it reads the run. Folders are named by their last part, and
two of one name are refused. Curves of many points and folders of the machine are left out.
"""

import json
from pathlib import Path, PurePath

from tools.runs_parser import runs_parser
from zoo import cli
from zoo.errors import InputError
from zoo.files.atomic import write_text
from zoo.files.run_folder import RunFolder

LONGEST = 20  # numbers of a list that is kept: ten bins are, a curve of all queries is not


def main(argv=None):
    options = _parser().parse_args(argv)
    runs = {}
    for path in options.runs:
        run = RunFolder.existing(path)
        if run.path.name in runs:
            raise InputError(
                f"two runs are called {run.path.name}: {runs[run.path.name].path}, {path}"
            )
        if not run.finished:
            raise InputError(f"{path}: expected a finished run; it has no metrics.json")
        runs[run.path.name] = run
    for name, run in runs.items():
        folder = options.out / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in (("config.json", run.config), ("metrics.json", run.metrics)):
            write_text(folder / file, json.dumps(without_curves(without_places(content)), indent=1))
    print(f"kept {len(runs)} runs in {options.out}")
    return 0


def without_curves(content):
    """JSON values without their long lists."""
    if isinstance(content, dict):
        return {
            name: without_curves(value)
            for name, value in content.items()
            if not (isinstance(value, list) and len(value) > LONGEST)
        }
    if isinstance(content, list):
        return [without_curves(value) for value in content]
    return content


def without_places(content):
    """JSON values in which whole paths have only their last part, in commands too."""
    if isinstance(content, dict):
        return {name: without_places(value) for name, value in content.items()}
    if isinstance(content, list):
        return [without_places(value) for value in content]
    if isinstance(content, str):
        return " ".join(map(_without_place, content.split(" ")))
    return content


def _without_place(word):
    flag, is_flag, value = word.rpartition("=")
    path = PurePath(value)
    return f"{flag}{is_flag}{path.name}" if path.is_absolute() else word


def _parser():
    parser = runs_parser("kept_runs", __doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of what is kept")
    return parser


if __name__ == "__main__":
    cli.run(main)
