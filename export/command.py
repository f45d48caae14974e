"""The command `halo export`."""

from pathlib import Path

from export.choices import SAVED_MODEL
from export.confidence_signatures import ServedJudge
from export.engines import export_engine
from export.saved_model import export_model
from zoo import evaluation, models
from zoo.errors import InputError
from zoo.files import RunFolder
from zoo.files.json_files import read_json
from zoo.models.presets import shown_pictures

GALLERY = "search.json"  # what a gallery's folder holds; the extra "search" reads it, and no other


def main(options):
    """Exports the model that the flags name, and prints its differences from Keras."""
    options = vars(options)
    format, name, out, gallery = (options.pop(key) for key in ("format", "run", "out", "gallery"))
    if format != SAVED_MODEL:
        _export_engine(name, out, format, gallery, options)
        return
    if (Path(name) / GALLERY).is_file():  # a gallery names its model
        from zoo.search import built

        gallery = gallery or Path(name)
        name = built.model_of(Path(name), built.read_setup(Path(name)))
    model = models.from_preset(name)
    resizing = {"mode": "crop", "crop_fraction": 1.0, **shown_pictures(model, name)}
    if options["resize"] is None:
        options["resize"] = resizing["mode"]
    if options["crop_fraction"] is None:
        options["crop_fraction"] = resizing["crop_fraction"]
    config, metrics = _record(name)
    probes = evaluation.probes_of(name)
    target = export_model(
        model,
        out,
        config=config,
        metrics=metrics,
        judges={} if gallery is None else _judges(gallery, model),
        known={} if probes is None else probes.known,
        **options,
    )
    facts = read_json(target / "export.json")
    for output, error in facts["largest_errors"].items():
        print(f"{output:32} {error:.2g}")
    print(f"{target}: {', '.join(facts['signatures'])}")
    print(f"serve it: cd {out} && docker compose up")


def _export_engine(name, out, format, gallery, options):
    if gallery is not None:
        raise InputError(f"--gallery is of --format {SAVED_MODEL}; the judge stays with it")
    taken = ("image_only", "batch_size", "image_size", "storage")
    model = models.from_preset(name)
    target = export_engine(model, out, format, **{name: options[name] for name in taken})
    facts = read_json(target / "export.json")
    for output, error in facts["largest_errors"].items():
        print(f"{output:32} {error:.2g}")
    print(f"{target}: {', '.join(tower['file'] for tower in facts['towers'].values())}")
    print(f"try it: cd {out} && python client.py")


def _judges(gallery, model):
    """What judges a gallery, by its direction."""
    from zoo.confidence.probes import direction_of
    from zoo.retriever import Retriever

    retriever = Retriever.load(gallery, model)
    if retriever.confidence is None:
        raise InputError(f"--gallery {gallery}: is not calibrated: {retriever.judge.why_not}")
    direction = direction_of(retriever.side)
    items = None if retriever.probes is None else retriever.probes.items(direction)
    return {direction: ServedJudge(retriever.judge, items, retriever.index.hubs)}


def _record(name):
    """The configuration and the results that a run folder or a preset tells of."""
    card, folder = evaluation.card_of(name), RunFolder(name)
    if card is not None:
        return card, card.get("metrics")
    return (folder.config, folder.metrics) if folder.is_run else ({}, None)
