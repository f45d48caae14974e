"""What `halo report` does."""

import sys
from pathlib import Path

import zoo
from zoo import similarities
from zoo.errors import InputError
from zoo.evaluation import open_run, probes_of
from zoo.files.run_folder import RunFolder
from zoo.report.page import write_report
from zoo.report.section import of_model


def main(options):
    """Writes a report."""
    if options.ranking != "own":
        try:
            similarities.check_name(options.ranking)
        except ValueError as error:
            raise InputError(f"--ranking must be 'own' or a similarity: {error}") from error
    for name in ("items", "resamples"):
        if getattr(options, name) < 2:
            raise InputError(f"--{name} must be at least 2; received {getattr(options, name)}")
    out = options.out
    if out is None:
        if len(options.runs) > 1 or options.runs[0] in zoo.list_presets():
            raise InputError("--out must name a folder for several runs, or for a preset")
        out = RunFolder.existing(options.runs[0]).path / "report"
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out must name a folder")
    runs = [
        _read(name, label, options)
        for name, label in zip(options.runs, _names(options.runs), strict=True)
    ]
    print(f"Everything is in {write_report(runs, out, tell=_tell)}")
    return 0


def _read(name, label, options):
    _tell(f"{label}: encoding")
    model, split = open_run(name, options.data_dir)
    return of_model(
        model,
        split,
        label,
        options.ranking,
        probes=probes_of(name) if options.ranking == "own" else None,
        items=options.items,
        resamples=options.resamples,
        seed=options.seed,
    )


def _names(runs):
    """The last parts of the folders' names, the whole where two would have the same."""
    short = [Path(name).name or str(name) for name in runs]
    return short if len(set(short)) == len(short) else [str(name) for name in runs]


def _tell(name):
    print(f"  {name}", file=sys.stderr)
