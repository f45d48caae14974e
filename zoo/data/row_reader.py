"""Rows of an array in the graph: of one in memory, or of a file through the memory map."""

import ctypes
import mmap
import threading
import time
import uuid
import weakref

import numpy as np
import tensorflow as tf

_ALIGNMENT = 64  # bytes; what TensorFlow needs to take memory that is not its own
_SMALL = 1 << 29  # bytes, of files that are read whole
_INTERVAL = 0.1  # seconds


def row_reader(array):
    """A function from row numbers to rows.

    A file of more than half a GiB stays where it is: rows are copied out of the memory map when
    they are asked for, and the pages that held them are handed back, so that a process which goes
    through the file does not grow with it.

    Args:
        array: `(rows, …)`, in memory or an `np.memmap` in C order.

    Returns:
        A function of int `(n,)` that gives `(n, …)`, in the graph.

    Raises:
        ValueError: if a memory map is not in C order, or starts between two elements.
    """
    if not isinstance(array, np.memmap) or array.nbytes <= _SMALL:
        with tf.device("CPU:0"):
            tensor = tf.constant(np.asarray(array))
        return lambda rows: tf.gather(tensor, rows)
    if not array.flags.c_contiguous or array.offset % array.itemsize:
        raise ValueError(
            "`array` must be a memory map in C order that starts at a multiple of its element's "
            f"size; received one with offset {array.offset}, strides {array.strides}"
        )
    if array.offset % _ALIGNMENT == 0:
        read_all = _mapped(array.filename, array.dtype, array.offset, array.shape)
        return lambda rows: tf.gather(read_all(), rows)
    # NumPy before 1.14 aligned to 16 bytes, and so are SCAN's files. From its first byte on a
    # file is aligned, header and all, so rows are cut out of it one by one.
    start, size, shape = array.offset // array.itemsize, array[0].size, array.shape[1:]
    read_all = _mapped(array.filename, array.dtype, 0, (start + array.size,))

    def read(rows):
        flat = read_all()

        def one(row):
            first = start + tf.cast(row, tf.int64) * size
            return tf.reshape(flat[first : first + size], shape)

        return tf.map_fn(one, rows, fn_output_signature=flat.dtype)

    return read


def _mapped(filename, dtype, offset, shape):
    """A function that gives, in the graph, a part of a file as a tensor without reading it.

    A pipeline copies the tensors that it captures when an iterator is made, and so would a whole
    file be; of a resource it captures the handle.
    """
    with tf.device("CPU:0"):
        tensor = _tensor(filename, dtype, offset, shape)
        handle = tf.raw_ops.VarHandleOp(
            dtype=tensor.dtype, shape=tensor.shape, shared_name=f"rows-{uuid.uuid4()}"
        )
        tf.raw_ops.AssignVariableOp(resource=handle, value=tensor)

    def read_all():
        with tf.device("CPU:0"):
            return tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)

    done = weakref.finalize(
        read_all, tf.raw_ops.DestroyResourceOp, resource=handle, ignore_lookup_error=True
    )
    done.atexit = False
    return read_all


def _tensor(filename, dtype, offset, shape):
    with open(filename, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    # DLPack refuses read-only memory, and a private writable map larger than the machine's memory
    # is refused by Linux. Nothing writes to a tensor, so it is told of the address alone.
    address = np.frombuffer(mapped, np.uint8).ctypes.data
    memory = (ctypes.c_char * len(mapped)).from_address(address)
    memory.mapped = mapped  # stays as long as the tensor
    view = np.ndarray(shape, dtype, memory, offset)
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
