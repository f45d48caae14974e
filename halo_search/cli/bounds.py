"""What the number of a flag may be, by its kind; looked at before anything is imported for it."""

import math
from typing import Any, NamedTuple

LARGEST = 2**31 - 1  # what TensorFlow counts to


class Bounds(NamedTuple):
    """An interval of finite numbers, described by `words` in errors; `above` leaves out `low`
    itself."""

    low: float
    high: float
    words: str
    above: bool = False

    def holds(self, value: float) -> bool:
        """Whether a number is in it. NaN is in none."""
        if not math.isfinite(value) or not value <= self.high:
            return False
        return value > self.low if self.above else value >= self.low


INFINITE = float("inf")


BOUNDS = {
    "size": Bounds(1, LARGEST, "a whole number of at least 1"),
    "count": Bounds(0, LARGEST, "a whole number of at least 0"),
    "share": Bounds(0, 1, "a share from 0 to 1"),
    "rate": Bounds(0, INFINITE, "a finite number of at least 0"),
    "positive": Bounds(0, INFINITE, "a finite number above 0", above=True),
    "signed": Bounds(-INFINITE, INFINITE, "a finite number"),
}


def check(flag: str, value: Any, kind: str) -> None:
    """Raises ValueError, naming the flag, unless a number, or each of several, is one of a kind;
    what is no number is fine."""
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            continue
        bounds = BOUNDS[kind]
        if not bounds.holds(number):
            words = f"at most {LARGEST}" if bounds.high == LARGEST < number else bounds.words
            raise ValueError(f"{flag} must be {words}; received {number}")
