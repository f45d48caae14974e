"""The towers of a preset as ONNX without their weights, which an index takes from the model.

`tools.preset_towers` packs them when a preset is made: an index is then built without tracing and
converting the same networks each time. They are bound to the weights by a hash.
"""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

from zoo.errors import require
from zoo.models import Tower
from zoo.models.frozen import TEXTS
from zoo.models.presets import preset_folder
from zoo.models.tower import weights_sha256
from zoo.retriever.stored_towers import TOKENIZER, VERSION, StoredTower

FILE = "towers.zip"
TOLERANCE = 1e-4  # to Keras, of values above 1 relative to them
_FACTS, _EXPECTED = "facts.json", "expected.npz"


def pack(folder: Path, model: Any, facts: dict[str, Any], out: Path) -> None:
    """Packs towers that `write_towers` has written into a folder, with the facts of their sides."""
    onnx = require("onnx", extra="search")
    stored_weights = model.get_weights()
    places = {_hash(weights): n for n, weights in enumerate(stored_weights)}
    found = {"version": VERSION, "weights": weights_sha256(model), "sides": facts, "data": {}}
    expected = {}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for side, one in facts.items():
            tower = Tower(model, side, mode=one.get("mode"), crop_fraction=one.get("crop_fraction"))
            for key, rows in embedded(tower, one.get("size")).items():
                expected[f"{side}/{key}"] = rows
            graph = onnx.load(folder / one["file"], load_external_data=False)
            data = (folder / one["file"]).with_suffix(".data")
            data = data.read_bytes() if data.is_file() else b""  # small weights are in the graph
            entries = []
            for tensor in graph.graph.initializer:
                stored = {entry.key: entry.value for entry in tensor.external_data}
                if stored:
                    start = int(stored["offset"])
                    values = data[start : start + int(stored["length"])]
                    place, kept = places.get(_hash(values)), b""
                    if place is None:  # none of the model's: made of them
                        rows = np.frombuffer(values, np.float32).reshape(tensor.dims)
                        place, kept = _scaled(rows, stored_weights)
                        archive.writestr(f"{side}-{start}", kept)
                    entries.append((start, place, bool(kept)))
            digest = _write_data(io.BytesIO(), archive, side, model, entries)
            found["data"][side] = {"weights": entries, "sha256": digest}
            archive.write(folder / one["file"], one["file"])
        if (folder / TOKENIZER).is_file():
            archive.write(folder / TOKENIZER, TOKENIZER)
        with archive.open(_EXPECTED, "w") as file:
            np.savez(file, **expected)
        archive.writestr(_FACTS, json.dumps(found))


def unpack(model: Any, resizing: dict[str, Any], out: Path) -> dict[str, Any] | None:
    """Writes the towers that came with a model's preset into a folder; the facts of its sides. None
    if there are none, they are of other weights or pictures, or embed otherwise than Keras."""
    origin = getattr(model, "origin", None)
    preset = None if origin is None else preset_folder(origin)
    if preset is None or not (preset / FILE).is_file():
        return None
    found = _unpacked(preset / FILE, model, resizing, out)
    if found is None:
        for path in out.iterdir():
            path.unlink()
    return found


def _unpacked(path, model, resizing, out):
    try:
        with zipfile.ZipFile(path) as archive:
            facts = json.loads(archive.read(_FACTS))
            if not _fits(facts, model, resizing):
                return None
            with np.load(io.BytesIO(archive.read(_EXPECTED))) as arrays:
                expected = dict(arrays)
            if TOKENIZER in archive.namelist():
                archive.extract(TOKENIZER, out)
            for side, one in facts["sides"].items():
                archive.extract(one["file"], out)
                data = (out / one["file"]).with_suffix(".data")
                stored = facts["data"][side]
                with open(data, "wb") as file:
                    digest = _write_data(file, archive, side, model, stored["weights"])
                if digest != stored["sha256"]:
                    return None
                found = embedded(StoredTower(out, side, one), one.get("size"))
                own = {key: rows for key, rows in expected.items() if key.startswith(f"{side}/")}
                own = {key.removeprefix(f"{side}/"): rows for key, rows in own.items()}
                if not differs(found, own) <= TOLERANCE:
                    return None
    except (KeyError, ValueError, OSError, zipfile.BadZipFile):
        return None  # damaged: they are made again
    return facts["sides"]


def embedded(tower: Any, size: int | None) -> dict[str, np.ndarray]:
    """What a `Tower` or `StoredTower` makes of fixed texts or pictures."""
    if tower.reads == "texts":
        return tower.of_texts(TEXTS)
    pixels = np.random.default_rng(0).uniform(0, 255, (2, size, size, 3))
    return tower.of_arrays(pixels.astype(np.float32))


def differs(found: dict[str, Any], expected: dict[str, Any]) -> float:
    """The largest difference of two embeddings, of values above 1 relative to them."""
    return max(
        np.max(np.abs(found[key] - values) / np.maximum(1, np.abs(values)), initial=0)
        for key, values in expected.items()
    )


def _fits(facts, model, resizing):
    shown = facts["sides"].get("images", {})
    named = {"mode": shown.get("mode"), "crop_fraction": shown.get("crop_fraction")}
    given = {name: value for name, value in resizing.items() if value is not None}
    return (
        facts["version"] == VERSION
        and all(named[name] == value for name, value in given.items())
        and facts["weights"] == weights_sha256(model)
    )


def _scaled(values, weights):
    """`(place, factors)` of the convolution whose kernel, times a factor per output channel, is
    about `values`: the converter multiplies a BatchNorm into it. `(None, values)` where none is."""
    for place, kernel in enumerate(weights if values.ndim == 4 else ()):
        kernel = _turned(kernel)
        if kernel.shape != values.shape:
            continue
        wide = kernel.astype(np.float64)
        factors = (values * wide).sum((1, 2, 3)) / np.square(wide).sum((1, 2, 3)).clip(1e-30)
        factors = factors.astype(np.float32)
        error = np.abs(_times(kernel, factors) - values).max()
        if error <= 1e-6 * np.abs(values).max():
            return place, factors.tobytes()
    return None, values.tobytes()


def _turned(kernel):
    """A kernel with its axes as ONNX has them; depthwise ones have one column per channel."""
    if kernel.ndim != 4:
        return kernel
    return kernel.transpose((2, 3, 0, 1) if kernel.shape[-1] == 1 else (3, 2, 0, 1))


def _times(kernel, factors):
    return np.ascontiguousarray(kernel * factors.reshape(-1, 1, 1, 1))


def _write_data(file, archive, side, model, entries):
    """Writes the file beside a graph, each weight at its place; the hash of it."""
    digest, end = hashlib.sha256(), 0
    for start, place, is_made in sorted(entries):
        values = archive.read(f"{side}-{start}") if is_made else b""
        if place is not None:
            weights = keras.ops.convert_to_numpy(model.weights[place])
            if is_made:
                weights = _times(_turned(weights), np.frombuffer(values, np.float32))
            values = weights.tobytes()
        for part in (bytes(start - end), values):
            digest.update(part)
            file.write(part)
        end = start + len(values)
    return digest.hexdigest()


def _hash(values):
    data = values if isinstance(values, bytes) else np.ascontiguousarray(values).tobytes()
    return hashlib.sha256(data).hexdigest()
