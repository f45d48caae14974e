"""The card of an exported model: what it is, what it was trained on, how well it does."""

import importlib.metadata

from halo_search.files.atomic import write_text
from zoo import embeddings


def describe(model, concrete, settings, errors):
    """What a card and a client have to know, as JSON values.

    Args:
        model: the `DualEncoder`.
        concrete: `{signature: concrete function}`.
        settings: how it was exported, JSON values.
        errors: of `export.comparison.compare`.
    """
    output = model.image_encoder.output
    has_words = "encode_captions" in concrete and not model.reads_caption_vectors
    needs_text = has_words and not hasattr(model.tokenizer, "get_vocabulary")
    return {
        "reads": "stored vectors" if model.reads_caption_vectors else "images and English captions",
        "system": model.name,
        "embedding": embeddings.kind(output),
        "similarity": type(model.similarity).__name__,
        "parameters": model.count_params(),
        "signatures": {
            name: {
                "inputs": {spec.name: _spec(spec) for spec in f.structured_input_signature[0]},
                "outputs": {key: _spec(value) for key, value in f.structured_outputs.items()},
            }
            for name, f in concrete.items()
        },
        "loads_with": ["tensorflow", "tensorflow_text"] if needs_text else ["tensorflow"],
        "settings": settings,
        "largest_errors": errors,
        "versions": {
            name: importlib.metadata.version(name) for name in ("keras", "tensorflow", "halo-zoo")
        },
    }


def write_card(path, facts, config=None, metrics=None):
    """Writes the card as Markdown.

    Args:
        path: of the file.
        facts: of `describe`.
        config: a run's `config.json`, or a preset's card.
        metrics: a run's `metrics.json`.
    """
    config, metrics = config or {}, metrics or {}
    settings = config.get("settings", config)
    data = settings.get("data_dir") or settings.get("data") or "Toy Birds, drawn by the zoo"
    lines = [
        f"# {facts['system']}",
        "",
        f"A dual encoder of {facts['reads']}. An item becomes {facts['embedding']}; "
        f"pairs are compared by `{facts['similarity']}`. {facts['parameters']:,} parameters, "
        f"stored as {facts['settings']['storage']}.",
        "",
        f"- Trained on: {data if settings else 'not recorded'}",
        f"- Command: `{config['command']}`" if "command" in config else "- Command: not recorded",
        f"- Loads with: {', '.join(facts['loads_with'])}; written with "
        + ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
        "",
        "## Metrics",
        "",
        *(_table(_flat(metrics), "metric") if metrics else ["None recorded with the run."]),
        "",
        "## Signatures",
        "",
        "| name | inputs | outputs |",
        "|---|---|---|",
        *(
            f"| `{name}` | {_listed(one['inputs'])} | {_listed(one['outputs'])} |"
            for name, one in facts["signatures"].items()
        ),
        "",
        "## Differences from the Keras model",
        "",
        "Largest absolute ones over seeded probe requests; that of `match/similarity` is relative "
        "to the largest similarity.",
        "",
        *_table(facts["largest_errors"], "output"),
        "",
        "## Limits",
        "",
        "Similarities and uncertainties are calibrated, if at all, on the training data alone. An "
        "uncertainty ranks inputs of this model; it is not comparable between models. Captions "
        "beyond the tokenizer's length are cut, words outside its vocabulary are one and the same "
        "unknown word.",
    ]
    write_text(path, "\n".join(lines) + "\n")


def _spec(spec):
    return {"dtype": spec.dtype.name, "shape": list(spec.shape)}


def _listed(specs):
    return ", ".join(
        f"`{name}` {one['dtype']} ({', '.join('?' if n is None else str(n) for n in one['shape'])})"
        for name, one in specs.items()
    )


def _flat(values, prefix=""):
    flat = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            flat.update(_flat(value, f"{name}/"))
        elif isinstance(value, (int, float)):
            flat[name] = value
    return flat


def _table(values, title):
    rows = [f"| `{name}` | {value:.4g} |" for name, value in values.items()]
    return [f"| {title} | value |", "|---|---:|", *rows]
