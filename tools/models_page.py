"""Tables of the results of runs in Markdown, from their metrics.json.

    python -m tools.models_page runs/*                         # on the terminal
    python -m tools.models_page runs/* --brief --out docs/models.md    # between its two marks
    python -m tools.models_page runs/* --papers                # with the papers' figures

Runs that differ in the seed alone are one row, mean ± standard deviation over the seeds. Each split
has a table of its own, since figures of different data are not comparable. --brief keeps to the
columns that fit a page and to rows of several seeds, where a split has some, and names a run by its
folder, which has the command. An existing file must
hold the lines `<!-- runs: begin -->` and `<!-- runs: end -->`; what is between them is replaced.
"""

import re
from collections import defaultdict
from pathlib import Path

from studies import seed_table as table
from tools import paper_figures, run_names
from tools.runs_parser import runs_parser
from zoo import cli
from zoo.errors import InputError
from zoo.files.atomic import write_text
from zoo.files.run_folder import RunFolder

BEGIN, END = "<!-- runs: begin -->", "<!-- runs: end -->"
# In these, runs of one row may differ.
_FREE = ("seed", "out", "data_dir", "annotations_dir", "strategy")
# What is drawn, by the name of the layout that it comes in.
_DRAWN = {"toy_birds": "Toy Birds"} | {
    layout: f"Toy Scenes in the layout of {layout}" for layout in ("COCO", "Flickr30K", "regions")
}
_BRIEF = ("R@1", "RSUM", "ambiguity")  # how columns of a page begin
_DROPPED_FLAG = re.compile(r"--(out|seed|data-dir)(=\S+|\s+\S+)?")


def main(argv=None):
    options = _parser().parse_args(argv)
    text = page([RunFolder.existing(path) for path in options.runs], options.brief)
    if options.papers:
        text += (
            "\n### What the papers report\n\nOn their data and backbones: context, not a "
            f"comparison.\n\n{paper_figures.markdown()}"
        )
    if options.out is None:
        print(text, end="")
        return 0
    write_text(options.out, within(options.out, text))
    print(f"wrote {options.out}")
    return 0


def page(runs, brief=False):
    """The tables of some runs in Markdown, one for each split.

    Args:
        runs: `RunFolder`s; those that are not finished or retrieve nothing are named below.
        brief: whether to keep to the columns that fit a page.

    Returns:
        Markdown.

    Raises:
        InputError: if none of the runs has results of retrieval.
    """
    splits, left_out = defaultdict(lambda: defaultdict(list)), []
    for run in runs:
        metrics = run.metrics
        if metrics is None or "retrieval" not in metrics:
            left_out.append(run.path)
            continue
        splits[_split(run)][_identity(run)].append(run)
    if not splits:
        raise InputError(f"no finished run with results of retrieval among {len(runs)} folders")
    parts = [split_table(split, list(rows.values()), brief) for split, rows in splits.items()]
    if left_out:
        parts.append(f"Not finished, or not of retrieval: {', '.join(map(str, left_out))}.\n")
    return "\n".join(parts)


def split_table(split, rows, brief=False):
    """The table of one split.

    Args:
        split: its summary.
        rows: lists of `RunFolder`s that differ in the seed alone.
        brief: as for `page`.
    """
    if brief and any(len(runs) > 1 for runs in rows):
        rows = [runs for runs in rows if len(runs) > 1]
    of_rows = [[run.metrics for run in runs] for runs in rows]
    columns = [
        table.retrieval("r_precision", "R-P"),
        table.retrieval("recall@1", "R@1"),
        table.Column("RSUM", (lambda metrics: first(metrics)["rsum"],)),
        table.bins("bins i2t / t2i"),
        table.Column("AURC i2t / t2i", tuple(map(_area, table.DIRECTIONS))),
        table.Column("ambiguity", (lambda metrics: metrics["ambiguity_spearman"],), "+.2f"),
        *table.confidences(),
        table.Column("minutes of training", (lambda metrics: metrics["seconds"] / 60,)),
    ]
    columns = [c for c in columns if any(table.cell(c, found) for found in of_rows)]
    about = ["folder"] if brief else ["seeds", "machine", "run"]
    if brief:
        columns = [column for column in columns if column.title.startswith(_BRIEF)]
    titles = ["model", *(column.title for column in columns), *about]
    lines = [
        f"### {split}",
        "",
        f"| {' | '.join(titles)} |",
        f"|{'---|' * len(titles)}",
    ]
    for runs in sorted(rows, key=_mean_rsum, reverse=True):
        runs = sorted(runs, key=_seed)
        found = [run.metrics for run in runs]
        cells = [table.cell(column, found) for column in columns]
        said = {
            "seeds": ", ".join(map(str, map(_seed, runs))),
            "machine": "; ".join(dict.fromkeys(map(machine, runs))),
            "run": f"`{label(runs[0])}`",
            "folder": f"`{_without_seed(runs[0])}`",
        }
        row = [called(runs[0]), *cells, *(said[title] for title in about)]
        lines.append(f"| {' | '.join(row)} |")
    for name in ("oracle", "chance"):
        known = [metrics[name] for found in of_rows for metrics in found if name in metrics]
        if known:
            cells = [table.cell(column, [{"retrieval": {"": known[0]}}]) for column in columns]
            lines.append(f"| {' | '.join([name, *cells])} |{' |' * len(about)}")
    return "\n".join(lines) + "\n"


def as_csv(text):
    """The tables of `page` as CSV: one line per value, with split, model and column.

    Splits differ in their columns, so a value is a line.
    """
    lines, split, titles = ["split,model,column,value"], "", None
    for line in text.splitlines():
        if line.startswith("### "):
            split, titles = line.removeprefix("### "), None
        elif line.startswith("| "):
            cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
            if titles is None:
                titles = cells[1:]
                continue
            for title, cell in zip(titles, cells[1:], strict=True):
                if cell:
                    lines.append(",".join(map(_quoted, (split, cells[0], title, cell))))
    return "\n".join(lines) + "\n"


def _quoted(cell):
    return f'"{cell}"' if "," in cell else cell


def within(path, text):
    """The content of a file with the tables between its marks; the tables alone for a new file.

    Raises:
        InputError: if the file exists and has not both marks, each once and in order.
    """
    if not path.exists():
        return f"{BEGIN}\n\n{text}\n{END}\n"
    old = path.read_text(encoding="utf-8")
    if old.count(BEGIN) != 1 or old.count(END) != 1 or old.index(BEGIN) > old.index(END):
        raise InputError(f"{path}: expected one line {BEGIN} and below it one line {END}")
    return f"{old[: old.index(BEGIN)]}{BEGIN}\n\n{text}\n{old[old.index(END) :]}"


def label(run):
    """The command without folder and seed, or of a table's run the table and the folder's name."""
    command = run.config.get("command", "").split()
    script, flags = (command or [""])[0], " ".join(command[1:])
    if run.path.name in flags and script.endswith(".py"):
        rest = " ".join(_DROPPED_FLAG.sub("", flags).split())
        return f"{Path(script).name} {rest}".strip()
    name = _without_seed(run)
    return f"{Path(script).name}: {name}" if script.endswith(".py") else name


def called(run):
    """The name of a run's row."""
    script = (run.config.get("command", "").split() or [""])[0]
    return run_names.name_of(_without_seed(run), Path(script).name, run.settings)


def _without_seed(run):
    return re.sub(r"[-_]seed[-_]?\d+$", "", run.path.name)


def machine(run):
    """What a run ran on, as far as it wrote it down."""
    hardware = run.config.get("hardware")
    if not hardware:
        return "not recorded"
    cpus = f"{hardware['cpus']} CPU core{'s' if hardware['cpus'] != 1 else ''}"
    return ", ".join([cpus, *hardware.get("gpus", [])])


def _mean_rsum(runs):
    return sum(first(run.metrics)["rsum"] for run in runs) / len(runs)


def first(metrics):
    """The results by the run's own similarity."""
    return next(iter(metrics["retrieval"].values()))


def _area(direction):
    return lambda metrics: 100 * metrics["uncertainty"][direction]["risk_coverage"]["aurc"]


def _split(run):
    """What a run was evaluated on; toy data have the names of the layout that they come in."""
    name = run.metrics.get("split", "a split that the run does not name")
    if run.settings.get("data_dir") is not None:
        return name
    layout, _, rest = name.partition(" ")
    drawn = _DRAWN.get(layout)
    return f"{drawn}, {rest}" if drawn else f"{name} (toy data)"


def _identity(run):
    settings = {key: value for key, value in run.settings.items() if key not in _FREE}
    return repr(sorted(settings.items())) + label(run)


def _seed(run):
    return run.settings.get("seed", 0)


def _parser():
    parser = runs_parser("models_page", __doc__)
    parser.add_argument("--out", type=Path, help="Markdown file; default: print")
    parser.add_argument("--brief", action="store_true", help="fewer columns, as a page has")
    parser.add_argument("--papers", action="store_true", help="add what the papers report")
    return parser


if __name__ == "__main__":
    cli.run(main)
