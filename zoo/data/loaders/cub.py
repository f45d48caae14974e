"""CUB-200-2011 with Reed's captions: the real set, a part of it, or Toy Birds."""

import json
import os
import re
import tarfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from halo_search.errors import InputError
from halo_search.files.decoding import check_images
from halo_search.files.text_files import (
    existing_folder,
    lines_of,
    read_lines,
    safe_relative,
    whole_number,
)
from zoo.data.pipeline import batches
from zoo.data.records import Loaded, Problems, Records

CAPTIONS_PER_IMAGE = 10


def load(
    root: str | os.PathLike,
    captions: str | os.PathLike | None = None,
    split: str = "trainval",
    image_size: int = 224,
    skip_bad: bool = False,
    verbose: bool = True,
) -> Loaded:
    """Reads one split of CUB-200-2011 with ten captions an image.

    Args:
        root: the folder `CUB_200_2011`, with `images.txt`, `classes.txt`,
            `image_class_labels.txt` and `images/`.
        captions: Reed's: a folder of `CLASS/IMAGE.txt` with ten lines each, or an archive of it. By
            default `text_c10` or `text_c10.tar.gz` in `root`.
        split: after Xian et al. (CVPR 2017), as in PCME. `"trainval"`: the 150 classes to train
            on, without `"seen_test"`, held-out images of them; `"test"`: the 50 unseen classes;
            `"train1"` … `"train3"`, `"val1"` … `"val3"`: three divisions of the 150 into 100 and
            50. By `splits_pcme_xian` in `root`, else by the real set's division, which the zoo has.
        image_size: height and width of the images in the dataset.
        skip_bad: leave out what is bad, and count it, instead of raising.
        verbose: print one line with the counts.

    Returns:
        A `Loaded` tuple `(records, dataset)` of one caption with its image an element, see
        `zoo.data.batches.pairs`.

    Raises:
        ValueError: if `split` is unknown.
        InputError: if something is absent, cannot be read, or is not what it has to be.

    Reference: Wah et al., "The Caltech-UCSD Birds-200-2011 Dataset"; Reed et al., "Learning Deep
        Representations of Fine-Grained Visual Descriptions" (CVPR 2016).
    """
    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {SPLITS}; received {split!r}")
    root = existing_folder(root, "data folder")
    problems = Problems(skip_bad)
    class_names = _read_classes(root)
    images = _read_images(root, class_names, problems)
    chosen, in_split = read_split(root, split, class_names, images, problems)
    numbers = _readable(root, class_names, images, in_split, chosen, problems)
    texts, recoded = _read_captions(root, captions, images, numbers, problems)
    numbers = [number for number in numbers if number in texts]
    if not numbers:
        raise InputError(f"{root}: no image of the split {split!r} is left to use")
    records = Records(
        name=f"{root.name} {split}",
        image_paths=[str(root / "images" / images[number][0]) for number in numbers],
        captions=[caption for number in numbers for caption in texts[number]],
        caption_image=[i for i, number in enumerate(numbers) for _ in texts[number]],
        image_labels=[images[number][1] for number in numbers],
        image_ids=numbers,
        class_names=class_names,
        skipped=tuple(problems.skipped),
        recoded=tuple(recoded),
    )
    if verbose:
        print(records.summary())
    return Loaded(records, lambda: batches.pairs(records, image_size))


def _read_classes(root):
    """The class names of `classes.txt`, in order. Raises InputError unless they are numbered from
    1."""
    path = root / "classes.txt"
    table = read_numbered(path)
    for position, (number, (line, _)) in enumerate(table.items(), start=1):
        if number != position:
            raise InputError(f"{path}:{line}: expected class {position}, found {number}")
    return tuple(name for _, name in table.values())


def _read_images(root, class_names, problems):
    """`{image number: (file name, label)}` of every image that the tables list."""
    names = read_numbered(root / "images.txt")
    path = root / "image_class_labels.txt"
    labels = read_numbered(path)
    images = {}
    for number, (line, name) in names.items():
        where = f"{root / 'images.txt'}:{line}"
        if not safe_relative(name):
            problems.bad("unsafe file names", where, f"{name!r} leads out of the data folder")
        elif number not in labels:
            problems.bad("images without class", where, f"image {number} has no line in {path}")
        else:
            line, label = labels[number]
            if not 1 <= (whole_number(label) or 0) <= len(class_names):
                problems.bad("unknown classes", f"{path}:{line}", f"unknown class {label!r}")
            else:
                images[number] = (name, int(label) - 1)
    return images


def _readable(root, class_names, images, in_split, chosen, problems):
    """The numbers of the split's photos that are there and whole; a class may be absent."""
    paths = {n: root / "images" / name for n, (name, label) in images.items() if label in chosen}
    # `Path.is_file` raises where a name is too long.
    there = {number for number, path in paths.items() if os.path.isfile(path)}
    for label in sorted(chosen - {images[number][1] for number in there}):
        problems.missing("missing classes", class_names[label])
    split_paths = sorted(filter(in_split, paths))
    for number in split_paths:
        if number not in there:
            problems.missing("missing photos", paths[number])
    numbers = [number for number in split_paths if number in there]
    faults = dict(zip(numbers, check_images([paths[n] for n in numbers]), strict=True))
    for number, why in faults.items():
        if why is not None:
            problems.bad("bad images", paths[number], why)
    return [number for number, why in faults.items() if why is None]


def _read_captions(root, captions, images, numbers, problems):
    """`(texts, recoded)`: ten captions by image number, and the files that were not UTF-8. A bad
    file is a problem."""
    texts, recoded = {}, []
    read = read_captions(root, captions, [images[number][0] for number in numbers])
    for number, (lines, why, where, clean) in zip(numbers, read, strict=True):
        if why is None and len(lines) != CAPTIONS_PER_IMAGE:
            why = f"expected {CAPTIONS_PER_IMAGE} captions, found {len(lines)}"
        if why is None and "" in lines:
            where, why = f"{where}:{lines.index('') + 1}", "an empty caption"
        if why is not None:
            problems.bad("bad caption files", where, why)
            continue
        texts[number] = lines
        if not clean:
            recoded.append(str(where))
    return texts, recoded


_FOLDER = "splits_pcme_xian"
_REPLACEMENT = "\ufffd"  # what another program has already put for bytes it could not decode
_FILES = {
    "trainval": "trainvalclasses.txt",
    "test": "testclasses.txt",
    "seen_test": "trainvalclasses.txt",
    **{f"train{fold}": f"trainclasses{fold}.txt" for fold in (1, 2, 3)},
    **{f"val{fold}": f"valclasses{fold}.txt" for fold in (1, 2, 3)},
}
SPLITS = tuple(_FILES)


def read_split(root, split, class_names, images, problems):
    """The labels of a split's classes, and a function that says of an image number of these classes
    whether it belongs to the split."""
    if not (root / _FOLDER).is_dir():
        labels, seen = _published(root, split, class_names, images)
    else:
        folder = root / _FOLDER
        known = {name: label for label, name in enumerate(class_names)}
        labels = _listed(folder / _FILES[split], known, "class", problems)
        known = {name: number for number, (name, _) in images.items()}
        seen = _listed(folder / "seen_test_images.txt", known, "image", problems)
    if split == "seen_test":
        return labels, lambda number: number in seen
    if split in ("trainval", "train1", "train2", "train3"):
        return labels, lambda number: number not in seen
    return labels, lambda number: True


class CaptionFile(NamedTuple):
    """The lines of one image's file; `why` says why there are none; `clean` means UTF-8."""

    lines: list[str]
    why: str | None
    where: str
    clean: bool


def read_captions(root, captions, image_names):
    """Yields the `CaptionFile` of each image, from a folder or tar archive, by default `text_c10`
    or `text_c10.tar.gz` in `root`."""
    options = [root / "text_c10", root / "text_c10.tar.gz"]
    if captions is not None:
        options = [Path(captions).expanduser()]
    existing = next((path for path in options if path.exists()), None)
    if existing is None:
        raise InputError(f"{' nor '.join(map(str, options))}: no such captions")
    keys = [str(PurePosixPath(name).with_suffix(".txt")) for name in image_names]
    if existing.is_dir():
        for path in (existing / key for key in keys):
            try:
                yield _caption_file(path.read_bytes(), str(path))
            except OSError as error:
                yield CaptionFile([], error.strerror, str(path), True)
        return
    stored = _in_archive(existing, set(keys))
    for key in keys:
        where = f"{existing}:{key}"
        if key in stored:
            yield _caption_file(stored[key], where)
        else:
            yield CaptionFile([], "no such file in the archive", where, True)


def _in_archive(path, wanted):
    """The bytes of the `wanted` files of a tar archive, by `folder/file`."""
    texts = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                key = "/".join(PurePosixPath(member.name).parts[-2:])
                if member.isfile() and key in wanted:
                    texts[key] = archive.extractfile(member).read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{path}: not a whole tar archive ({error})") from error
    return texts


def _listed(path, known, what, problems):
    """The numbers of the classes or images that a file names, one a line."""
    numbers = set()
    for line, text in enumerate(read_lines(path), start=1):
        name = text.strip()
        if name in known:
            numbers.add(known[name])
        elif name:
            problems.bad(f"unknown {what} names", f"{path}:{line}", f"unknown {what} {name!r}")
    return numbers


def _published(root, split, class_names, images):
    """The real set's division, by the numbers of its classes and images."""
    if len(class_names) != 200 or max(images, default=0) > 11788:
        raise InputError(
            f"{root}: no folder {_FOLDER}, and this is not CUB-200-2011, whose division is known"
        )
    table = json.loads(Path(__file__).with_name("cub_splits.json").read_text())
    name = "trainval" if split == "seen_test" else split
    return {number - 1 for number in table[name]}, set(table["seen_test_images"])


def _caption_file(data, where):
    """The captions of a file's bytes, a line each; `where` names the file in messages."""
    text, clean = decode_caption_bytes(data)
    lines = [line.strip() for line in lines_of(text.rstrip())]
    return CaptionFile(lines if text.strip() else [], None, where, clean)


def read_numbered(path):
    """A CUB table: lines of `number value`, without a space, as `{number: (line, value)}`."""
    table = {}
    for line, text in enumerate(read_lines(path), start=1):
        fields = text.split()
        number = whole_number(fields[0]) if len(fields) == 2 else None
        if number is None:
            raise InputError(f"{path}:{line}: expected 'number value', found {text!r}")
        if number in table:
            raise InputError(f"{path}:{line}: number {fields[0]} occurs twice")
        table[number] = (line, fields[1])
    return table


def decode_caption_bytes(data):
    """`(text, clean)` of a caption file, read as Windows-1252 where it is not UTF-8. Runs of
    U+FFFD, which were hard spaces in Reed's files, become a space; clean is then False."""
    try:
        text = data.decode("utf-8-sig")
        clean = _REPLACEMENT not in text
    except UnicodeDecodeError:
        text, clean = data.decode("cp1252", errors="replace"), False
    return re.sub(f"[\u00a0{_REPLACEMENT}]+", " ", text), clean
