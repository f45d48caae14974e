"""What the bytes of a picture say of it before it is decoded, read by graph operations."""

import tensorflow as tf

_HEADER = 24  # bytes; width and height of a PNG end there
_PNG = b"\x89PNG\r\n\x1a\n"
_ADOBE = b"\xff\xee\x00\x0eAdobe"
_BEFORE_PIXELS = 2**20  # bytes in which Adobe's marker stands: colour profiles may come before it
NAMES = "JPEG or PNG"


def size(content):
    """Height and width of a picture by its header, and whether it is of a format that is read.

    Args:
        content: a string scalar, the bytes of a file.

    Returns:
        `(known, height, width)`: a bool and two int64 scalars; 0 by 0 of an unknown format.
    """
    head = tf.strings.substr(tf.strings.join([content, b"\0" * _HEADER]), 0, _HEADER)
    codes = tf.cast(tf.io.decode_raw(head, tf.uint8), tf.int64)
    powers = tf.constant([1 << 24, 1 << 16, 1 << 8, 1], tf.int64)

    def jpeg():
        height, width, _ = tf.unstack(tf.cast(tf.io.extract_jpeg_shape(content), tf.int64))
        return height, width

    def png():
        return tf.reduce_sum(codes[20:24] * powers), tf.reduce_sum(codes[16:20] * powers)

    def other():
        return tf.constant(0, tf.int64), tf.constant(0, tf.int64)

    is_jpeg, is_png = tf.io.is_jpeg(content), tf.strings.substr(head, 0, len(_PNG)) == _PNG
    height, width = tf.case([(is_jpeg, jpeg), (is_png, png)], default=other)
    return is_jpeg | is_png, height, width


def is_cmyk_without_marker(content):
    """Whether a picture is a JPEG of four inks that lacks Adobe's marker. TensorFlow then takes ink
    for light; `halo_search.files.decoding` reads the inks as they are.

    Args:
        content: a string scalar, the bytes of a file.
    """

    def without_marker():
        head = tf.io.decode_raw(tf.strings.substr(content, 0, _BEFORE_PIXELS), tf.uint8)
        places = tf.maximum(tf.size(head) - len(_ADOBE) + 1, 0)
        is_there = tf.ones((places,), tf.bool)
        for offset, code in enumerate(_ADOBE):
            is_there &= head[offset : offset + places] == code
        return ~tf.reduce_any(is_there)

    def is_cmyk():
        return tf.io.extract_jpeg_shape(content)[2] == 4

    four_inks = tf.cond(tf.io.is_jpeg(content), is_cmyk, lambda: tf.constant(False))
    return tf.cond(four_inks, without_marker, lambda: tf.constant(False))
