"""Rows of an array in the graph: of one in memory, or of a file that stays on the disk."""

import mmap
import os

import numpy as np
import tensorflow as tf

_SMALL = 1 << 29  # bytes, of files that are read whole


def row_reader(array):
    """A function from row numbers to rows.

    A file of more than half a GiB stays where it is: its rows are read when they are asked for.
    They are read as bytes and not through the memory map, whose pages would count as memory of
    the process until it has grown by the whole file.

    Args:
        array: `(rows, …)`, in memory or a whole `np.memmap` in C order.

    Returns:
        A function of int `(n,)` that gives `(n, …)`, in the graph.

    Raises:
        ValueError: if a memory map is not in C order, or is a part of another.
    """
    if not isinstance(array, np.memmap) or array.nbytes <= _SMALL:
        with tf.device("CPU:0"):
            tensor = tf.constant(np.asarray(array))
        return lambda rows: tf.gather(tensor, rows)
    if not array.flags.c_contiguous:
        raise ValueError(
            f"`array` must be a memory map in C order; received one with strides {array.strides}"
        )
    if not isinstance(array.base, mmap.mmap):  # a part has the offset of the whole
        raise ValueError("`array` must be a whole memory map; received a part of one")
    fetch = _FileRows(array.filename, array.dtype, array.offset, array.shape)

    def read(rows):
        found = tf.numpy_function(fetch, [rows], array.dtype, stateful=False)
        return tf.ensure_shape(found, (*rows.shape, *array.shape[1:]))

    return read


class _FileRows:
    """Rows of an array in a file, as NumPy arrays.

    TensorFlow never forgets a Python function that it was given, so this keeps no file open.
    """

    def __init__(self, path, dtype, offset, shape):
        self.path, self.dtype, self.offset, self.shape = path, dtype, offset, shape

    def __call__(self, rows):
        if len(rows) and not 0 <= rows.min() <= rows.max() < self.shape[0]:
            raise IndexError(f"rows must be below {self.shape[0]}; received {rows.tolist()}")
        found = np.empty((len(rows), *self.shape[1:]), self.dtype)
        content = found.reshape(len(rows), -1).view(np.uint8)
        with open(self.path, "rb", buffering=0) as file:
            for row, into in zip(rows.tolist(), content, strict=True):
                place, done = self.offset + row * into.size, 0
                while done < into.size:
                    count = os.preadv(file.fileno(), [into[done:]], place + done)
                    if count == 0:
                        raise EOFError(f"{self.path}: ends before row {row}")
                    done += count
        return found
