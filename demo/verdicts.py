"""How sure an answer is, in words: a frequency that people can picture, then what follows of it."""

import math
from fractions import Fraction

LIKELY, SURE = 0.5, 0.8
_WORDS = {"sure": "Sure", "likely": "Likely", "unsure": "Unsure"}
DECLINED = {
    "unsure": "I would rather not guess",
    "absent": "Nothing here looks like that",
    "unknown": "I do not know such questions",
}


def frequency(probability):
    """A probability as a number of such questions: "about 3 in 10"."""
    if probability < 0.025:
        return "hardly any"
    if probability < 0.075:
        return "about 1 in 20"
    if probability < 0.15:
        return "about 1 in 10"
    if probability >= 0.95:
        return "nearly all"
    return f"about {math.floor(10 * probability + 0.5)} in 10"


def share(risk):
    """A share of answers as a small fraction: 0.2 is "1 in 5"."""
    fraction = Fraction(risk).limit_denominator(10)
    return f"{fraction.numerator} in {fraction.denominator}"


def level(probability):
    """The one word of an answer that is given."""
    name = "sure" if probability >= SURE else "likely" if probability >= LIKELY else "unsure"
    return _WORDS[name]


def sentence(judgement, side, noun):
    """The sentence that stands first and large.

    Args:
        judgement: a `Judgement`.
        side: what was asked with, `"captions"` or `"images"`.
        noun: what the gallery's pictures show, such as "bird".
    """
    if judgement.kind == "absent":
        return f"{DECLINED['absent']}."
    if judgement.kind == "unknown":
        return f"{DECLINED['unknown']}."
    if judgement.probability is None:
        asked = "questions" if side == "captions" else "pictures"
        return f"How often such {asked} find the right answer is not known here."
    often = frequency(judgement.probability)
    if side == "captions":
        text = f"{often} such questions find the right {noun} first."
    else:
        text = f"{often} such pictures find a right caption first."
    return text[0].upper() + text[1:]
