"""Numbers that flags take: what may be given is declared at the flag, and refused there."""

import argparse
import math
from collections.abc import Callable

_LARGEST = 2**63 - 1


def number(least: float, most: float) -> Callable[[str], float]:
    """A `type` of argparse: numbers above `least`, up to `most`."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least < value <= most:
            raise argparse.ArgumentTypeError(
                f"expected a number above {least:g}, at most {most:g}; received {text[:40]!r}"
            )
        return value

    return parse


def whole_number(least: int = 1, most: int = _LARGEST) -> Callable[[str], int]:
    """A `type` of argparse: whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        bounds = f"from {least}" if most == _LARGEST else f"from {least} to {most}"
        try:
            number = int(text)
        except ValueError:  # also of thousands of digits
            number = None
        if number is None or not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"expected a whole number {bounds}; received {text[:40]!r}"
            )
        return number

    return parse
