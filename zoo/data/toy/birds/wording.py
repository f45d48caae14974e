"""Captions of a toy bird: each names a random subset of what can be seen of it."""

from zoo.data.toy.birds.attributes import NAMES

CAPTIONS_PER_IMAGE = 10

# A noun, its spellings, and the attributes that are its adjectives, in English order.
_NOUNS = (
    (("a {} crown", "a {} head", "a {} cap"), ("crown",)),
    (("a {} back", "{} feathers on its back"), ("back",)),
    (("{} wings", "{} wings", "a {} wing"), ("wing",)),
    (("a {} tail", "a {} tail", "{} tail feathers"), ("tail_length", "tail")),
    (("a {} breast", "a {} chest"), ("breast_pattern", "breast")),
    (("a {} belly", "a {} abdomen"), ("belly",)),
    (("a {} bill", "a {} beak"), ("bill_length", "bill_shape", "bill_colour")),
    (("{} wing bars", "two {} wing bars"), ("wing_bars",)),
    (("a {} eye ring", "a {} ring around its eye"), ("eye_ring",)),
    (("{} legs", "{} feet"), ("legs",)),
    (("a crest", "a crested head"), ("crest",)),
)
_SENTENCES = (
    "this {size} bird has {parts}.",
    "a {size} bird with {parts}.",
    "this is a {size} bird with {parts}.",
    "the {size} bird has {parts}.",
    "a {size} bird that has {parts}",
    "this {size} bird shows {parts}.",
)
_SPELLINGS = {
    ("size", "small"): ("small", "tiny", "little"),
    ("size", "medium"): ("medium sized",),
    ("size", "large"): ("large", "big"),
    ("bill_shape", "thick"): ("thick", "stout"),
    ("bill_shape", "straight"): ("straight", "pointed"),
    ("breast_pattern", "spotted"): ("spotted", "speckled"),
}
# Weights of naming 1, 2, 3 … attributes: from hopelessly vague to exact.
_HOW_MANY = (0.2, 0.19, 0.17, 0.13, 0.1, 0.08, 0.06, 0.04, 0.03)
_SALIENCE = {"crown": 1.5, "breast": 1.3, "belly": 1.3, "wing": 1.5, "size": 1.4}
_DULL = {"wing_bars": "no", "eye_ring": "no", "crest": "no", "breast_pattern": "plain"}


def describe(rng, bird, visible):
    """One caption of a bird, and the names of the attributes it gives, in the order of
    `attributes.NAMES`. Nobody describes what is not `visible` in the picture."""
    named = choose(rng, bird, visible)
    parts = _parts(rng, bird, named)
    size = _spell(rng, bird, "size") if "size" in named else ""
    sentence = _one_of(rng, _SENTENCES) if parts else "this is a {size} bird on a branch."
    return _clean(sentence.format(size=size, parts=enumerate_words(parts))), _sorted(named)


def mention(rng, bird, named):
    """A bird as a part of a longer sentence: `a small bird with a red crown and black wings`."""
    parts = _parts(rng, bird, named)
    size = _spell(rng, bird, "size") if "size" in named else ""
    return _clean(f"a {size} bird with {enumerate_words(parts)}" if parts else f"a {size} bird")


def choose(rng, bird, visible):
    """Which of the visible attributes somebody names."""
    # Absences (no crest) are not worth a word, as in real captions.
    names = [name for name in NAMES if name in visible and _DULL.get(name) != bird[name]]
    if not names:
        return set()
    weights = [_SALIENCE.get(name, 1.0) for name in names]
    how_many = min(1 + rng.choice(len(_HOW_MANY), p=_HOW_MANY), len(names))
    return set(rng.choice(names, how_many, False, [w / sum(weights) for w in weights]))


def enumerate_words(parts):
    """`x`, `x and y`, `x, y and z`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def _parts(rng, bird, named):
    parts = [
        _one_of(rng, nouns).format(" ".join(_spell(rng, bird, a) for a in own if a in named))
        for nouns, own in _NOUNS
        if named.intersection(own)
    ]
    return [parts[index] for index in rng.permutation(len(parts))]


def _sorted(named):
    return [name for name in NAMES if name in named]


def _clean(text):
    return text.replace("  ", " ").replace("a orange", "an orange")


def _spell(rng, bird, name):
    value = bird[name]
    grey = ("grey", "gray")
    return _one_of(rng, grey if value == "grey" else _SPELLINGS.get((name, value), (value,)))


def _one_of(rng, options):
    return options[rng.integers(len(options))]
