"""The EXIF orientation of a picture, read and undone by graph operations."""

import tensorflow as tf

_EXIF = b"Exif\0\0"
_ORIENTATION = 0x0112  # the tag
_ENTRY = 12  # bytes of an entry of a TIFF directory
_LARGEST_SEGMENT = 1 << 16


def jpeg_orientation(contents):
    """The orientation that the EXIF data of a JPEG's bytes state, an int32 scalar from 1 to 8; 1
    where they state none, or are damaged, as they give Pillow nothing.

    EXIF lies in an APP1 segment before the first table of the JPEG; later segments are not read.

    Reference: CIPA DC-008 (Exif 3.0), sections 4.5.4 and 4.6.5.
    """
    size = tf.strings.length(contents)

    def searching(start, going, found):
        del found
        return going & (start + 10 <= size)

    def step(start, going, found):
        del going, found
        other, length, exif = _segment(contents, start)
        return tf.where(exif, start, start + 2 + length), other & ~exif & (length >= 2), exif

    start, _, found = tf.while_loop(
        searching, step, (tf.constant(2), tf.constant(True), tf.constant(False))
    )
    return tf.cond(found, lambda: _of_tiff(contents, start + 10), lambda: tf.constant(1))


def may_be_turned(contents):
    """Whether a JPEG may have EXIF data, from its first two segments; where not, `jpeg_orientation`
    is 1.

    `jpeg_orientation` walks through the segments by a loop, and control flow costs more than its
    few numbers. Most photos have at most one segment before their tables, and no EXIF data.
    """
    size = tf.strings.length(contents)
    other, length, exif = _segment(contents, tf.minimum(2, size))
    next_other, _, next_exif = _segment(contents, tf.minimum(4 + length, size))
    return exif | (other & (next_exif | next_other))


def png_orientation(contents):
    """The orientation that the EXIF chunk in the bytes of a PNG states, int32, else 1.

    Reference: Portable Network Graphics (third edition), 11.3.4.5.
    """
    parts = tf.strings.split([contents], b"eXIf", maxsplit=1).values
    data = tf.cond(tf.size(parts) > 1, lambda: parts[-1], lambda: tf.constant(b""))
    data = tf.strings.substr(data, 0, _LARGEST_SEGMENT)
    mark = tf.strings.substr(_padded(data, 4), 0, 4)
    is_tiff = (mark == b"II*\0") | (mark == b"MM\0*")
    return tf.cond(is_tiff, lambda: _of_tiff(data, 0), lambda: tf.constant(1))


def upright(image, orientation):
    """A picture turned and mirrored as an EXIF orientation says, of the shape `(width, height,
    channels)` for orientations 5 to 8."""

    def reverse(picture, axis, mirrored):
        says_so = tf.reduce_any(orientation == tf.constant(mirrored))
        return tf.cond(says_so, lambda: tf.reverse(picture, [axis]), lambda: picture)

    def turned():
        sides = tf.cond(orientation >= 5, lambda: tf.transpose(image, (1, 0, 2)), lambda: image)
        sides = reverse(sides, 0, (3, 4, 7, 8))
        return reverse(sides, 1, (2, 3, 6, 7))

    return tf.cond(orientation > 1, turned, lambda: image)


def _segment(contents, start):
    """Of the segment at `start`: whether it may precede EXIF, its length, whether it is EXIF."""
    head = _padded(tf.strings.substr(contents, start, 10), 10)
    codes = tf.cast(tf.io.decode_raw(head, tf.uint8), tf.int32)
    marker = tf.where(codes[0] == 0xFF, codes[1], 0)
    exif = (marker == 0xE1) & (tf.strings.substr(head, 4, 6) == _EXIF)
    other = ((marker >= 0xE0) & (marker <= 0xEF)) | (marker == 0xFE)  # APPn or a comment
    return other, codes[2] * 256 + codes[3], exif


def _of_tiff(contents, start):
    """The orientation in the first directory of the TIFF data at `start`."""
    data = tf.strings.substr(contents, start, _LARGEST_SEGMENT)
    codes = tf.cast(tf.io.decode_raw(data, tf.uint8), tf.int32)
    size = tf.size(codes)
    big_endian = tf.strings.substr(_padded(data, 2), 0, 2) == b"MM"

    def number(at, count):
        """The whole numbers of two or four bytes at some places; bytes outside are zero."""
        places = tf.expand_dims(at, -1) + tf.range(count)
        inside = (places >= 0) & (places < size)
        digits = tf.where(inside, tf.gather(codes, tf.clip_by_value(places, 0, size - 1)), 0)
        digits = tf.cond(big_endian, lambda: digits, lambda: tf.reverse(digits, [-1]))
        # Of four bytes the first is left out: offsets of 16 MiB and more lead outside anyway.
        powers = [65536, 256, 1][-min(count, 3) :]
        return tf.reduce_sum(digits[..., -len(powers) :] * powers, axis=-1)

    def read():
        directory = number(tf.constant(4), 4)
        count = tf.minimum(number(directory, 2), size // _ENTRY)
        starts = directory + 2 + _ENTRY * tf.range(count)
        place = tf.where(number(starts, 2) == _ORIENTATION)
        return tf.cond(tf.size(place) > 0, lambda: value_of(starts[place[0, 0]]), lambda: 1)

    def value_of(entry):
        is_long = number(entry + 2, 2) == 4
        return tf.cond(is_long, lambda: number(entry + 8, 4), lambda: number(entry + 8, 2))

    value = tf.cond(size >= 8 + 2 + _ENTRY, read, lambda: 1)
    return tf.where((value >= 1) & (value <= 8), value, 1)


def _padded(data, size):
    return tf.strings.substr(tf.strings.join([data, b"\0" * size]), 0, size)
