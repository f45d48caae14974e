"""The benchmark: made and asked, and anyone's file of scores beside it.

    python -m studies.abstention make flickr8k --data-dir data --out abstention
    python -m studies.abstention score abstention/flickr8k mine.csv

`make` writes what a confidence may read (`questions.json`, `vectors.npz`), what is true
(`truth.npz`), and a file of scores for each row of the table. A file has one line a row of the
benchmark, in its order: `confidence`, that the first answer is right, and if another number says
whether anything matches at all, `presence`.
"""

import json
from pathlib import Path

import numpy as np

from studies.abstention import scoring
from zoo.cli import OneLineParser, run


def main(argv=None):
    options = _parser().parse_args(argv)
    if options.command == "make":
        return _make(options)
    with np.load(options.folder / "truth.npz", allow_pickle=False) as file:
        truth = dict(file)
    count = len(truth["kind"])
    files = {path.stem: scoring.read_scores(path, count) for path in options.files}
    found = {
        name: scoring.with_intervals(truth, *scores, draws=options.draws)
        for name, scores in files.items()
    }
    print(table(found))
    if options.against is not None:
        other = scoring.read_scores(options.against, count)
        less = {
            f"{name} − {options.against.stem}": scoring.differences(
                truth, scores, other, options.draws
            )
            for name, scores in files.items()
        }
        print(f"\n{table(less, signed=True)}")
    return 0


def _make(options):
    from studies.abstention import bench, rivals  # here, since TensorFlow takes seconds

    for name in options.sets:
        made = bench.make(name, options.data_dir, options.presets, options.seed)
        folder = options.out / name
        made.save(folder)
        told = made.told()
        rows = made.asked(told.copies)
        (folder / "scores").mkdir(exist_ok=True)
        found = {}
        for row, confidence in {**rivals.ROWS, **rivals.JUDGES}.items():
            more = (made,) if row in rivals.JUDGES else ()
            said = confidence(told, rows, *more)
            said, presence = said if isinstance(said, tuple) else (said, None)
            scoring.write_scores(folder / "scores" / f"{_file_name(row)}.csv", said, presence)
            presence = said if presence is None else presence
            truth = {"kind": made.kind, "right": made.right, "group": made.group}
            found[row] = scoring.with_intervals(truth, said, presence, options.draws, options.seed)
        print(f"\n{name}\n\n{table(found)}", flush=True)
        (folder / "table.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return 0


def table(found, signed=False):
    """Markdown of `{row: {measure: (value, low, high)}}`; best values are bold.

    Args:
        found: the values.
        signed: whether they are differences.
    """
    names = [name for name in scoring.MEASURES if any(name in row for row in found.values())]
    lines = [f"| confidence | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    best = {} if signed else {name: _best(found, name) for name in names}
    for row, values in found.items():
        cells = [
            _cell(values.get(name), signed, best.get(name) == values[name][0])
            if name in values
            else "–"
            for name in names
        ]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _best(found, name):
    values = [row[name][0] for row in found.values() if np.isfinite(row[name][0])]
    if not values:
        return None
    return max(values) if scoring.MEASURES[name] else min(values)


def _cell(entry, signed, is_best):
    value, low, high = entry
    if not np.isfinite(value):
        return "–"
    form = "{:+.3f}" if signed else "{:.3f}"
    text = form.format(value)
    text = f"**{text}**" if is_best else text
    return f"{text} [{form.format(low)}, {form.format(high)}]"


def _file_name(row):
    letters = (c if c.isascii() and c.isalnum() else " " for c in row.replace("σ", "sigma"))
    return "_".join("".join(letters).split())


def _parser():
    parser = OneLineParser(prog="python -m studies.abstention", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="make the benchmark of data sets, and ask all rows")
    make.add_argument("sets", nargs="+", choices=("toy_birds", "flickr8k", "birds"))
    make.add_argument("--data-dir", type=Path, help="folder with flickr8k, CUB_200_2011_crops")
    make.add_argument("--presets", type=Path, help="folder with presets in place of packaged ones")
    make.add_argument("--out", type=Path, default=Path("abstention"), help="folder to write")
    make.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")
    score = commands.add_parser("score", help="score files of one data set")
    score.add_argument("folder", type=Path, help="folder that `make` wrote for the data set")
    score.add_argument("files", nargs="+", type=Path, help="CSV or NumPy files")
    score.add_argument("--against", type=Path, help="a file whose figures are taken off")
    for one in (make, score):
        one.add_argument("--draws", type=int, default=scoring.DRAWS, help="of the bootstrap")
    return parser


if __name__ == "__main__":
    run(main)
