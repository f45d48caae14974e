"""Questions of four kinds out of captions: with an answer, without, said otherwise, of nothing."""

import numpy as np

from zoo.confidence.words import FUNCTION_WORDS

KINDS = ("answerable", "removed", "paraphrased", "unknown words")
ANSWERABLE, REMOVED, PARAPHRASED, UNKNOWN = KINDS
# Words that may stand for one another in a caption of a photo or of a bird.
_SAME = (
    "small little tiny",
    "large big huge",
    "grey gray",
    "man guy",
    "woman lady",
    "child kid",
    "children kids",
    "boy lad",
    "dog hound",
    "dogs hounds",
    "people persons",
    "bike bicycle",
    "ball sphere",
    "street road",
    "grass lawn",
    "sits perches",
    "sitting seated",
    "running sprinting",
    "runs races",
    "jumping leaping",
    "jumps leaps",
    "photo picture",
    "bill beak",
    "belly underside",
    "head crown",
    "breast chest",
    "wing pinion",
    "wings pinions",
    "colored coloured",
    "has shows",
    "with having",
    "near beside",
    "yellow golden",
    "red crimson",
    "brown tan",
)
_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "pl", "str")
_VOWELS = ("a", "e", "i", "o", "u", "oo")
_ENDS = ("", "b", "g", "k", "l", "m", "n", "x", "zz", "nk")


def paraphrased(text, rng):
    """The caption in other words: each word that has one by another, and its halves exchanged.

    Args:
        text: a caption.
        rng: a NumPy generator.
    """
    words = [_another(word, rng) for word in text.lower().strip(" .").split()]
    places = [i for i in range(2, len(words) - 2) if words[i] == "and"]
    if places:
        at = places[rng.integers(len(places))]
        words = [*words[at + 1 :], "and", *words[:at]]
    else:
        words = ["this", "shows", *words]
    return " ".join(words)


def of_unknown_words(text, rng):
    """The caption with every word that names something replaced by one that does not exist."""
    words = text.lower().strip(" .").split()
    return " ".join(word if word in FUNCTION_WORDS else _invented(rng) for word in words)


def _another(word, rng):
    for group in _GROUPS:
        if word in group:
            others = [one for one in group if one != word]
            return others[rng.integers(len(others))]
    return word


def _invented(rng):
    count = rng.integers(2, 4)
    parts = (str(rng.choice(part)) for _ in range(count) for part in (_ONSETS, _VOWELS, _ENDS))
    return "".join(parts)


_GROUPS = [tuple(line.split()) for line in _SAME]


def rows_of(captions, caption_image, count, seed=0):
    """Which captions are asked: spread over the images, at most `count`.

    Args:
        captions: M strings.
        caption_image: `(M,)`, the row of each caption's image.
        count: how many.
        seed: of the draw.

    Returns:
        `(count,)` rows of captions.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(captions))
    images = np.asarray(caption_image)[order]
    # The first of every image, then the second of every image, and so on.
    by_image = np.argsort(images, kind="stable")
    sorted_images = images[by_image]
    turn = np.arange(len(order)) - np.searchsorted(sorted_images, sorted_images, side="left")
    return np.sort(order[by_image[np.argsort(turn, kind="stable")]][:count])
