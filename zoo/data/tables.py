"""CSV and TSV files."""

import csv
import io
from pathlib import Path

from zoo.data.files import read_text
from zoo.errors import InputError

SEPARATORS = {".csv": ",", ".tsv": "\t"}


def read_header(path):
    """The names of the columns of a CSV or TSV file.

    Raises:
        InputError: if the file cannot be read, or its first line is no row.
    """
    path = Path(path)
    rows = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=SEPARATORS[path.suffix])
    try:
        return next(rows, [])
    except csv.Error as error:
        raise InputError(f"{path}:1: {error}") from error


def read_table(path, columns, bad=None):
    """The rows of a CSV or TSV file whose first line names its columns.

    Args:
        path: the file, `.csv` or `.tsv`.
        columns: names of the columns that are wanted.
        bad: function `(where, why)` that is told of a row with more fields than columns, which is
            then left out; by default such a row is an error.

    Yields:
        `(line, values)`: the number of the row's last line, and the value of each column wanted,
        None where the row is too short. Empty rows are left out.

    Raises:
        InputError: if the file cannot be read, is no such table, lacks a column or has a row with
            too many fields.
    """
    path = Path(path)
    text = io.StringIO(read_text(path), newline="")
    separator = SEPARATORS[path.suffix]
    rows = csv.reader(text, delimiter=separator, strict=True)
    try:
        header = next(rows, [])
        for column in columns:
            if column not in header:
                raise InputError(
                    f"{path}:1: expected a column {column!r}, found {header or 'none'}"
                )
        places = [header.index(column) for column in columns]
        for row in rows:
            if not row:
                continue
            if len(row) > len(header):
                where, why = f"{path}:{rows.line_num}", _too_many(row, header, separator)
                if bad is None:
                    raise InputError(f"{where}: {why}")
                bad(where, why)
                continue
            yield rows.line_num, [row[place] if place < len(row) else None for place in places]
    except csv.Error as error:
        raise InputError(f"{path}:{rows.line_num}: {error}") from error


def _too_many(row, header, separator):
    found = f"expected {len(header)} fields, found {len(row)}"
    if separator == ",":
        return f"{found}; put a text with commas in double quotes, or write a .tsv file"
    return f"{found}; put a text with tabs in double quotes"
