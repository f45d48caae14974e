"""Held-out pairs that travel with a model, to calibrate it on whatever gallery it is given."""

import dataclasses
import hashlib
import json
import os
from pathlib import Path

import numpy as np

from halo_search.confidence.bank import Bank
from halo_search.confidence.calibrate import calibrate_on, calibrated_elsewhere
from halo_search.confidence.features import WITHOUT_SOFTMAX
from halo_search.confidence.fits import Fits
from halo_search.confidence.known import KnownQueries, SeenTexts
from halo_search.embeddings.arrays import KEYS, joined, length, parts_of, take
from halo_search.errors import InputError
from halo_search.files.array_files import read_arrays
from halo_search.files.atomic import atomic
from halo_search.files.json_files import pack, unpack

FILE = "probes.npz"
MOST = 2000  # of a side
VERSION = FITS = 3  # of the file, and from which it says what fits as today
OF_POINTS = "points_"  # before a direction: `fits` of the means alone
OF_CORRECTED = "corrected_"  # before a direction: `fits` of scores that are corrected for hubs
DIRECTIONS = ("i2t", "t2i")
# What is said is off by so much on average, and in nine galleries of ten at most, by other photos
# alone and beside 30 of one's own: docs/results/generic_probes.md.
OFF, OFF_WITH_OWN, OWN = (0.04, 0.07), (0.04, 0.09), 30
GENERAL = "Calibrated on general photos"


def direction_of(side):
    """How a gallery of `"images"` or `"captions"` is asked: `"t2i"` or `"i2t"`."""
    return "t2i" if side == "images" else "i2t"


@dataclasses.dataclass(frozen=True, eq=False)
class Probes:
    """Embeddings of images and captions that training has not seen, and which belong together.

    ```python
    rng = np.random.default_rng(0)
    images = {"mean": rng.normal(size=(200, 16)).astype("float32")}
    captions = {"mean": images["mean"] + rng.normal(size=(200, 16)).astype("float32")}
    probes = halo_search.confidence.Probes.of(images, captions, np.arange(200), np.arange(200))
    index = halo_search.index.Index.build({"mean": images["mean"][:50]}, "cosine")
    confidence = probes.calibrate(index)
    ```

    They lie beside the model as `probes.npz`; `zoo.Retriever` calibrates with them.

    Attributes:
        images, captions: dicts of arrays, in float16 where that holds them.
        image_labels, caption_labels: `(N,)` and `(M,)`; an image and a caption with equal labels
            match: one number an image, or a class.
        caption_images: `(M,)`, the row of each caption's image, −1 where it is not among them; or
            None. Captions of one image are a group.
        measure: of the uncertainty, see `zoo.embeddings.uncertainty`, or None.
        known: by direction, `KnownQueries`: what training has seen.
        fits: by direction, `"corrected_"` before it for scores corrected for hubs, `Fits`; empty
            for classes, of which all items fit, and where nothing was learnt.
        trained_on: uint64, sorted hashes of the contents of the pictures of training.
        source: what they are, in words.
        whole: `(N,)` booleans, the images of which all captions are here, or None: these alone ask
            for captions, since a gallery holds all of an image's.
        general: `(M,)` booleans, the captions that are not of the user's kind of photos, or None.
        bank: the `halo_search.confidence.bank.Bank` of captioned photos behind the second opinion,
        or None.
    """

    images: dict
    captions: dict
    image_labels: np.ndarray
    caption_labels: np.ndarray
    caption_images: np.ndarray | None = None
    measure: str | None = None
    known: dict = dataclasses.field(default_factory=dict)
    fits: dict = dataclasses.field(default_factory=dict)
    trained_on: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0, np.uint64))
    source: str = ""
    whole: np.ndarray | None = None
    general: np.ndarray | None = None
    bank: Bank | None = None

    @classmethod
    def of(cls, images, captions, image_labels, caption_labels, caption_images=None, **more):
        """Checked probes: embeddings, what `encode_*` returned or dicts of arrays, and attributes
        as of the class. A ValueError if lengths differ or nothing matches."""
        images, captions = _halved(images), _halved(captions)
        labels = np.asarray(image_labels), np.asarray(caption_labels)
        for name, side, values in zip(
            ("image_labels", "caption_labels"), (images, captions), labels, strict=True
        ):
            if values.shape != (length(side),):
                raise ValueError(
                    f"`{name}` must be of shape ({length(side)},); received {values.shape}"
                )
        if images.keys() != captions.keys():
            raise ValueError(
                f"images and captions must have the same parts; received {', '.join(images)} and "
                f"{', '.join(captions)}"
            )
        shapes = [tuple(side[name].shape[1:] for name in images) for side in (images, captions)]
        if "mask" not in images and shapes[0] != shapes[1]:
            raise ValueError(f"images and captions must have one shape; received {shapes}")
        for values in labels:
            if values.dtype.kind not in "iuSUO" and (values % 1 != 0).any():
                raise ValueError(f"labels must be whole numbers or texts; received {values.dtype}")
        if not np.isin(*labels).any():
            raise ValueError("`image_labels` and `caption_labels` must have labels in common")
        if caption_images is not None:
            caption_images = np.asarray(caption_images)
            if caption_images.shape != labels[1].shape or caption_images.dtype.kind not in "iu":
                raise ValueError(
                    f"`caption_images` must be {len(labels[1])} whole numbers; received shape "
                    f"{caption_images.shape} of {caption_images.dtype}"
                )
            caption_images = caption_images.astype(np.int64)
        whole = more.get("whole")
        if whole is not None and (np.shape(whole) != labels[0].shape or whole.dtype != bool):
            raise ValueError(
                f"`whole` must be {len(labels[0])} truth values; received shape {np.shape(whole)}"
            )
        if more.get("general") is not None and more["general"].shape != labels[1].shape:
            raise ValueError(f"`general` must be {len(labels[1])} truth values")
        return cls(images, captions, *labels, caption_images, **more)

    @property
    def by_class(self):
        """Whether several images have one label."""
        return len(np.unique(self.image_labels)) < len(self.image_labels)

    def pairs(self, direction):
        """What `calibrate_on` takes: `queries`, `own`, `matches` and `groups`, of the direction
        `"t2i"`, where captions ask for images, or `"i2t"`."""
        if direction not in DIRECTIONS:
            raise ValueError(f"`direction` must be one of {DIRECTIONS}; received {direction!r}")
        sides = (self.captions, self.caption_labels), (self.images, self.image_labels)
        (queries, labels), (own, own_labels) = sides if direction == "t2i" else sides[::-1]
        if direction == "i2t" and self.whole is not None:
            told = np.flatnonzero(np.isin(own_labels, labels[self.whole]))
            queries, labels = take(queries, self.whole), labels[self.whole]
            own, own_labels = take(own, told), own_labels[told]
        chosen = np.flatnonzero(np.isin(labels, own_labels))
        queries = take(queries, chosen)
        groups = None
        if direction == "t2i" and self.caption_images is not None:
            # A caption whose image is not among the probes is a group of its own.
            alone = -1 - np.arange(len(labels))
            groups = np.where(self.caption_images >= 0, self.caption_images, alone)[chosen]
        matches = labels[chosen][:, None] == own_labels[None]
        own = take(own, slice(None))
        return {"queries": queries, "own": own, "matches": matches, "groups": groups}

    def questions(self, side):
        """The embeddings of what asks for items of a side, float32: a bank that corrects hubs."""
        return take(self.captions if side == "images" else self.images, slice(None))

    def items(self, direction):
        """The embeddings of what is asked for in a direction, float32."""
        return take(self.images if direction == "t2i" else self.captions, slice(None))

    def calibrate(self, index, direction=None, seed=0):
        """A `Confidence` for the gallery of an index, see `calibrate_on`; the direction is by
        default that of the index's side."""
        if direction is None:
            direction = direction_of(index.description["side"])
        known, pairs = self.known.get(direction), self.pairs(direction)
        names = WITHOUT_SOFTMAX if self.fits else None
        confidence = calibrate_on(index, **pairs, known=known, names=names, seed=seed)
        if self.general is None:
            return confidence
        return calibrated_elsewhere(confidence, index, pairs, self.own_questions(direction))

    @property
    def note(self):
        """A sentence for an answer on what the probes are; empty where none is general."""
        if self.general is None:
            return ""
        owners = self.caption_images
        own = 0 if owners is None else len(np.unique(owners[~self.general]))
        mean, most = OFF_WITH_OWN if own >= OWN else OFF
        off = f"off by {mean} on average in trials of other models, by {most} at most in 9 of 10."
        if own >= OWN:
            return f"{GENERAL} and {own:,} of your own; with {OWN} it was {off}"
        if own:
            return f"{GENERAL} and {own:,} of your own; general photos alone were {off}"
        return f"{GENERAL}, which was {off}"

    def beside(self, own):
        """These probes as general ones, and `own` ones of the user's kind of photos, in place of
        earlier ones of these; a ValueError if either are of classes or do not fit the other."""
        if self.by_class or own.by_class:
            raise ValueError("probes of classes are not joined with others")
        owners = [one.caption_images for one in (self, own)]
        if any(one is None for one in owners):
            raise ValueError("probes are joined where each caption's image is known")
        if self.general is not None and not self.general.all():
            kept = np.setdiff1d(np.arange(length(self.images)), owners[0][~self.general])
            general = self.take(kept, np.flatnonzero(self.general))
            return dataclasses.replace(general, general=None).beside(own)
        images = length(self.images)
        whole = [
            np.ones(length(one.images), bool) if one.whole is None else one.whole
            for one in (self, own)
        ]
        return dataclasses.replace(
            self,
            images=joined([self.images, own.images]),
            captions=joined([self.captions, own.captions]),
            image_labels=np.arange(images + length(own.images)),
            caption_labels=np.append(np.where(owners[0] >= 0, owners[0], -1), owners[1] + images),
            caption_images=np.append(owners[0], owners[1] + images),
            fits=own.fits or self.fits,
            bank=own.bank if own.fits else self.bank,
            source=f"{self.source}; {own.source}",
            whole=np.concatenate(whole),
            general=np.arange(length(self.captions) + length(own.captions)) < length(self.captions),
        )

    def own_questions(self, direction):
        """Which questions of `pairs` are of the user's kind of photos."""
        if direction == "t2i":
            return ~self.general[np.isin(self.caption_labels, self.image_labels)]
        labels = self.image_labels if self.whole is None else self.image_labels[self.whole]
        told = self.caption_labels
        if self.whole is not None:
            told = told[np.isin(told, labels)]
        return np.isin(labels[np.isin(labels, told)], self.caption_labels[~self.general])

    def take(self, images, captions):
        """Probes of some images and captions, by their rows; an image stays whole with all."""
        left_out = np.setdiff1d(np.arange(len(self.caption_labels)), captions)
        whole = self.whole
        if whole is not None:
            whole = whole & ~np.isin(self.image_labels, self.caption_labels[left_out])
        new = np.full(len(self.image_labels) + 1, -1)
        new[images] = np.arange(len(images))
        owners = self.caption_images
        return dataclasses.replace(
            self,
            images={name: values[images] for name, values in self.images.items()},
            captions={name: values[captions] for name, values in self.captions.items()},
            image_labels=self.image_labels[images],
            caption_labels=self.caption_labels[captions],
            caption_images=None if owners is None else new[owners[captions]],
            whole=None if whole is None else whole[images],
            general=None if self.general is None else self.general[captions],
        )

    def of_points(self):
        """The probes of a model whose points are the means of these Gaussians, with the `fits` that
        were learnt for means. What is usual of images is left out: it was learnt with variances."""
        known = {side: one for side, one in self.known.items() if isinstance(one.shape, SeenTexts)}
        images, captions = ({"mean": side["mean"]} for side in (self.images, self.captions))
        return dataclasses.replace(
            self,
            images=images,
            captions=captions,
            measure=None,
            known=known,
            fits={
                name.removeprefix(OF_POINTS): one
                for name, one in self.fits.items()
                if name.startswith(OF_POINTS)
            },
        )

    def save(self, path):
        """Writes one file, whole or not at all; an InputError if it cannot be written."""
        arrays = {
            **{f"images_{name}": values for name, values in self.images.items()},
            **{f"captions_{name}": values for name, values in self.captions.items()},
            "image_labels": self.image_labels,
            "caption_labels": self.caption_labels,
            "trained_on": np.asarray(self.trained_on, np.uint64),
        }
        for name in ("caption_images", "whole", "general"):
            if getattr(self, name) is not None:
                arrays[name] = getattr(self, name)
        for direction, known in self.known.items():
            arrays |= {f"known_{direction}_{name}": x for name, x in known.to_arrays().items()}
        if self.bank is not None:
            names = [field.name for field in dataclasses.fields(self.bank)]
            arrays |= {f"bank_{name}": getattr(self.bank, name) for name in names}
        # Its ceiling beside it: working it out takes a question as long as being answered.
        fits = {
            direction: pack(dataclasses.replace(one, most=one.ceiling))
            for direction, one in self.fits.items()
        }
        facts = {"version": VERSION, "measure": self.measure, "source": self.source, "fits": fits}
        with atomic(Path(path)) as temporary, temporary.open("wb") as file:
            np.savez(file, facts=np.array(json.dumps(facts).encode()), **arrays)

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote; an InputError says what is wrong with a file."""
        arrays = read_arrays(path)
        try:
            facts = json.loads(arrays.pop("facts").item())
            if facts["version"] not in range(1, VERSION + 1):
                raise InputError(
                    f"{path}: expected version {VERSION} of probes; found {facts['version']!r}"
                )
            sides = [
                {name: arrays.pop(f"{side}_{name}") for name in KEYS if f"{side}_{name}" in arrays}
                for side in ("images", "captions")
            ]
            fits = {} if facts["version"] < FITS else facts["fits"]  # other numbers before
            fits = {name: {"strangers": None, **one} for name, one in fits.items()}
            known = {}
            for direction in DIRECTIONS:
                prefix = f"known_{direction}_"
                own = {n.removeprefix(prefix): x for n, x in arrays.items() if n.startswith(prefix)}
                if own:
                    known[direction] = KnownQueries.of_arrays(own)
            own = {n.removeprefix("bank_"): x for n, x in arrays.items() if n.startswith("bank_")}
            return cls.of(
                *sides,
                arrays["image_labels"],
                arrays["caption_labels"],
                arrays.get("caption_images"),
                measure=facts["measure"],
                known=known,
                fits=unpack(dict[str, Fits], fits),
                bank=Bank(**own) if own else None,
                trained_on=arrays["trained_on"],
                source=str(facts["source"]),
                whole=arrays.get("whole"),
                general=arrays.get("general"),
            )
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"{path}: holds no probes: {reason}") from error


def _halved(embedding):
    """As float16, where no number is too large for it."""
    arrays = parts_of(embedding)
    largest = np.finfo(np.float16).max
    rows = [len(values) for values in arrays.values()]
    if len(set(rows)) > 1:
        raise ValueError(f"probes must be arrays with as many rows each; received {rows} rows")
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise ValueError(f"probes must hold finite numbers; {name!r} has NaN or infinities")
        if name == "mask" or values.dtype == np.float16:
            continue
        if np.abs(values).max(initial=0.0) <= largest:
            arrays[name] = values.astype(np.float16)
    return arrays


def contents_hash(path: str | os.PathLike) -> int:
    """A number of 64 bits that tells a file's contents from others'."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8))
    return int.from_bytes(digest.digest(), "big")
