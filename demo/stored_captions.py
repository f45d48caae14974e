"""Labels by which a visitor chooses captions of stored vectors."""

import numpy as np

from demo.limits import MAX_CHARACTERS, MAX_WORDS

_MOST_LISTED = 2000  # captions that the page holds to choose from
_ROOM = 40  # characters of a label for its row


def listed(labels):
    """`(choices, what to do)` of captions: all, or as many evenly as a page can hold."""
    if len(labels) <= _MOST_LISTED:
        return list(labels), "Choose a caption"
    rows = np.linspace(0, len(labels) - 1, _MOST_LISTED).round().astype(int)
    return [labels[row] for row in rows], (
        f"Choose a caption; {len(labels) - _MOST_LISTED:,} others can be typed in full"
    )


def labels_of(texts, ids):
    """Texts as a person can ask for them: on one line, short enough, and no two alike."""
    taken, labels = set(), []
    for text, row in zip(texts, ids, strict=True):
        words = "".join(c if c.isprintable() else " " for c in text).split()
        label = " ".join(words)
        if not any(c.isalnum() for c in label):
            label = f"caption {row}"
        elif len(words) > MAX_WORDS or len(label) > MAX_CHARACTERS:
            label = " ".join(words[: MAX_WORDS - 3])[: MAX_CHARACTERS - _ROOM].rstrip() + " …"
        while label in taken:
            label = f"{label} (row {row})"
        taken.add(label)
        labels.append(label)
    return labels
