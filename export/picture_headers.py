"""What the bytes of a picture say of it before it is decoded, read by graph operations."""

import tensorflow as tf

_HEADER = 32  # bytes; in every format but JPEG, width and height lie in them
_PNG = b"\x89PNG\r\n\x1a\n"
NAMES = (
    "JPEG, PNG, GIF, BMP or WebP"  # all of `zoo.data.reading.files.FORMATS`; MPO is JPEG's bytes
)


def size(content):
    """Height and width of a picture by its header, and whether it is of a format that is read.

    Args:
        content: a string scalar, the bytes of a file.

    Returns:
        `(known, height, width)`: a bool and two int64 scalars; 0 by 0 of an unknown format. Of a
        GIF they are the largest of its screen and its first picture.
    """
    head = _padded(content, 0, _HEADER)
    codes = _codes(head)

    def starts(text, at=0):
        return tf.strings.substr(head, at, len(text)) == text

    def number(at, count, big_endian=False):
        powers = [1 << (8 * place) for place in range(count)]
        powers = powers[::-1] if big_endian else powers
        return tf.reduce_sum(codes[at : at + count] * tf.constant(powers, tf.int64))

    def bmp():
        signed = tf.bitcast(tf.cast(tf.stack([number(22, 4), number(18, 4)]), tf.uint32), tf.int32)
        return tuple(tf.unstack(tf.abs(tf.cast(signed, tf.int64))))

    def webp():
        bits = number(21, 4)
        lossless = (1 + (bits // (1 << 14)) % (1 << 14), 1 + bits % (1 << 14))
        lossy = (number(28, 2) % (1 << 14), number(26, 2) % (1 << 14))
        extended = (1 + number(27, 3), 1 + number(24, 3))
        return tf.case(
            [
                (starts(b"VP8X", 12), lambda: extended),
                (starts(b"VP8L", 12), lambda: lossless),
                (starts(b"VP8 ", 12), lambda: lossy),
            ],
            default=lambda: _nothing(),
        )

    def gif():
        _, height, width = _first_of_gif(content)
        return tf.maximum(height, number(8, 2)), tf.maximum(width, number(6, 2))

    def jpeg():
        height, width, _ = tf.unstack(tf.cast(tf.io.extract_jpeg_shape(content), tf.int64))
        return height, width

    kinds = [
        (tf.io.is_jpeg(content), jpeg),
        (starts(_PNG), lambda: (number(20, 4, True), number(16, 4, True))),
        (is_gif(content), gif),
        (starts(b"BM"), bmp),
        (starts(b"RIFF") & starts(b"WEBP", 8), webp),
    ]
    known = tf.reduce_any(tf.stack([condition for condition, _ in kinds]))
    height, width = tf.case(kinds, default=lambda: _nothing())
    return known, height, width


def is_gif(content):
    """Whether bytes begin as a GIF does."""
    head = tf.strings.substr(_padded(content, 0, 6), 0, 6)
    return (head == b"GIF87a") | (head == b"GIF89a")


def first_picture(content):
    """A GIF's bytes with its first picture alone.

    The decoder takes memory for every picture of an animation before it returns the first, and
    each may be of any size whatever the header says.
    """
    end, _, _ = _first_of_gif(content)
    return tf.strings.join([tf.strings.substr(content, 0, end), b";"])


_BLOCK, _EXTENSION, _PICTURE, _END = range(4)  # where in a GIF the walk is


def _first_of_gif(content):
    """(the end of a GIF's first picture, its height, its width).

    Reference: "Graphics Interchange Format, version 89a", CompuServe 1990.
    """
    length = tf.strings.length(content)

    def step(at, place, height, width):
        codes = _codes(_padded(content, at, 10))
        first = codes[0]

        def block():
            is_picture, is_extension = first == 0x2C, first == 0x21
            after = tf.where(is_picture, 11 + _table(codes[9]), 2)
            then = tf.where(is_picture, _PICTURE, tf.where(is_extension, _EXTENSION, _END))
            shape = codes[7] + 256 * codes[8], codes[5] + 256 * codes[6]
            return after, then, *(tf.where(is_picture, side, 0) for side in shape)

        def part():
            then = tf.where(first > 0, place, tf.where(place == _PICTURE, _END, _BLOCK))
            return 1 + first, then, height, width

        after, place, height, width = tf.cond(place == _BLOCK, block, part)
        return at + tf.cast(after, tf.int32), place, height, width

    start = 13 + _table(_codes(_padded(content, 0, 11))[10])
    zero = tf.constant(0, tf.int64)
    at, _, height, width = tf.while_loop(
        lambda at, place, *_: (place < _END) & (at < length),
        step,
        (tf.cast(start, tf.int32), tf.constant(_BLOCK), zero, zero),
    )
    return tf.minimum(at, length), height, width


def _table(flags):
    """Bytes of the colour table that a GIF's flags announce."""
    entries = tf.bitwise.left_shift(tf.constant(2, tf.int64), flags % 8)
    return tf.where(flags >= 128, 3 * entries, 0)


def _codes(data):
    return tf.cast(tf.io.decode_raw(data, tf.uint8), tf.int64)


def _padded(content, start, count):
    start = tf.minimum(start, tf.strings.length(content))
    part = tf.strings.substr(content, start, count)
    return tf.strings.substr(tf.strings.join([part, b"\0" * count]), 0, count)


def _nothing():
    return tf.constant(0, tf.int64), tf.constant(0, tf.int64)
