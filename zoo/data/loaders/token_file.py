"""Flickr8k's and Flickr30k's own files of captions: tokens, and Kaggle's table of comments."""

import re

from zoo.data.loaders.own_rows import Row
from zoo.files.text_files import read_lines

# Files beside `Flickr8k.token.txt` that list the pictures of a split.
_LISTS = {
    "train": "Flickr_8k.trainImages.txt",
    "validation": "Flickr_8k.devImages.txt",
    "test": "Flickr_8k.testImages.txt",
}


def token_captions(path, problems):
    """Yields `(line, name of the picture, caption)` of `name.jpg#0<tab>caption`.

    Args:
        path: of the file.
        problems: a `Problems`, which is told of other lines.
    """
    for line, text in enumerate(read_lines(path), start=1):
        key, tab, caption = text.partition("\t")
        name, mark, number = key.partition("#")
        if not tab or not mark or not number.isdigit():
            why = f"expected 'name.jpg#number<tab>caption', found {text[:60]!r}"
            problems.bad("bad lines", f"{path}:{line}", why)
            continue
        yield line, name, caption


def token_rows(path, problems):
    """The `Row`s of a token file, with the splits of Flickr8k where its lists lie beside it.

    A picture that is in no list is left out: Flickr8k has 91 of these.
    """
    lists = {split: path.with_name(name) for split, name in _LISTS.items()}
    splits = {
        name.strip(): split
        for split, file in lists.items()
        if file.is_file()
        for name in read_lines(file)
        if name.strip()
    }
    for line, name, caption in token_captions(path, problems):
        if splits and name not in splits:
            problems.missing("photos of no split", name)
            continue
        yield Row(f"{path}:{line}", name, [caption], splits.get(name))


def comment_rows(path, problems):
    """The `Row`s of Kaggle's Flickr30k, `image_name| comment_number| comment`.

    One of its lines lacks the second separator: a number and white space stand in for it.
    """
    for line, text in enumerate(read_lines(path)[1:], start=2):
        found = re.fullmatch(r"([^|]+)\|\s*\d+\s*(?:\||\s)\s*(.*)", text)
        if text.strip() and found is None:
            why = f"expected 'name.jpg| number| caption', found {text[:60]!r}"
            problems.bad("bad lines", f"{path}:{line}", why)
        elif found is not None:
            yield Row(f"{path}:{line}", found[1].strip(), [found[2]], None)
