"""What a toy bird looks like: its attributes, and the species that combine them."""

import numpy as np

COLOURS = {
    "black": (38, 38, 42), "white": (244, 244, 238), "grey": (143, 148, 155),
    "brown": (128, 82, 46), "red": (206, 42, 42), "orange": (241, 132, 34),
    "yellow": (247, 216, 56), "green": (72, 152, 66), "blue": (54, 108, 204),
    "pink": (240, 150, 165),
}  # fmt: skip

# Skewed on purpose: naming brown wings says little, naming a green crown says much, so that the
# number of images a caption fits varies widely.
_UPPER = {
    "brown": 0.20, "grey": 0.17, "black": 0.17, "white": 0.09, "blue": 0.10, "red": 0.08,
    "yellow": 0.08, "green": 0.06, "orange": 0.05,
}  # fmt: skip
_LOWER = {
    "white": 0.24, "yellow": 0.15, "grey": 0.14, "brown": 0.13, "red": 0.10, "orange": 0.08,
    "black": 0.08, "blue": 0.05, "green": 0.03,
}  # fmt: skip

ATTRIBUTES = {
    "crown": _UPPER,
    "back": _UPPER,
    "wing": _UPPER,
    "tail": _UPPER,
    "breast": _LOWER,
    "belly": _LOWER,
    "bill_colour": {"black": 0.4, "grey": 0.2, "orange": 0.2, "yellow": 0.2},
    "bill_length": {"short": 0.6, "long": 0.4},
    "bill_shape": {"straight": 0.45, "curved": 0.25, "thick": 0.3},
    "size": {"small": 0.4, "medium": 0.25, "large": 0.35},
    "tail_length": {"short": 0.55, "long": 0.45},
    "wing_bars": {"no": 0.6, "white": 0.25, "yellow": 0.15},
    "eye_ring": {"no": 0.55, "white": 0.3, "yellow": 0.15},
    "breast_pattern": {"plain": 0.55, "streaked": 0.25, "spotted": 0.2},
    "crest": {"no": 0.7, "yes": 0.3},
    "legs": {"black": 0.4, "orange": 0.3, "pink": 0.3},
}
NAMES = tuple(ATTRIBUTES)
_VALUES = {name: tuple(weights) for name, weights in ATTRIBUTES.items()}

# Which part of the drawing shows an attribute, and how much of it must be seen to tell.
SHOWN_BY = {
    "crown": ("crown", 0.4), "back": ("back", 0.4), "wing": ("wing", 0.4),
    "tail": ("tail", 0.4), "breast": ("breast", 0.4), "belly": ("belly", 0.4),
    "bill_colour": ("bill", 0.4), "bill_length": ("bill", 0.8), "bill_shape": ("bill", 0.7),
    "size": ("bird", 0.55), "tail_length": ("tail", 0.75), "wing_bars": ("wing", 0.6),
    "eye_ring": ("eye", 0.8), "breast_pattern": ("breast", 0.6), "crest": ("crown", 0.7),
    "legs": ("legs", 0.5),
}  # fmt: skip
# In the dusk, when colours fade, only these can still be told.
SHAPES = frozenset(("bill_length", "bill_shape", "size", "tail_length", "breast_pattern", "crest"))
# An individual may differ from its species in one of these.
_VARIABLE = ("size", "wing_bars", "eye_ring", "breast_pattern", "crest", "legs", "bill_colour")

_FAMILIES = {
    ("short", "straight"): ("Warbler", "Vireo", "Wren", "Flycatcher"),
    ("short", "curved"): ("Parakeet", "Kestrel", "Lorikeet"),
    ("short", "thick"): ("Finch", "Sparrow", "Bunting", "Grosbeak"),
    ("long", "straight"): ("Kingfisher", "Woodpecker", "Starling"),
    ("long", "curved"): ("Thrasher", "Curlew", "Creeper"),
    ("long", "thick"): ("Raven", "Toucan", "Hornbill"),
}


def sample_species(rng, count, others=()):
    """`others` and `count` more attribute dicts, any two of which differ in four attributes."""
    species = list(others)
    while len(species) < count + len(others):
        bird = _sample(rng)
        if all(_distance(bird, other) >= 4 for other in species):
            species.append(bird)
    return species


def individual(rng, species):
    """One bird of a species: now and then an attribute is not the species' own."""
    bird = dict(species)
    if rng.random() < 0.15:
        name = _VARIABLE[rng.integers(len(_VARIABLE))]
        others = [v for v in _VALUES[name] if v != bird[name] and not _invisible({**bird, name: v})]
        bird[name] = others[rng.integers(len(others))]
    return bird


def species_names(rng, species, taken=()):
    """Distinct English-looking names, such as `Blue_crowned_Finch`, none of those `taken`."""
    names = list(taken)
    for bird in species:
        families = _FAMILIES[bird["bill_length"], bird["bill_shape"]]
        family = families[rng.integers(len(families))]
        parts = rng.permutation(["crown", "wing", "back", "breast", "belly", "tail"])
        adjective = {"crown": "crowned", "wing": "winged", "back": "backed", "tail": "tailed"} | {
            "breast": "breasted",
            "belly": "bellied",
        }
        options = [f"{bird[p].title()}_{adjective[p]}_{family}" for p in parts]
        options += [f"{size}_{name}" for size in ("Lesser", "Greater") for name in options]
        options += [f"{name}_{number}" for number in range(2, 999) for name in options[:1]]
        names.append(next(name for name in options if name not in names))
    return names[len(taken) :]


def codes(bird):
    """The attributes as a row of small integers, in the order of `NAMES`."""
    return [_VALUES[name].index(bird[name]) for name in NAMES]


def decode(row):
    """The attribute dict behind a row of `codes`."""
    return {name: _VALUES[name][code] for name, code in zip(NAMES, row, strict=True)}


def held_out(rng, species, count):
    """Indices of `count` species whose every attribute value others show too."""
    table = np.array([codes(bird) for bird in species])
    best, best_missing = None, None
    for _ in range(200):
        order = rng.permutation(len(species))
        unseen, seen = table[order[:count]], table[order[count:]]
        missing = sum(
            len(set(unseen[:, column]) - set(seen[:, column])) for column in range(table.shape[1])
        )
        if best is None or missing < best_missing:
            best, best_missing = order[:count], missing
        if not missing:
            break
    return sorted(int(index) for index in best)


def _sample(rng):
    """A random bird, the value of each attribute by its name; neighbouring parts share colours."""
    while True:
        bird = {
            name: _VALUES[name][rng.choice(len(weights), p=_normalised(weights))]
            for name, weights in ATTRIBUTES.items()
        }
        # Real birds are not patchworks: neighbouring parts often share a colour.
        if rng.random() < 0.35:
            bird["wing"] = bird["back"]
        if rng.random() < 0.35:
            bird["tail"] = bird["wing"]
        if rng.random() < 0.35:
            bird["belly"] = bird["breast"]
        if not _invisible(bird):
            return bird


def _invisible(bird):
    """Whether wing bars or eye ring have the colour of what they lie on."""
    return bird["wing_bars"] == bird["wing"] or bird["eye_ring"] == bird["crown"]


def _normalised(weights):
    """The weights of a dict as probabilities that sum to 1."""
    values = np.array(list(weights.values()))
    return values / values.sum()


def _distance(first, second):
    """The number of attributes in which two birds differ."""
    return sum(first[name] != second[name] for name in NAMES)


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
    """The phrases of a caption in random order, each a noun with its named attributes."""
    parts = [
        _one_of(rng, nouns).format(" ".join(_spell(rng, bird, a) for a in values if a in named))
        for nouns, values in _NOUNS
        if named.intersection(values)
    ]
    return [parts[index] for index in rng.permutation(len(parts))]


def _sorted(named):
    return [name for name in NAMES if name in named]


def _clean(text):
    return text.replace("  ", " ").replace("a orange", "an orange")


def _spell(rng, bird, name):
    """The word for an attribute's value in a caption; one of its spellings at random."""
    value = bird[name]
    grey = ("grey", "gray")
    return _one_of(rng, grey if value == "grey" else _SPELLINGS.get((name, value), (value,)))


def _one_of(rng, options):
    return options[rng.integers(len(options))]
