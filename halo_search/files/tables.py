"""CSV and TSV files."""

import csv
import io
from pathlib import Path

from halo_search.errors import InputError
from halo_search.files.text_files import read_text, refuse

SEPARATORS = {".csv": ",", ".tsv": "\t"}
MISSING = ("nan", "null", "none", "<na>")  # as other programs write that there is nothing


def separator_of(path, separator=None):
    """The character between the fields of a table: one character, or `"tab"`; None follows the
    suffix. Raises InputError if it is no such character."""
    if separator is None:
        return SEPARATORS[Path(path).suffix]
    character = "\t" if separator == "tab" else separator
    if not isinstance(character, str) or len(character) != 1 or character in '\r\n"':
        raise InputError(f"`separator` must be one character, or tab; received {separator!r}")
    return character


def read_header(path, separator=None):
    """The names of the columns of a table; an InputError if there are none that can be read."""
    path, ignored = Path(path), lambda *_: None  # the rows' own problems are told by who reads them
    return _header(path, _lines(path, ignored), separator_of(path, separator))


def read_table(path, columns, bad=None, separator=None):
    """Yields `(line, values)` of a table whose first line names its columns; tabs mean no quotes.
    `bad(where, why)` is called for each bad row; without it, a bad row raises InputError."""
    path, bad = Path(path), bad or refuse
    separator = separator_of(path, separator)
    lines = _lines(path, bad)
    header = _header(path, lines, separator)
    for column in columns:
        if (count := header.count(column)) > 1:
            raise InputError(f"{path}:1: expected one column {column!r}, found {count}")
        if not count:
            raise InputError(
                f"{path}:1: expected a column {column!r}, found {header or 'none'} between "
                f"{separator!r}; is that the `separator`?"
            )
    places = [header.index(column) for column in columns]
    rows = _rows(path, lines, separator, bad)
    next(rows, None)
    for line, row in rows:
        if len(row) > len(header):
            reason = (
                f"expected {len(header)} fields, found {len(row)}; put a text with {separator!r}"
            )
            bad(f"{path}:{line}", f"{reason} in double quotes, or write a .tsv file without tabs")
        elif row:
            cells = [row[place] if place < len(row) else None for place in places]
            yield line, [None if (c or "").strip().lower() in MISSING else c for c in cells]


def _lines(path, bad):
    """The lines with their ends, as CSV has them: U+2028 ends none."""
    return list(io.StringIO(read_text(path, bad), newline=""))


def _header(path, lines, separator):
    return next((row for _, row in _rows(path, lines, separator, refuse)), [])


def _rows(path, lines, separator, bad):
    """`(number of the last line, fields)` of every row; after a bad one it goes on a line later."""
    # A space may stand before a field's quote, as people write a comma.
    how = {"strict": True, "skipinitialspace": True}
    if separator == "\t":
        how = {"quoting": csv.QUOTE_NONE}
    start = 0
    while start < len(lines):
        rest = (lines[i] for i in range(start, len(lines)))
        reader, done = csv.reader(rest, delimiter=separator, **how), 0
        try:
            for row in reader:
                done = reader.line_num
                yield start + done, row
            return
        except csv.Error as error:
            why = "a quote is not closed, or a quote within a text is not written twice"
            reason = str(error) if "field" in str(error) else f"{error}; {why}"
            bad(f"{path}:{start + done + 1}", reason)
            start += done + 1
