"""What an uncertainty means: where it lies among the gallery's."""

import numpy as np

SYMBOLS = {
    "log_det": "log det Σ",
    "geometric_mean": "σ",
    "total_variance": "tr Σ",
    "circular_variance": "circular variance",
}
# The power of a measure that is a standard deviation.
OF_SIGMA = {"geometric_mean": 1.0, "total_variance": 0.5}


class Reference:
    """The uncertainties of one side of the gallery, to read one more by.

    Args:
        values: `(N,)` uncertainties.
        measure: their name, see `zoo.embeddings.uncertainty`.
        side: `"images"` or `"captions"`.
    """

    def __init__(self, values, measure, side):
        self.values = np.asarray(values, np.float64)
        self._sorted = np.sort(self.values)
        self.measure, self.side = measure, side
        self.symbol = SYMBOLS[measure]

    def percentile(self, value):
        """Percent of the gallery's items that are more certain, equal ones counting half."""
        below = np.searchsorted(self._sorted, value, side="left")
        to = np.searchsorted(self._sorted, value, side="right")
        return 50.0 * float(below + to) / len(self._sorted)

    def value_at(self, percentile):
        """The uncertainty below which so many percent of the items lie."""
        return float(np.percentile(self._sorted, percentile))

    def span(self):
        """The range that bars are drawn over: nearly all items, without outliers."""
        return self.value_at(0.5), self.value_at(99.5)

    def sentence(self, value):
        """What the uncertainty of a query of this side says, in words with numbers."""
        share = self.percentile(value)
        # The ends of the scale are said in words: "more certain than 100 %" is not a sentence.
        if share < 0.5:
            place = "more certain than nearly all"
        elif share > 99.5:
            place = "less certain than nearly all"
        else:
            place = f"less certain than {share:.0f} %"
        items = f"{len(self.values):,} {self.side}"
        return f"{self.symbol} = {number(value)}: {place} of the gallery's {items}."


def number(value):
    """An uncertainty or a similarity with a true minus sign, three significant digits or so."""
    value = float(value)
    text = f"{value:.1f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")
    return text.replace("-", "−")
