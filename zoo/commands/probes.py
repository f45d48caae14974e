"""What `halo confidence probes` writes: the probes of a finished run or preset."""

from halo_search.errors import InputError
from halo_search.files.written import Written
from zoo.evaluation.probes import make_probes
from zoo.evaluation.retrieval import encode
from zoo.evaluation.runs import open_run
from zoo.models.run_folder import RunFolder


def write_probes(options):
    """The probes of one run or preset, written into its folder or another."""
    if options.out is not None and not RunFolder(options.out).is_run:
        Written(options.out).claim(RunFolder(options.out).probes_path.name)
    model, train = open_run(options.run, options.data_dir, "train")
    _, validation = open_run(options.run, options.data_dir, "validation")
    out = options.out or RunFolder.existing(options.run).path
    seen = encode(model, validation.records, validation.source)
    try:
        probes = make_probes(
            model, seen, train, options.seed, images=options.images, captions=options.captions
        )
    except ValueError as error:
        raise InputError(f"{options.run}: {error}") from error
    path = RunFolder(out).probes_path
    probes.save(path)
    print(f"{path}: {probes.source}")
