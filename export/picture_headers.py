"""What the bytes of a picture say of it before it is decoded, read by graph operations."""

import tensorflow as tf

_HEADER = 32  # bytes; in every format but JPEG, width and height lie in them
_PNG = b"\x89PNG\r\n\x1a\n"
NAMES = "JPEG, PNG, GIF, BMP or WebP"  # `zoo.files.decoding.FORMATS`; MPO is JPEG's bytes


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
        _, _, height, width = _first_of_gif(content)
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


def is_portable(content):
    """Whether TensorFlow reads a picture as Pillow does, as far as its header tells.

    Of a BMP it reads 24 and 32 bits per pixel, whatever the file says of compression and masks. A
    GIF is as large for it as its pictures, whatever the screen says.
    """
    head = _padded(content, 0, 66)
    codes = tf.cast(tf.io.decode_raw(head, tf.uint8), tf.int64)
    bits, compression = codes[28] + 256 * codes[29], codes[30]
    plain = ((bits == 24) | (bits == 32)) & (compression == 0)
    usual_masks = tf.strings.substr(head, 54, 12) == b"\0\0\xff\0\0\xff\0\0\xff\0\0\0"
    masked = (bits == 32) & (compression == 3) & usual_masks
    long_header = codes[14] >= 40
    is_bmp = tf.strings.substr(head, 0, 2) == b"BM"

    def fills_its_screen():
        _, _, height, width = _first_of_gif(content)
        return (width == codes[6] + 256 * codes[7]) & (height == codes[8] + 256 * codes[9])

    whole = tf.cond(is_gif(content), fills_its_screen, lambda: tf.constant(True))
    return whole & (~is_bmp | (long_header & (plain | masked)))


def is_gif(content):
    """Whether bytes begin as a GIF does."""
    head = tf.strings.substr(_padded(content, 0, 6), 0, 6)
    return (head == b"GIF87a") | (head == b"GIF89a")


def first_picture(content):
    """A GIF's bytes with its first picture alone, and no transparency.

    The decoder takes memory for every picture of an animation before it returns the first, and
    each may be of any size whatever the header says.
    """
    start, end, _, _ = _first_of_gif(content)
    head = tf.strings.substr(content, 0, _first_block(content))
    return tf.strings.join([head, tf.strings.substr(content, start, end - start), b";"])


_BLOCK, _EXTENSION, _PICTURE, _END = range(4)  # where in a GIF the walk is


def _first_of_gif(content):
    """(the start and the end of a GIF's first picture, its height, its width).

    Reference: "Graphics Interchange Format, version 89a", CompuServe 1990.
    """
    length = tf.strings.length(content)

    def step(at, place, start, height, width):
        codes = _codes(_padded(content, at, 10))
        first = codes[0]

        def block():
            is_picture, is_extension = first == 0x2C, first == 0x21
            after = tf.where(is_picture, 11 + _table(codes[9]), 2)
            then = tf.where(is_picture, _PICTURE, tf.where(is_extension, _EXTENSION, _END))
            shape = codes[7] + 256 * codes[8], codes[5] + 256 * codes[6]
            return after, then, at, *(tf.where(is_picture, side, 0) for side in shape)

        def part():
            then = tf.where(first > 0, place, tf.where(place == _PICTURE, _END, _BLOCK))
            return 1 + first, then, start, height, width

        after, place, start, height, width = tf.cond(place == _BLOCK, block, part)
        return at + tf.cast(after, tf.int32), place, start, height, width

    first = _first_block(content)
    zero = tf.constant(0, tf.int64)
    at, _, start, height, width = tf.while_loop(
        lambda at, place, *_: (place < _END) & (at < length),
        step,
        (first, tf.constant(_BLOCK), first, zero, zero),
    )
    end = tf.minimum(at, length)
    return tf.minimum(start, end), end, height, width


def _first_block(content):
    flags = _codes(_padded(content, 0, 11))[10]
    return tf.minimum(tf.cast(13 + _table(flags), tf.int32), tf.strings.length(content))


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
