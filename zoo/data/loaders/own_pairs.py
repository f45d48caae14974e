"""Pictures and captions of one's own, in any of the layouts that people have."""

import os
from pathlib import Path

import numpy as np

from zoo.data.loaders.captioned import line_of, read_layout
from zoo.data.loaders.gather import gather
from zoo.data.loaders.layouts import other_tables, recognised
from zoo.data.records import Loaded, Problems, Records
from zoo.errors import InputError

MOST_HELD_OUT = 5000  # images of a split that nobody has named


def load(
    table: str | os.PathLike,
    images: str | os.PathLike | None = None,
    image_column: str = "image",
    caption_column: str = "caption",
    image_size: int = 224,
    skip_bad: bool = False,
    missing: str = "skip",
    verbose: bool = True,
    separator: str | None = None,
) -> Loaded:
    """Reads image paths and captions: a table, or a folder in any layout that is recognised.

    ```
    image,caption
    holiday/beach.jpg,two children build a castle
    holiday/beach.jpg,a castle of sand
    ```

    An image may have several rows; a caption that an image has already is left out and reported.
    In JSON Lines, `{"image": …, "caption": …}`, a caption may also be a list of strings. The
    layouts: `captioned_folder`.

    Args:
        table: the file, `.csv` and `.tsv` with a first line that names the columns; or the folder.
        images: the folder that the paths are relative to; None: the table's own, or one below it
            that has the first pictures of the table.
        image_column: name of the column, or key, of the path; of a `datasets` folder, of the
            pictures.
        caption_column: name of the column, or key, of the caption.
        image_size: height and width of the images in the dataset.
        skip_bad: leave out what is bad, and count it, instead of raising.
        missing: what to do about missing photos: `"skip"` reports them and continues,
            `"error"` raises.
        verbose: print one line with the counts.
        separator: between the fields of a table: one character, or `"tab"`; by default a comma in
            `.csv` and a tab in `.tsv`. Where it is a tab, quotes are a part of the text.

    Returns:
        A `Loaded` tuple `(records, dataset)`, every image a class of its own; its id is its path
        as the table has it first, relative to the folder of the images.

    Raises:
        ValueError: if `missing` is unknown.
        InputError: if something is not there or not what it has to be, with file and line.
    """
    problems = Problems(skip_bad)
    layout = recognised(table, images, (image_column, caption_column), separator)
    listed, _ = read_layout(layout, problems, caption_column)
    return gather(layout.source.name, listed, layout.images, image_size, problems, missing, verbose)


def load_split(
    root: str | os.PathLike,
    split: str,
    held_out_share: float = 0.1,
    seed: int = 0,
    skip_bad: bool = False,
    image_column: str = "image",
    caption_column: str = "caption",
    separator: str | None = None,
    images: str | os.PathLike | None = None,
) -> Records:
    """The records of one split of a folder of one's own.

    What the table's column `split` says holds. Where there is no such column, a share of the
    images is drawn for validation and for the test each, up to 5,000; where it names only one of
    the two, the other is drawn out of the training images.

    Args:
        root: a folder in a layout of `captioned_folder`, or the table in it.
        split: `"train"`, `"validation"` or `"test"`.
        held_out_share: of the images, for validation and for the test each, in (0, 0.5).
        seed: of the draw.
        skip_bad: see `load`; a photo that is not there is bad.
        image_column, caption_column, separator, images: see `load`.

    Returns:
        `Records`.

    Raises:
        InputError: as `load`, if there is no such folder, a split has no image, or the share is
            out of range.
    """
    root = Path(root).expanduser()
    if not root.exists():
        raise InputError(f"{root}: no such folder")
    if not isinstance(held_out_share, int | float) or not 0 < held_out_share < 0.5:
        raise InputError(f"data: `held_out_share` must be in (0, 0.5); received {held_out_share}")
    problems = Problems(skip_bad)
    layout = recognised(root, images, (image_column, caption_column), separator)
    source, folder = layout.source, layout.images
    for other in other_tables(root):
        problems.missing("other tables", other, f"{source.name} is read")
    listed, splits = read_layout(layout, problems, caption_column)
    if split == "train":  # once for all splits
        count = sum(len(record.captions) for record in listed)
        print(line_of(root, layout, len(listed), count))
    if skip_bad:  # before the division, so that it is of the photos that are there
        there = [os.path.isfile(folder / record.files[0]) for record in listed]
        for record, found in zip(listed, there, strict=True):
            if not found:
                problems.missing("missing photos", folder / record.files[0])
        listed = [record for record, found in zip(listed, there, strict=True) if found]
        splits = [split for split, found in zip(splits, there, strict=True) if found]
    divided = _divide(splits, held_out_share, seed)
    empty = [name for name, images in divided.items() if not len(images)]
    if empty:
        raise InputError(
            f"{source}: expected three images at least, one for validation and one for the test; "
            f"found {len(listed)} with captions, and none for {', '.join(empty)}"
        )
    own = Problems(skip_bad)
    if split == "train":  # what is wrong with rows is said once
        own.skipped = problems.skipped
    name = f"{source.name} {split}"
    missing = "skip" if skip_bad else "error"
    return gather(name, [listed[i] for i in divided[split]], folder, 224, own, missing).records


def _divide(splits, share, seed):
    """The indices of the images of each split."""
    named = {
        name: [index for index, split in enumerate(splits) if split == name]
        for name in ("train", "validation", "test")
    }
    free = named["train"] + [index for index, split in enumerate(splits) if split is None]
    order = np.random.default_rng(seed).permutation(sorted(free))
    count = min(MOST_HELD_OUT, max(1, int(share * len(splits) + 1e-9)))
    for name in ("test", "validation"):
        if not named[name]:
            named[name], order = order[:count], order[count:]
    return {**named, "train": order}
