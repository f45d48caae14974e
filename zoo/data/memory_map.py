"""Rows of an array in the graph: of one in memory, or of a file through the memory map."""

import ctypes
import mmap
import threading
import time
import weakref

import numpy as np
import tensorflow as tf

_ALIGNMENT = 64  # bytes; what TensorFlow needs to take memory that is not its own
_LARGE = 1 << 28  # bytes, of files whose pages are handed back
_INTERVAL = 0.1  # seconds


def row_reader(array):
    """A function from row numbers to rows that copies these rows and nothing else.

    Used inside a tf.data pipeline, TensorFlow 2.21 copies the tensor whole when an iterator is
    made, so there a file must still fit into memory.

    Args:
        array: `(rows, …)`; of an `np.memmap` only the pages of the rows asked for are read.

    Returns:
        A function of int `(n,)` that gives `(n, …)`, in the graph.

    Raises:
        ValueError: if a memory map is not in C order, or starts between two elements.
    """
    if not isinstance(array, np.memmap):
        with tf.device("CPU:0"):
            tensor = tf.constant(array)
        return lambda rows: tf.gather(tensor, rows)
    if not array.flags.c_contiguous or array.offset % array.itemsize:
        raise ValueError(
            "`array` must be a memory map in C order that starts at a multiple of its element's "
            f"size; received one with offset {array.offset}, strides {array.strides}"
        )
    if array.offset % _ALIGNMENT == 0:
        tensor = _tensor(array.filename, array.dtype, array.offset, array.shape)
        return lambda rows: tf.gather(tensor, rows)
    # NumPy before 1.14 aligned to 16 bytes, and so are SCAN's files. From its first byte on a
    # file is aligned, header and all, so rows are cut out of it one by one.
    start, size, shape = array.offset // array.itemsize, array[0].size, array.shape[1:]
    flat = _tensor(array.filename, array.dtype, 0, (start + array.size,))

    def one(row):
        first = start + tf.cast(row, tf.int64) * size
        return tf.reshape(flat[first : first + size], shape)

    return lambda rows: tf.map_fn(one, rows, fn_output_signature=flat.dtype)


def _tensor(filename, dtype, offset, shape):
    """A tensor that is a part of a file, of which nothing is read before it is needed."""
    with open(filename, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    # DLPack refuses read-only memory, and a private writable map larger than the machine's memory
    # is refused by Linux. Nothing writes to a tensor, so it is told of the address alone.
    address = np.frombuffer(mapped, np.uint8).ctypes.data
    memory = (ctypes.c_char * len(mapped)).from_address(address)
    memory.mapped = mapped  # stays as long as the tensor
    view = np.ndarray(shape, dtype, memory, offset)
    if view.nbytes > _LARGE:
        forget = threading.Thread(target=_forget_pages, args=(weakref.ref(mapped),), daemon=True)
        forget.start()
    return tf.experimental.dlpack.from_dlpack(view.__dlpack__())


def _forget_pages(reference):
    """Hands the pages of a file back that were read, again and again, until it is not used.

    Otherwise a process that goes through the file keeps what it has read until memory runs out
    and looks as large as the file. What is used again comes from the system's cache.
    """
    while (mapped := reference()) is not None and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)
        del mapped
        time.sleep(_INTERVAL)
