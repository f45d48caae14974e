"""Reed's captions of CUB: a folder of text files, or the archive that it comes in."""

import tarfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from zoo.errors import InputError
from zoo.files.lines import lines_of
from zoo.files.text_files import decode_caption_bytes


class CaptionFile(NamedTuple):
    """The lines of one image's file; `why` says why there are none; `clean` means UTF-8."""

    lines: list[str]
    why: str | None
    where: str
    clean: bool


def open_captions(root, captions=None):
    """The captions beside a data set, or wherever `captions` says.

    Args:
        root: the folder of the data set.
        captions: a folder or a tar archive; by default `text_c10` or `text_c10.tar.gz` in `root`.

    Raises:
        InputError: if there is neither.
    """
    if captions is None:
        options = [root / "text_c10", root / "text_c10.tar.gz"]
        found = next((path for path in options if path.exists()), None)
        if found is None:
            raise InputError(f"{root}: no captions, neither text_c10 nor text_c10.tar.gz")
    else:
        found = Path(captions).expanduser()
        if not found.exists():
            raise InputError(f"{found}: no such captions")
    return _Folder(found) if found.is_dir() else _Archive(found)


class _Folder:
    def __init__(self, path):
        self.path = path

    def read(self, image_names):
        for name in image_names:
            path = self.path / Path(name).with_suffix(".txt")
            try:
                yield _caption_file(path.read_bytes(), str(path))
            except OSError as error:
                yield CaptionFile([], error.strerror, str(path), True)


class _Archive:
    def __init__(self, path):
        self.path = path

    def read(self, image_names):
        wanted = {str(PurePosixPath(name).with_suffix(".txt")) for name in image_names}
        found = {}
        try:
            with tarfile.open(self.path) as archive:
                for member in archive:
                    key = "/".join(PurePosixPath(member.name).parts[-2:])
                    if member.isfile() and key in wanted:
                        found[key] = archive.extractfile(member).read()
        except (tarfile.TarError, EOFError, OSError) as error:
            raise InputError(f"{self.path}: not a whole tar archive ({error})") from error
        for name in image_names:
            key = str(PurePosixPath(name).with_suffix(".txt"))
            where = f"{self.path}:{key}"
            if key in found:
                yield _caption_file(found[key], where)
            else:
                yield CaptionFile([], "no such file in the archive", where, True)


def _caption_file(data, where):
    text, clean = decode_caption_bytes(data)
    lines = [line.strip() for line in lines_of(text.rstrip())]
    return CaptionFile(lines if text.strip() else [], None, where, clean)
