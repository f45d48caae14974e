"""What a request may hold: bytes of pictures, pixels and strings, checked inside the graph.

A failed check is an `INVALID_ARGUMENT` with a sentence for whoever sent the request. Everything
that passes has a finite embedding.
"""

import tensorflow as tf

from export import picture_headers
from export.choices import MAX_PIXELS
from zoo.data import images


def require(condition, message, *values):
    """Fails the request unless `condition` holds."""
    # What the caller computes next must depend on it, or the graph might never run it.
    return tf.debugging.Assert(condition, [message, *values], summarize=4)


def decoded(contents, size, mode, crop_fraction, max_pixels=MAX_PIXELS):
    """Bytes of pictures as the training pipeline makes them, or refused by name.

    Args:
        contents: strings `(batch,)`.
        size, mode, crop_fraction: see `zoo.data.images.prepare`.
        max_pixels: pictures of a larger area are refused by their header, before any memory is
            taken for them.

    Returns:
        uint8 `(batch, size, size, 3)`.
    """

    def one(content):
        with tf.control_dependencies([_check_area(content, max_pixels)]):
            content = tf.identity(content)
        return images.fit(images.decode_portable(content), size, mode, crop_fraction)

    with tf.control_dependencies([_check_count(contents, "images")]):
        contents = tf.identity(contents)
    spec = tf.TensorSpec((size, size, 3), tf.uint8)
    return tf.map_fn(one, contents, fn_output_signature=spec, parallel_iterations=16)


def pixels(values):
    """Pixels `(batch, height, width, 3)` in 0 … 255, checked."""
    in_range = tf.reduce_all((values >= 0.0) & (values <= 255.0))  # NaN is not
    check = require(in_range, "`pixels` must be numbers in 0 … 255")
    with tf.control_dependencies([_check_count(values, "pixels"), check]):
        return tf.identity(values)


def features(values, name="features"):
    """Features of pictures `(batch, …)`, or vectors of captions, checked."""
    finite = require(tf.reduce_all(tf.math.is_finite(values)), f"`{name}` must be finite")
    with tf.control_dependencies([_check_count(values, name), finite]):
        return tf.identity(values)


def text(captions):
    """Captions as valid UTF-8: bytes that are not become U+FFFD, which no vocabulary has."""
    with tf.control_dependencies([_check_count(captions, "captions")]):
        captions = tf.identity(captions)
    return tf.strings.unicode_transcode(captions, "UTF-8", "UTF-8", errors="replace")


def declared(inputs, specs):
    """The inputs of a signature, if they have the shapes that it declares.

    TensorFlow does not compare them when a saved signature is called: a picture of another size
    would get other numbers, and one row would stand for many.

    Args:
        inputs: tensors.
        specs: a `tf.TensorSpec` of each.
    """
    # Behind a placeholder, or what is known of a shape when the graph is built would be taken for
    # granted; as text, since a rank is checked as well.
    unknown = tf.TensorShape(None)
    hidden = [tf.raw_ops.PlaceholderWithDefault(input=value, shape=unknown) for value in inputs]
    shapes = [tf.strings.as_string(tf.raw_ops.Shape(input=value)) for value in hidden]
    checks = []
    for shape, spec in zip(shapes, specs, strict=True):
        sizes = spec.shape.as_list()
        found = tf.strings.reduce_join(shape, separator=", ")
        pattern = ", ".join(r"\d+" if size is None else str(size) for size in sizes)
        names = ", ".join("N" if size is None else str(size) for size in sizes)
        message = f"`{spec.name}` must have shape ({names}{',' * (len(sizes) == 1)}); received"
        checks.append(require(tf.strings.regex_full_match(found, pattern), message, found))
    with tf.control_dependencies(checks):
        return [tf.identity(value) for value in inputs]


def finite(embedding):
    """The embedding, if it is finite. Features far outside of what was trained may overflow."""
    checks = [
        require(tf.reduce_all(tf.math.is_finite(value)), f"the embedding's {key} is not finite")
        for key, value in embedding.items()
        if value.dtype.is_floating
    ]
    with tf.control_dependencies(checks):
        return {key: tf.identity(value) for key, value in embedding.items()}


def _check_count(batch, name):
    return require(tf.shape(batch)[0] > 0, f"`{name}` must hold at least one item")


def _check_area(content, max_pixels):
    known, height, width = picture_headers.size(content)
    kind = require(known, f"`images` must be the bytes of {picture_headers.NAMES} files")
    with tf.control_dependencies([kind]):
        height, width = tf.identity(height), tf.identity(width)
    message = f"`images` must have at most {max_pixels:,} pixels; received height and width"
    # Divided, since the product of two declared sizes of 2³² does not fit.
    inside = (height > 0) & (width > 0) & (height <= max_pixels // tf.maximum(width, 1))
    with tf.control_dependencies([require(inside, message, height, width)]):
        is_bare = picture_headers.is_cmyk_without_marker(content)
    return require(
        ~is_bare,
        "`images` must not be CMYK JPEG files without Adobe's marker, of which programs disagree "
        "whether numbers are ink or light; save them as RGB",
    )
