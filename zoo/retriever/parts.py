"""What a retriever is made of: the model, its probes, and the bank that corrects hubs."""

import collections
import dataclasses
import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zoo.confidence import Probes
from zoo.confidence.insertion import numbered_kinds
from zoo.confidence.probes import OF_CORRECTED, contents_hash, direction_of
from zoo.embeddings.arrays import length
from zoo.embeddings.checks import numbered
from zoo.search import scoring

if TYPE_CHECKING:  # Keras: a question to a saved gallery does without it
    from zoo.models import DualEncoder

NAMED = 0.05  # share of training photos from which a gallery is named
HUBS = {"auto": "auto", "on": True, "off": False}  # of commands, as of `build`


def opened(model: Any) -> "tuple[DualEncoder, Any, dict[str, Any]]":
    """`(DualEncoder, where it came from or None, how it is shown pictures)`. A model whose weights
    have changed comes from nowhere: its probes are others."""
    import zoo.training.registered  # noqa: F401
    from zoo.models import DualEncoder
    from zoo.models.presets import from_preset, shown_pictures, weights_mark

    model = model if isinstance(model, DualEncoder) else from_preset(model)
    origin = getattr(model, "origin", None)
    shown = shown_pictures(model, origin)
    if origin is not None and getattr(model, "origin_weights", None) != weights_mark(model):
        origin = None
    return model, origin, shown


def probes_from(origin: Any) -> Probes | None:
    """The probes that come with the run or preset of a name, or None."""
    from zoo.evaluation import probes_of

    return None if origin is None else probes_of(origin)


def own_probes(side, queries, own, groups, matches, before):
    """`Probes` of a user's pairs, with what the model's probes know beside them."""
    labels = [np.arange(length(queries)), np.arange(length(own))]
    if matches is not None:
        matches = np.asarray(matches.toarray() if hasattr(matches, "toarray") else matches, bool)
        labels[0] = numbered_kinds(matches)
        first = np.unique(labels[0], return_index=True)[1]
        if (matches[first].sum(axis=0) > 1).any():
            raise ValueError("`matches` must be kinds that share no item; received some that do")
        labels[1] = np.where(matches.any(axis=0), labels[0][matches.argmax(axis=0)], -1)
    elif length(queries) != length(own):
        raise ValueError(
            f"`own` must hold one item a question, {length(queries)}; received {length(own)}. Give "
            "`matches` where questions want several"
        )
    sides = (queries, own) if side == "captions" else (own, queries)
    labels = labels if side == "captions" else labels[::-1]
    more = {}
    if before is not None:  # what is known of its own items is not of these
        fits = {n: dataclasses.replace(one, strangers=None) for n, one in before.fits.items()}
        more = {"known": before.known, "fits": fits}
    if side == "images" and groups is not None:
        more["caption_images"] = numbered(groups, length(queries))
    return Probes.of(*sides, *labels, source="pairs of your own", **more)


def bank_of(hubs: Literal["auto"] | bool, items: Callable, similarity: Any, side: str, probes: Any):
    """`(questions by which hubs are corrected or None, the `Gain` or None)`; `items()` gives
    embeddings of the gallery or a sample. A ValueError if there are no probes to correct by."""
    if not hubs or (probes is None and hubs == "auto"):
        return None, None
    if probes is None:
        raise ValueError("`hubs` must be False for a model without probes; received True")
    bank = probes.questions(side)
    if hubs is True:
        return bank, None
    # Of classes items have questions in common; and what else fits is learnt for corrected scores
    # where these find more in training.
    name = OF_CORRECTED + direction_of(side)
    if probes.by_class or (probes.fits and name not in probes.fits):
        return None, None
    from zoo.evaluation.gallery import hub_gain

    try:
        gain = hub_gain(items(), scoring.resolve(similarity), side, probes)
    except ValueError:  # probes of another model, which the calibration will tell
        return None, None
    return (bank if gain is not None and gain.pays else None), gain


def ids_among(among: Any, names: Mapping[int, str] | None) -> Any:
    """The ids of items by their names, or by a pattern of names; numbers are ids, also as texts
    that no item is called. A ValueError if there is no such item, or a text is given twice."""
    if isinstance(among, str):
        if names is None:
            raise ValueError(f"`among` must be ids: the items have no names; received {among!r}")
        kept = set(fnmatch.filter(names.values(), among))
        if not kept:
            raise ValueError(f"`among` must be a pattern of names; {among!r} fits none")
        return [one for one, name in names.items() if name in kept]
    if not any(isinstance(one, str) for one in among):
        return among
    among, found = [str(one) for one in among], {}
    for one, name in (names or {}).items():
        found.setdefault(name, []).append(one)
    if lost := [one for one in among if one not in found and not one.isdecimal()]:
        raise ValueError(f"`among` must be names or ids of items; {lost[0]!r} is none")
    text, count = collections.Counter(among).most_common(1)[0]
    if count > 1:
        raise ValueError(f"`among` must be distinct; received {text!r} twice")
    return [one for text in among for one in found.get(text) or [int(text)]]


def trained_on(paths: Sequence[Any], probes: Probes | None) -> np.ndarray:
    """Which files the model was trained on, `(N,)` booleans, by a hash of their contents.

    The model's probes remember its training; None knows nothing.
    """
    if probes is None or not len(probes.trained_on) or not len(paths):
        return np.zeros(len(paths), bool)
    found = np.array([contents_hash(path) for path in paths], np.uint64)
    return np.isin(found, probes.trained_on)


def training_note(paths: Sequence[Any], probes: Probes | None) -> str | None:
    """A sentence on a gallery of which many photos were trained on, or None."""
    count = int(trained_on(paths, probes).sum())
    if not count or count < NAMED * len(paths):
        return None
    return (
        f"{count:,} of {len(paths):,} photos were trained on: new questions will rarely find "
        "anything else"
    )
