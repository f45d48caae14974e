"""Writes the towers of a model beside an index, for `zoo.retriever.stored_towers`."""

import hashlib
import json
from typing import Any

import numpy as np
import tensorflow as tf

from zoo.data.text.captions import WordTokenizer
from zoo.data.text.twin import tokenizer_of
from zoo.embeddings.arrays import joined
from zoo.errors import InputError, MissingPackageError
from zoo.files.atomic import write_text
from zoo.files.folders import TOWERS
from zoo.files.written import Written, check_facts, facts_of, read_sealed, sealed
from zoo.models import DualEncoder, Tower
from zoo.models.frozen import TEXTS, towers_of, weights_beside, write_onnx
from zoo.retriever.stored_towers import FACTS, TOKENIZER, VERSION, open_onnx
from zoo.search import scoring

_ASKING = {"images": "captions", "captions": "images"}
_TOLERANCE = 1e-4  # to Keras, of values above 1 relative to them


def write_towers(
    written: Written, model: DualEncoder, index: Any, sha256: str, resizing: dict[str, Any]
) -> tuple[str | None, str | None]:
    """Writes the towers of an index's questions and items beside it, unless they are there; `(name
    of the folder, None)`, or `(None, why questions need TensorFlow)`."""
    if not index.has_moments or scoring.Portable.of(index.similarity) is None:
        return None, f"Keras ranks by the similarity {scoring.name_of(index.similarity)}"
    try:
        twin = model.tokenizer and tokenizer_of(model.tokenizer)
    except MissingPackageError as error:
        return None, f"the towers were not written, {error}"
    content = f"{sha256} {twin and twin.to_str()}"
    name = TOWERS + hashlib.sha256(content.encode()).hexdigest()[:16]
    folder = written.folder / name
    if name in written.names and _is_whole(folder):
        return name, None
    written.remove([name])
    written.claim(name)
    folder.mkdir()
    asking = _ASKING[index.description["side"]]
    try:
        sides = write_sides(folder, model, asking, resizing)
        for facts in sides.values():
            facts["weights"] = weights_beside(folder / facts["file"])
        facts = {
            "version": VERSION,
            "sides": sides,
            "spells": not isinstance(model.tokenizer, WordTokenizer),
            "similarity": scoring.identity(model.similarity),
        }
        facts["files"] = {path.name: facts_of(path) for path in sorted(folder.iterdir())}
        write_text(folder / FACTS, json.dumps(sealed(facts), indent=2) + "\n")  # last: all is there
    except MissingPackageError as error:
        return None, f"the towers were not written, {error}"
    except InputError as error:
        return None, str(error)
    return name, None


def write_sides(folder, model, asking, resizing):
    """Writes both towers, that of the questions first; the facts of each side that was written.
    An InputError if the side that asks cannot be."""
    sides = {}
    for side in (asking, _ASKING[asking]):
        try:
            sides[side] = _write(folder, Tower(model, side, **resizing))
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
    (one,) = (found for found in frozen_towers if found.side == side)
    path, inputs = folder / facts["file"], one.example(model)
    expected, why_not = one.expected(inputs), True
    if twin is not None and not one.is_recurrent:
        # Padded to the longest text of its batch only, a question costs half. Encoders that take
        # one length alone fail in many ways.
        spec = tf.TensorSpec((None, None), one.spec.dtype, one.spec.name)
        fill = {"pad_id": getattr(model.tokenizer, "padding", 0), "pad_token": ""}
        twin.enable_padding(**fill)
        rows = [np.array([twin.encode_batch([text])[0].ids], np.int32) for text in TEXTS]
        if any(1 < row.shape[1] < model.tokenizer.max_words for row in rows):
            why_not = _differs(path, one._replace(spec=spec), rows, expected)
        if why_not:
            twin.enable_padding(**fill, length=model.tokenizer.max_words)
    if why_not:
        why_not = _differs(path, one, [inputs], expected)
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
        for name, one in files.items():
            check_facts(folder / name, one)
    except InputError:
        return False
    return bool(files) and version == VERSION


def _differs(path, tower, batches, expected):
    """Writes a tower, and says where onnxruntime's numbers are not Keras', or what cannot be
    written or run; None if all is well."""
    try:
        write_onnx(tower, path)
        forward = open_onnx(path)
        found = joined([forward({tower.side: batch}) for batch in batches])
    except MissingPackageError:
        raise
    except Exception as error:  # of layers that others wrote
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        return f"the encoder of {tower.side} is no ONNX: {reason}"
    error = max(
        np.max(np.abs(found[key] - values) / np.maximum(1, np.abs(values)), initial=0)
        for key, values in expected.items()
    )
    if error <= _TOLERANCE:
        return None
    return f"the embedding of {tower.side} by onnxruntime differs by {error:.2g}"
