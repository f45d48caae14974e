"""Writes the towers of a Keras model as ONNX, for `halo_search.towers.onnx_model`: beside an index,
or in a preset's folder, where the weights stay in the preset's own file."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from halo_search.embeddings.arrays import joined
from halo_search.errors import InputError, MissingPackageError, require
from halo_search.files.atomic import write_text
from halo_search.files.written import Written, check_facts, facts_of, read_sealed, sealed
from halo_search.index import scoring
from halo_search.towers.onnx import open_onnx
from halo_search.towers.onnx_model import FACTS, TOKENIZER, VERSION
from halo_search.towers.weights import LEVELS, STEPS, Weights
from zoo.data.text.captions import WordTokenizer
from zoo.data.text.twin import tokenizer_of
from zoo.models.frozen import TEXTS, towers_of, weights_beside, write_onnx

TOWERS = "towers-"  # how an index' folder of towers begins; the hash of its model follows
_ASKING = {"images": "captions", "captions": "images"}
_TOLERANCE = 1e-4  # to Keras, of values above 1 relative to them


def write_towers(written: Written, model: Any, index: Any) -> tuple[str | None, str | None]:
    """Writes the towers of an index's questions and items beside it, unless they are there.

    Args:
        written: the folder of the index.
        model: a `KerasModel`.
        index: the `Index`, whose similarity has to be one that a search space ranks.

    Returns:
        `(name of the folder, None)`, or `(None, why questions need Keras)`.
    """
    if not index.has_moments or scoring.portable(index.similarity) is None:
        return None, f"Keras ranks by the similarity {scoring.name_of(index.similarity)}"
    if scoring.portable(model.similarity) is None:
        return None, f"Keras computes the model's similarity {scoring.name_of(model.similarity)}"
    tokenizer = model.keras.tokenizer
    try:
        twin = tokenizer and tokenizer_of(tokenizer)
    except MissingPackageError as error:
        return None, f"the towers were not written, {error}"
    content = f"{model.weights_sha256} {sorted(model.resizing.items())} {twin and twin.to_str()}"
    name = TOWERS + hashlib.sha256(content.encode()).hexdigest()[:16]
    folder = written.folder / name
    if name in written.names and _is_whole(folder):
        return name, None
    written.remove([name])
    written.claim(name)
    folder.mkdir()
    try:
        sides = write_sides(folder, model, _ASKING[index.description["side"]])
        for facts in sides.values():
            facts["weights"] = weights_beside(folder / facts["file"])
        write_facts(folder, model, sides)
    except MissingPackageError as error:
        return None, f"the towers were not written, {error}"
    except InputError as error:
        return None, str(error)
    return name, None


def pack_towers(model: Any, preset: Path, folder: Path) -> None:
    """Writes the towers of a preset's model into a new folder, without the weights that are in the
    preset's `model.weights.h5`: `towers.json` says where each one is there.

    Raises:
        InputError: if a tower cannot be written, or differs from Keras'.
    """
    folder.mkdir()
    sides = write_sides(folder, model, "captions")
    stored = Weights(preset)
    places = {}
    for path in stored.paths():
        (array,) = stored.read({"array": path}).values()
        places.setdefault(_hash(array), path)
    for facts in sides.values():
        facts["weights"] = _point_at(folder / facts["file"], places, stored)
    write_facts(folder, model, sides, preset=preset.name)


def _point_at(path, places, stored):
    """Takes a graph's weights out of its file where a preset has them: `{initializer: path in the
    preset's file}`. What is int8 there is multiplied by its steps in the graph: ONNX Runtime does
    so once, and needs less memory on the way. What was made of weights stays in the graph."""
    onnx = require("onnx", extra="models")
    model = onnx.load(path)
    graph, named, products = model.graph, {}, []
    for tensor in list(graph.initializer):
        values = onnx.numpy_helper.to_array(tensor)
        place = places.get(_hash(values))
        if place is None or values.size < 2:
            continue
        graph.initializer.remove(tensor)
        if not stored.is_int8(place):
            graph.initializer.append(_outside(onnx, tensor.name, values))
            named[tensor.name] = place
            continue
        factors = stored.read({LEVELS: place + LEVELS, STEPS: place + STEPS})
        for factor, array in factors.items():
            graph.initializer.append(_outside(onnx, tensor.name + factor, array))
            named[tensor.name + factor] = place + factor
        products += _products(onnx, graph, tensor.name, values.shape)
    nodes = [*products, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    path.with_suffix(".data").unlink(missing_ok=True)
    onnx.save(model, path)
    return named


def _outside(onnx, name, values):
    """An initializer whose values are given when the graph is opened."""
    kind = onnx.helper.np_dtype_to_tensor_dtype(values.dtype)
    tensor = onnx.TensorProto(name=name, dims=values.shape, data_type=kind)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="in_the_preset")
    return tensor


def _products(onnx, graph, name, shape):
    """Nodes that make an array of its levels and steps. Rows of a table of vectors are looked up
    before they are multiplied, so that the table stays int8."""
    make, levels, steps = onnx.helper.make_node, name + LEVELS, name + STEPS
    users = [node for node in graph.node if name in node.input]
    if all(node.op_type == "Gather" and node.input[0] == name for node in users):
        for node in users:
            rows = node.output[0]
            parts = [
                make("Gather", [levels, node.input[1]], [f"{rows}{LEVELS}"]),
                make("Gather", [steps, node.input[1]], [f"{rows}{STEPS}"]),
                *_product(make, f"{rows}{LEVELS}", f"{rows}{STEPS}", rows),
            ]
            place = list(graph.node).index(node)
            graph.node.remove(node)
            for offset, part in enumerate(parts):
                graph.node.insert(place + offset, part)
        return []
    dims = next(initializer.dims for initializer in graph.initializer if initializer.name == steps)
    if len(dims) != 1:  # steps of each row, of a table that is not looked up
        return _product(make, levels, steps, name)
    shape = onnx.numpy_helper.from_array(np.array(shape, np.int64), f"{name}@shape")
    graph.initializer.append(shape)
    return [
        make("DequantizeLinear", [levels, steps], [f"{name}@rows"], axis=1),
        make("Reshape", [f"{name}@rows", shape.name], [name]),
    ]


def _product(make, levels, steps, out):
    """Nodes from int8 levels and float32 steps to their product."""
    return [
        make("Cast", [levels], [f"{out}@float"], to=1),
        make("Mul", [f"{out}@float", steps], [out]),
    ]


def _hash(values):
    """SHA-256 of an array's shape, type and values."""
    values = np.ascontiguousarray(values)
    facts = repr((values.shape, values.dtype.str)).encode()
    return hashlib.sha256(facts + values.tobytes()).hexdigest()


def write_facts(folder, model, sides, **more):
    """Writes `towers.json`, last, so that all it names is there."""
    dims = {part.shape[-1] for part in model.keras.image_encoder.output.values()}
    for side, facts in sides.items():
        facts["model_sha256"] = model.model_sha256(side)
    facts = {
        "version": VERSION,
        "sides": sides,
        "kind": model.kind,
        "dim": max(dims),
        "spells": not isinstance(model.keras.tokenizer, WordTokenizer),
        "portable": dataclasses.asdict(scoring.portable(model.similarity)),
        "weights_sha256": model.weights_sha256,
        **more,
    }
    facts["files"] = {path.name: facts_of(path) for path in sorted(folder.iterdir())}
    write_text(folder / FACTS, json.dumps(sealed(facts), indent=1) + "\n")


def write_sides(folder, model, asking):
    """Writes both towers of a `KerasModel`, that of the questions first; the facts of each side
    that was written. An InputError if the side that asks cannot be."""
    sides = {}
    for side in (asking, _ASKING[asking]):
        try:
            sides[side] = _write(folder, model.tower(side))
        except InputError:  # a missing package is one too
            if side == asking:
                raise
    return sides


def _write(folder, tower):
    """Writes one tower, and what it reads; facts of `StoredTowers`."""
    model, side, facts = tower.model, tower.side, {"file": f"{tower.side}.onnx"}
    twin = None
    if tower.reads == "texts":
        twin = tokenizer_of(model.tokenizer)
        if twin is None:
            kind = type(model.tokenizer).__name__
            raise InputError(f"no tokenizer without TensorFlow gives the ids of the model's {kind}")
    elif tower.reads == "pictures":
        facts |= dict(zip(("mode", "crop_fraction"), tower.resizing, strict=True))
        facts["size"] = tower.image_size
    else:
        raise InputError(f"the model reads {tower.reads} for {side}")
    frozen_towers = towers_of(model, image_size=facts.get("size"))
    (frozen_tower,) = (frozen for frozen in frozen_towers if frozen.side == side)
    path, inputs = folder / facts["file"], frozen_tower.example(model)
    expected, why_not = frozen_tower.expected(inputs), True
    if twin is not None and not frozen_tower.is_recurrent:
        # Padded to the longest text of its batch only, a question costs half. Encoders that take
        # one length alone fail in many ways.
        spec = tf.TensorSpec((None, None), frozen_tower.spec.dtype, frozen_tower.spec.name)
        fill = {"pad_id": getattr(model.tokenizer, "padding", 0), "pad_token": ""}
        twin.enable_padding(**fill)
        rows = [np.array([twin.encode_batch([text])[0].ids], np.int32) for text in TEXTS]
        if any(1 < row.shape[1] < model.tokenizer.max_words for row in rows):
            why_not = _differs(path, frozen_tower._replace(spec=spec), rows, expected)
        if why_not:
            twin.enable_padding(**fill, length=model.tokenizer.max_words)
    if why_not:
        why_not = _differs(path, frozen_tower, [inputs], expected)
    if why_not:
        raise InputError(why_not)
    if twin is not None:
        twin.save(str(folder / TOKENIZER))
    return {**facts, "reads": tower.reads, "measure": tower.measure}


def _is_whole(folder):
    """Whether a folder of towers has all that is written today, undamaged."""
    try:
        facts = read_sealed(folder / FACTS)
        files, version = facts.get("files", {}), facts.get("version")
        for name, facts_of_file in files.items():
            check_facts(folder / name, facts_of_file)
    except InputError:
        return False
    return bool(files) and version == VERSION


def _differs(path, tower, batches, expected):
    """Writes a tower, and says where onnxruntime's numbers are not Keras', or what cannot be
    written or run; None if all is well."""
    try:
        write_onnx(tower, path)
        forward = open_onnx(path)
        outputs = joined([forward({tower.side: batch}) for batch in batches])
    except MissingPackageError:
        raise
    except Exception as error:  # of layers that others wrote
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        return f"the encoder of {tower.side} is no ONNX: {reason}"
    error = max(
        np.max(np.abs(outputs[key] - values) / np.maximum(1, np.abs(values)), initial=0)
        for key, values in expected.items()
    )
    if error <= _TOLERANCE:
        return None
    return f"the embedding of {tower.side} by onnxruntime differs by {error:.2g}"
