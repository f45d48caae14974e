"""Files for Milvus' bulk import: large galleries go in as Parquet, not row by row."""

import importlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from zoo.errors import InputError, MissingPackageError, require
from zoo.search.milvus import fields


def write_bulk(
    folder: str | os.PathLike,
    blocks: Iterable[tuple],
    similarity: Any,
    side: str = "images",
    uncertainty_measure: str | None = None,
    file_bytes: int = 2**26,
) -> list[str]:
    """Writes Parquet files for Milvus' bulk import into a collection that `create` made.

    They have the rows of `MilvusIndex.add`, written by pymilvus' own `LocalBulkWriter`. A cluster
    imports them with `pymilvus.bulk_writer.bulk_import`; the embedded Milvus cannot.

    ```python
    files = write_bulk("bulk", ((ids, model.encode_images(x)) for ids, x in photos), "csd")
    ```

    Args:
        folder: for a new folder of files.
        blocks: an iterable of `(ids, embeddings)` or `(ids, embeddings, names)`, all with names or
            none. The first block is what `create` calls `like`.
        similarity, side, uncertainty_measure: as given to `create`.
        file_bytes: of vectors and other fields in a file, about. The writer takes some 15 times
            that in memory.

    Returns:
        The files' paths, in the order of the blocks.

    Raises:
        ValueError: as `MilvusIndex.add`, or if nothing comes, or an id is not above all of the
            blocks before.
        InputError: if pymilvus' extra `bulk_writer` is not installed, or a file cannot be written.
    """
    last, writer, rows = -1, None, 0
    for ids, embeddings, *names in blocks:
        names = names[0] if names else None
        if writer is None:
            given = (embeddings, similarity, side, uncertainty_measure, names is not None)
            description = fields.describe(*given)
            writer, row_count = _writer(folder, fields.schema(description))
        items = fields.checked(description, embeddings, ids, names, None)
        if len(items[1]) and items[1].min() <= last:
            raise ValueError(
                f"`blocks` must have ids above those of the blocks before; received "
                f"{items[1].min()} after {last}"
            )
        last = max([last, *items[1].tolist()])
        for row in fields.rows(description, *items):
            writer.append_row(row)
            rows += 1
            if writer.buffer_size >= file_bytes:
                writer.commit()
    if not rows:
        raise ValueError("`blocks` must hold at least one item; received none")
    writer.commit()
    files = [path for batch in writer.batch_files for path in batch]
    written = sum(row_count(path) for path in files)
    if written != rows:  # the writer only logs what fails
        raise InputError(f"{folder}: expected {rows:,} rows to be written, found {written:,}")
    return files


def _writer(folder, schema):
    """pymilvus' writer, and what counts the rows of a file."""
    try:
        bulk_writer = require("pymilvus.bulk_writer", extra="milvus")
    except ModuleNotFoundError as error:  # of the packages that it looks for itself
        raise MissingPackageError(
            f'bulk files need more packages: pip install "pymilvus[bulk_writer]" ({error})'
        ) from error
    parquet = importlib.import_module("pyarrow.parquet")  # one of those packages
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        # A file is committed when it is due: the writer's own thread can lose rows.
        writer = bulk_writer.LocalBulkWriter(schema, str(folder), chunk_size=sys.maxsize)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return writer, lambda path: parquet.read_metadata(path).num_rows
