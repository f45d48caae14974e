"""A calibration as one JSON file: plain numbers, checked when they are read."""

import base64
import dataclasses
import json
import math
import sys
from pathlib import Path

import numpy as np

from zoo.confidence.certificate import Certificate
from zoo.confidence.gallery import GalleryIdentity
from zoo.confidence.kind_spread import KindSpread
from zoo.confidence.logistic import Logistic
from zoo.confidence.promises import GalleryPromises
from zoo.confidence.shift import Reference, direction_names
from zoo.confidence.unknown import KnownQueries
from zoo.errors import InputError
from zoo.files.atomic import write_text
from zoo.files.json_files import read_json

FORMAT, VERSION = "halo-confidence", 3


def write(confidence, path):
    """See `Confidence.save`."""
    write_text(Path(path), json.dumps(to_json(confidence), indent=1, allow_nan=False) + "\n")


def read(cls, path):
    """See `Confidence.load`."""
    return from_json(cls, read_json(path), Path(path))


def to_json(confidence):
    """A `Confidence` as a dict of JSON values."""
    gallery, known, certificate = confidence.gallery, confidence.known, confidence.certificate
    return {
        "format": FORMAT,
        "version": VERSION,
        "k": confidence.k,
        "queries": confidence.num_queries,
        "correct": confidence.num_correct,
        "features": list(confidence.names),
        "temperature": confidence.temperature,
        **_logistic_to_json(confidence.logistic),
        "recalibration": confidence.recalibration,
        "reference": _reference_to_json(confidence.reference),
        "gallery": None if gallery is None else dataclasses.asdict(gallery),
        "known": None if known is None else _known_to_json(known),
        "certificate": None if certificate is None else dataclasses.asdict(certificate),
        "copies": confidence.copies,
        "kind_spread": None if confidence.spread is None else dataclasses.asdict(confidence.spread),
        "promises": None if confidence.promises is None else _promises_to_json(confidence.promises),
    }


def from_json(cls, value, where="calibration"):
    """The inverse of `to_json`.

    Raises:
        InputError: if something is missing or is not what it has to be.
    """
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise InputError(f"{where} is not a calibration: expected 'format' {FORMAT!r}")
    if value.get("version") != VERSION:
        raise InputError(
            f"{where}: expected version {VERSION}; found {value.get('version')!r}; it is of "
            "another version of the zoo"
        )
    try:
        return _confidence(cls, value)
    except KeyError as error:
        raise InputError(f"{where}: {error.args[0]!r} is missing") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{where} is not a calibration: {error}") from error


def _confidence(cls, value):
    names = value["features"]
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise ValueError(f"'features' must be names; found {names!r}")
    count = len(names)
    logistic, temperature = _logistic(value, count), _number(value["temperature"], "temperature")
    if temperature <= 0:
        raise ValueError(f"'temperature' must be positive; found {temperature}")
    queries, correct, k = (_whole(value[name], name) for name in ("queries", "correct", "k"))
    if not 0 < correct < queries or k < 1:
        raise ValueError(f"expected 0 < 'correct' < 'queries'; found {correct} of {queries}")
    gallery, known = value["gallery"], value["known"]
    certificate, copies, promises = (value[name] for name in ("certificate", "copies", "promises"))
    spread = value["kind_spread"]
    return cls(
        tuple(names),
        temperature,
        logistic,
        _recalibration(value["recalibration"]),
        k,
        queries,
        correct,
        _reference(value["reference"], names),
        None if gallery is None else _gallery(gallery),
        None if known is None else _known(known),
        None if certificate is None else _certificate(certificate),
        None if copies is None else _number(copies, "copies"),
        None if promises is None else _promises(promises, len(names)),
        None if spread is None else _spread(spread),
    )


def _spread(value):
    deviation = _number(value["deviation"], "deviation")
    kinds = _whole(value["kinds"], "kinds")
    if deviation < 0 or kinds < 2:
        raise ValueError("'kind_spread' must have a deviation from 0 and two kinds or more")
    return KindSpread(deviation, kinds)


def _recalibration(value):
    if value is None:
        return None
    if value["kind"] == "platt":
        slope, shift = (_number(value[name], name) for name in ("slope", "shift"))
        if slope < 0:
            raise ValueError(f"'slope' must not be negative; found {slope}")
        return {"kind": "platt", "slope": slope, "shift": shift}
    if value["kind"] != "isotonic":
        raise ValueError(f"unknown recalibration {value['kind']!r}")
    logit = _list(value["logit"], "logit", None)
    level = _list(value["probability"], "probability", len(logit))
    rising = (np.diff(logit) > 0).all() and (np.diff(level) >= 0).all()
    if not len(logit) or not rising or level[0] < 0 or level[-1] > 1:
        raise ValueError("'logit' and 'probability' must rise, the latter from 0 to 1 at most")
    return {"kind": "isotonic", "logit": logit.tolist(), "probability": level.tolist()}


def _reference_to_json(reference):
    parts = {"sample": reference.sample}
    if reference.directions is not None:
        parts.update(centre=reference.centre, directions=reference.directions)
    return {name: _packed(array) for name, array in parts.items()}


def _reference(value, names):
    sample = _unpacked(value["sample"], "sample")
    centre = directions = None
    if "directions" in value:
        centre, directions = (_unpacked(value[name], name) for name in ("centre", "directions"))
        if directions.ndim != 2 or centre.shape != directions.shape[1:]:
            raise ValueError(f"'directions' must be (r, {centre.size}); found {directions.shape}")
        names = [*names, *direction_names(len(directions))]
    if sample.ndim != 2 or sample.shape[1] != len(names) or not len(sample):
        raise ValueError(f"'sample' must be (queries, {len(names)}); found {sample.shape}")
    return Reference(tuple(names), sample.astype(np.float32), centre, directions)


def _gallery(value):
    size, summary = _whole(value["size"], "size"), value["summary"]
    if size < 1 or not isinstance(summary, dict):
        raise ValueError("'gallery' must have a size of at least 1 and a summary")
    return GalleryIdentity(size, {name: _number(x, name) for name, x in summary.items()})


def _certificate(value):
    threshold = value["threshold"]
    return Certificate(
        _number(value["risk"], "risk"),
        _number(value["failure"], "failure"),
        None if threshold is None else _number(threshold, "threshold"),
        _whole(value["num_queries"], "num_queries"),
    )


def _logistic_to_json(logistic):
    arrays = {name: getattr(logistic, name).tolist() for name in ("centre", "spread", "weights")}
    return {**arrays, "bias": logistic.bias}


def _logistic(value, count):
    centre, spread, weights = (
        _list(value[name], name, count) for name in ("centre", "spread", "weights")
    )
    if not (spread > 0).all():
        raise ValueError("'spread' must be positive")
    return Logistic(centre, spread, weights, _number(value["bias"], "bias"))


def _promises_to_json(promises):
    arrays = {name: _packed(getattr(promises, name)) for name in _PROMISED}
    matcher = None if promises.matcher is None else _logistic_to_json(promises.matcher)
    return {"size": promises.size, "matcher": matcher, **arrays}


def _promises(value, count):
    size = _whole(value["size"], "size")
    arrays = {name: _unpacked(value[name], name) for name in _PROMISED}
    counts = {len(arrays[name]) for name in _PROMISED[:4]}
    if any(array.ndim != 1 for array in arrays.values()) or len(counts) > 1:
        raise ValueError(f"'promises' must have one rank, logit, group and score a probe; {counts}")
    if size < 1 or not min(counts) or (arrays["ranks"] < 1).any():
        raise ValueError("'promises' must have a size and ranks of at least 1")
    arrays["groups"] = arrays["groups"].astype(np.int64)
    matcher = None if value["matcher"] is None else _logistic(value["matcher"], count)
    return GalleryPromises(size, matcher=matcher, **arrays)


_PROMISED = ("ranks", "logits", "groups", "match_scores", "present", "absent")


def _known_to_json(known):
    return {
        name: _packed(values, values.dtype.newbyteorder("<").str)
        for name, values in known.to_arrays().items()
    }


def _known(value):
    return KnownQueries.of_arrays({name: _unpacked(one, name) for name, one in value.items()})


_WIDTHS = {"<f2": "float16", "<f4": "float32", "<f8": "float64"}


def _packed(array, width="<f4"):
    """Numbers in base64, little-endian: a tenth of the digits that text would take."""
    array = np.asarray(array, width)
    contents = base64.b64encode(array.tobytes()).decode()
    return {"shape": list(array.shape), _WIDTHS[width]: contents}


def _unpacked(value, name):
    shape = tuple(_whole(size, name) for size in value["shape"])
    width = next((key for key, word in _WIDTHS.items() if word in value), "<f4")
    array = np.frombuffer(base64.b64decode(value[_WIDTHS[width]], validate=True), width)
    if math.prod(shape) != len(array):
        raise ValueError(f"{name!r} must hold {math.prod(shape)} numbers; found {len(array)}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name!r} must hold finite numbers")
    return array.reshape(shape).astype(np.float64)


def _number(value, name):
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not abs(value) <= sys.float_info.max:  # nor is NaN
        raise ValueError(f"{name!r} must be a finite number; found {value!r:.40}")
    return float(value)


def _whole(value, name):
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name!r} must be a whole number; found {value!r}")
    return value


def _list(values, name, length):
    if not isinstance(values, list) or (length is not None and len(values) != length):
        raise ValueError(f"{name!r} must be a list of {length or 'some'} numbers")
    return np.array([_number(value, name) for value in values])
