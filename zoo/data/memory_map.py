"""Rows of an array in the graph, where it is: in memory, or in a file that is larger than it."""

import numpy as np
import tensorflow as tf

_ALIGNMENT = 64  # bytes; what TensorFlow needs to take memory that is not its own


def row_reader(array):
    """A function from row numbers to rows that copies these rows and nothing else.

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
    # DLPack refuses read-only memory. Nothing writes here, and it would not reach the file.
    view = np.memmap(filename, dtype, "c", offset, shape)
    return tf.experimental.dlpack.from_dlpack(view.__dlpack__())
