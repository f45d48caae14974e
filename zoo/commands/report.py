"""What `halo report` writes: the report on a run."""

from halo_search.errors import InputError
from zoo.evaluation import open_run, probes_of
from zoo.models.run_folder import RunFolder
from zoo.plots.report import write_report
from zoo.presets import list_presets
from zoo.similarities.by_name import check_name


def report(options):
    """Writes the report that the options of `halo report` name."""
    if options.ranking != "own":
        try:
            check_name(options.ranking)
        except ValueError as error:
            raise InputError(f"--ranking must be 'own' or a similarity: {error}") from error
    if options.resamples < 2:
        raise InputError(f"--resamples must be at least 2; received {options.resamples}")
    out = options.out
    if out is None:
        if options.run in list_presets():
            raise InputError("--out must name a folder for a preset")
        out = RunFolder.existing(options.run).path / "report"
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out must name a folder")
    model, split = open_run(options.run, options.data_dir)
    page = write_report(
        out,
        model,
        split,
        options.run,
        probes_of(options.run) if options.ranking == "own" else None,
        options.ranking,
        options.resamples,
        options.seed,
    )
    print(f"Everything is in {page}")
