"""The command `halo export`."""

from export.choices import ONNX, STORAGE
from export.onnx_towers import export_onnx
from export.saved_model import export_model
from halo_search.errors import InputError
from halo_search.files.json_files import read_json
from zoo import evaluation, presets
from zoo.models.run_folder import RunFolder
from zoo.presets.folders import shown_pictures


def main(options):
    """Exports the model that the flags name, and prints its differences from Keras."""
    options = vars(options)
    format, name, out = (options.pop(key) for key in ("format", "run", "out"))
    if format == ONNX:
        _export_onnx(name, out, options)
        return
    model = presets.from_preset(name)
    resizing = {"mode": "crop", "crop_fraction": 1.0, **shown_pictures(model, name)}
    if options["resize"] is None:
        options["resize"] = resizing["mode"]
    if options["crop_fraction"] is None:
        options["crop_fraction"] = resizing["crop_fraction"]
    config, metrics = _record(name)
    target = export_model(model, out, config=config, metrics=metrics, **options)
    facts = _print_errors(target)
    print(f"{target}: {', '.join(facts['signatures'])}")
    print(f"serve it: cd {out} && docker compose up")


def _export_onnx(name, out, options):
    if options["storage"] != STORAGE[0]:
        raise InputError(
            f"--storage must be {STORAGE[0]} with --format {ONNX}; received {options['storage']}"
        )
    taken = ("image_only", "batch_size", "image_size")
    target = export_onnx(presets.from_preset(name), out, **{key: options[key] for key in taken})
    facts = _print_errors(target)
    print(f"{target}: {', '.join(tower['file'] for tower in facts['towers'].values())}")
    print(f"try it: cd {out} && python client.py")


def _print_errors(target):
    """Prints how far an export is from Keras; returns its facts."""
    facts = read_json(target / "export.json")
    for output, error in facts["largest_errors"].items():
        print(f"{output:32} {error:.2g}")
    return facts


def _record(name):
    """The configuration and the results that a run folder or a preset tells of."""
    card, folder = evaluation.card_of(name), RunFolder(name)
    if card is not None:
        return card, card.get("metrics")
    return (folder.config, folder.metrics) if folder.is_run else ({}, None)
