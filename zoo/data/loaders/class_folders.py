"""Pictures in a folder for each class, as ImageNet has them: for zero-shot classification."""

import os
from collections.abc import Sequence
from pathlib import Path

from zoo.data.pipeline.batches import image_batches
from zoo.data.records import Loaded, Problems, Records
from zoo.data.records.sources import Pictures
from zoo.errors import InputError
from zoo.files.decoding import SUFFIXES, check_images
from zoo.files.folders import UNPRINTABLE, is_hidden, printable
from zoo.files.text_files import existing_folder, read_lines


def load(
    root: str | os.PathLike,
    class_names: Sequence[str] | None = None,
    image_size: int = 224,
    skip_bad: bool = False,
    verbose: bool = True,
) -> Loaded:
    """Reads `root/CLASS/PICTURE.jpg`.

    Args:
        root: the folder of the class folders.
        class_names: a file that says what the folders mean, lines of `FOLDER name, other name`
            such as ImageNet's `LOC_synset_mapping.txt`; the first name is taken. None: the
            folders' names, with underscores as spaces.
        image_size: height and width of the images in the dataset.
        skip_bad: leave out what is bad, and count it, instead of raising.
        verbose: print one line with the counts.

    Returns:
        A `Loaded` tuple `(records, dataset)`. The records have no captions; labels follow the
        folders in alphabetical order. The dataset yields one picture an element: `images`
        `(image_size, image_size, 3)` float32 in 0 … 255 and `image_labels` int32.

    Raises:
        InputError: if something is not there or not what it has to be.
    """
    root = existing_folder(root, "data folder")
    problems = Problems(skip_bad)
    folders = sorted(
        entry for entry in root.iterdir() if entry.is_dir() and not is_hidden(entry.name)
    )
    names = _names(class_names, problems) if class_names is not None else {}
    paths, labels, kept = [], [], []
    for folder in folders:
        own = sorted(
            path
            for path in folder.iterdir()
            if path.suffix.lower() in SUFFIXES and not is_hidden(path.name)
        )
        if class_names is not None and folder.name not in names:
            problems.bad("unknown classes", folder, f"a class that {class_names} does not list")
        elif not own:
            problems.bad("classes without images", folder, "no picture in it")
        else:
            labels += [len(kept)] * len(own)
            paths += own
            kept.append(names.get(folder.name, folder.name.replace("_", " ")))
    good = []
    for path, label, why in zip(paths, labels, check_images(paths), strict=True):
        if printable(str(path)) != str(path):
            problems.bad("unsafe file names", printable(str(path)), UNPRINTABLE)
        elif why is None:
            good.append((str(path), label))
        else:
            problems.bad("bad images", path, why)
    if not good:
        raise InputError(f"{root}: no picture in a class folder is left to use")
    records = Records(
        name=root.name,
        image_paths=[path for path, _ in good],
        captions=[],
        caption_image=[],
        image_labels=[label for _, label in good],
        image_ids=[str(Path(path).relative_to(root)) for path, _ in good],
        class_names=tuple(kept),
        skipped=tuple(problems.skipped),
    )
    if verbose:
        print(records.summary())
    source = Pictures(records, image_size, cache=False)
    return Loaded(records, lambda: image_batches(records, source, 1).unbatch())


def _names(path, problems):
    names = {}
    for line, text in enumerate(read_lines(path), start=1):
        folder, _, name = text.strip().partition(" ")
        name = name.split(",")[0].strip()
        if not folder:
            continue
        if not name:
            problems.bad("bad lines", f"{path}:{line}", f"expected 'FOLDER name', found {text!r}")
        elif folder in names:
            problems.bad("bad lines", f"{path}:{line}", f"{folder} occurs twice")
        else:
            names[folder] = name
    return names
