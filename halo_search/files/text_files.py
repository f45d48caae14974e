"""Text and its lines, names of files: read with errors that say where."""

import codecs
import io
import os
import unicodedata
from pathlib import Path, PurePosixPath

from halo_search.errors import InputError


def existing_folder(path, what="folder"):
    """The path of a folder; an InputError if it is none."""
    path = Path(path).expanduser()
    if not path.is_dir():
        raise InputError(f"{path}: no such {what}")
    return path


def refuse(where, why):
    """What `bad` is of a reader that is given none."""
    raise InputError(f"{where}: {why}")


def read_text(path, bad=None):
    """Text of a UTF-8 file without a byte order mark. `bad(where, why)` is called for a line that
    is not UTF-8, which is then empty. Raises InputError if the file cannot be read or, without
    `bad`, decoded."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path}: expected UTF-8, found UTF-16; save it as UTF-8")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(_decoded(path, data, bad or refuse))


def _decoded(path, data, bad):
    """Yields the lines of bytes as text; a line that is no UTF-8 is reported and comes empty."""
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            bad(f"{path}:{number}", f"expected UTF-8, found byte {line[error.start]:#x}")
            yield "\n"


def read_lines(path):
    """The lines of a UTF-8 file without their ends. Raises InputError as `read_text`."""
    return lines_of(read_text(path))


def whole_number(text):
    """The number that a text of ASCII digits is, if 63 bits hold it, else None."""
    digits = text.isascii() and text.isdigit() and len(text) < 20
    return int(text) if digits and int(text) < 1 << 63 else None


def safe_relative(name):
    """Whether a file name from a data set stays inside the data set's folder."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name and bool(name)


def portable(name):
    r"""A path of a table with `/` between its folders; Windows writes `photos\a.jpg`."""
    return name.replace("\\", "/")


def comparable(name: str) -> str:
    """A name as names are compared: Unicode has two ways to write a letter with an accent, NFC and
    NFD, and macOS, tables and lists differ in which they write."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def name_on_disk(folder, name):
    """A file's name as the disk has it, in NFC or NFD, of which macOS and a table may differ."""
    folder = Path(folder)
    if name.isascii() or os.path.isfile(folder / name):
        return name
    on_disk = PurePosixPath()
    for part in PurePosixPath(name).parts:
        forms = (part, *(unicodedata.normalize(norm, part) for norm in ("NFC", "NFD")))
        there = next((form for form in forms if os.path.exists(folder / on_disk / form)), None)
        if there is None:
            return name
        on_disk /= there
    return str(on_disk)


def lines_of(text: str) -> list[str]:
    r"""The lines of a text without their ends: `\n`, `\r\n` and `\r` end a line. `str.splitlines`
    also splits at U+2028 and others, which are ordinary characters of a caption."""
    return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]
