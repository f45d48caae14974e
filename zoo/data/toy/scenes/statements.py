"""Captions of a scene, each with the statement that it makes, so that its truth is known."""

from typing import Any, NamedTuple

from zoo.data.toy.birds.wording import choose, enumerate_words, mention

CAPTIONS_PER_IMAGE = 5

# From what fits a third of all scenes to what fits one.
_KINDS = {"count": 0.12, "one": 0.3, "several": 0.28, "counted": 0.15, "beside": 0.15}
_NUMBERS = ("a single", "two", "three")
_VAGUE = (
    "{} on {}.",
    "there {} {} in the picture.",
    "a picture of {}.",
    "{} sitting on {}.",
)
_OPENINGS = ("", "", "there is ", "the picture shows ")


class Statement(NamedTuple):
    """What a caption says about a scene.

    Attributes:
        birds: for each bird that it mentions a dict of the attributes it names; different
            mentions mean different birds.
        count: the number of birds that it claims, or None.
        ordered: whether each bird it mentions is left of the next one.
    """

    birds: tuple[dict[str, str], ...]
    count: int | None = None
    ordered: bool = False

    def as_json(self):
        """A JSON value, which `Statement.from_json` reads."""
        return {"birds": list(self.birds), "count": self.count, "ordered": self.ordered}

    @classmethod
    def from_json(cls, value: dict[str, Any]):
        return cls(tuple(value["birds"]), value["count"], value["ordered"])


def describe_scene(rng, birds):
    """One caption.

    Args:
        rng: a NumPy generator.
        birds: the scene's, from left to right.

    Returns:
        `(caption, statement)`.
    """
    kinds = [kind for kind in _KINDS if len(birds) > 1 or kind in ("count", "one")]
    weights = [_KINDS[kind] for kind in kinds]
    kind = kinds[rng.choice(len(kinds), p=[w / sum(weights) for w in weights])]
    number = f"{_NUMBERS[len(birds) - 1]} bird{'s' * (len(birds) > 1)}"
    if kind == "count":
        branch = "a branch" if len(birds) == 1 else "branches"
        verb = "is" if len(birds) == 1 else "are"
        form = _VAGUE[rng.integers(len(_VAGUE))]
        words = (verb, number) if form.startswith("there") else (number, branch)
        return form.format(*words), Statement((), len(birds))
    if kind == "one":
        told = [int(rng.integers(len(birds)))]
    elif kind == "beside":
        told = sorted(rng.choice(len(birds), 2, replace=False))
    else:
        told = list(rng.permutation(len(birds)))
    named = [choose(rng, birds[i].attributes, birds[i].visible) for i in told]
    phrases = [
        mention(rng, birds[i].attributes, names) for i, names in zip(told, named, strict=True)
    ]
    said = tuple(
        {name: birds[i].attributes[name] for name in sorted(names)}
        for i, names in zip(told, named, strict=True)
    )
    if kind == "beside":
        if rng.random() < 0.5:
            return f"{phrases[0]} to the left of {phrases[1]}.", Statement(said, None, True)
        return f"{phrases[1]} to the right of {phrases[0]}.", Statement(said, None, True)
    if kind == "counted":
        return f"{number}, {enumerate_words(phrases)}.", Statement(said, len(birds))
    opening = _OPENINGS[rng.integers(len(_OPENINGS))]
    return f"{opening}{enumerate_words(phrases)}.", Statement(said)
