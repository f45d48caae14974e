"""What lies beside CUB's pictures: its tables, Reed's captions, and the division of its classes."""

import json
import re
import tarfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from zoo.errors import InputError
from zoo.files.text_files import existing_folder, lines_of, read_lines, whole_number

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


def read_split(root, folder, split, class_names, images, problems):
    """The labels of a split's classes, and a function that says of an image number of these classes
    whether it belongs to the split."""
    if folder is None and not (root / _FOLDER).is_dir():
        labels, seen = _published(root, split, class_names, images)
    else:
        folder = existing_folder(root / _FOLDER if folder is None else folder, "splits folder")
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
    or `text_c10.tar.gz` in `root`. Raises InputError if there is neither."""
    if captions is None:
        options = [root / "text_c10", root / "text_c10.tar.gz"]
        found = next((path for path in options if path.exists()), None)
        if found is None:
            raise InputError(f"{root}: no captions, neither text_c10 nor text_c10.tar.gz")
    else:
        found = Path(captions).expanduser()
        if not found.exists():
            raise InputError(f"{found}: no such captions")
    keys = [str(PurePosixPath(name).with_suffix(".txt")) for name in image_names]
    if found.is_dir():
        for path in (found / key for key in keys):
            try:
                yield _caption_file(path.read_bytes(), str(path))
            except OSError as error:
                yield CaptionFile([], error.strerror, str(path), True)
        return
    stored = _in_archive(found, set(keys))
    for key in keys:
        where = f"{found}:{key}"
        if key in stored:
            yield _caption_file(stored[key], where)
        else:
            yield CaptionFile([], "no such file in the archive", where, True)


def _in_archive(path, wanted):
    found = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                key = "/".join(PurePosixPath(member.name).parts[-2:])
                if member.isfile() and key in wanted:
                    found[key] = archive.extractfile(member).read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{path}: not a whole tar archive ({error})") from error
    return found


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
    text, clean = decode_caption_bytes(data)
    lines = [line.strip() for line in lines_of(text.rstrip())]
    return CaptionFile(lines if text.strip() else [], None, where, clean)


def read_numbered(path):
    """A CUB table: lines of `number value`, the value without a space, as `{number: (line,
    value)}`. Raises InputError if a line has another form or a number occurs twice."""
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
