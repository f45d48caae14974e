"""What the pairwise forms share: checked inputs, products and distances without cancellation."""

from keras import ops

from zoo.embeddings import elements, gaussian, points


def gaussian_pair(images, captions):
    """Checked `(mean, log_variance)` of both sides, float32 `(N, dim)` twice and `(M, dim)` twice.
    Raises ValueError if one side is not a Gaussian or the dimensions differ."""
    images, captions = gaussian(images, "images"), gaussian(captions, "captions")
    _check_dim(images[0], captions[0])
    return images, captions


def gaussian_rows(first, second, names):
    """Like `gaussian_pair`, for Gaussians that are compared row by row. Raises ValueError as
    `gaussian_pair`, or if they are not as many; it calls them by their names."""
    (mean, log), (other, other_log) = gaussian_pair(first, second)
    if None not in (mean.shape[0], other.shape[0]) and mean.shape != other.shape:
        raise ValueError(
            f"`{names[0]}` and `{names[1]}` must be pairs of one shape; received "
            f"{tuple(mean.shape)} and {tuple(other.shape)}"
        )
    return (mean, log), (other, other_log)


def point_pair(images, captions):
    """Checked points, float32 `(N, dim)` and `(M, dim)`; a Gaussian is replaced by its mean. Raises
    ValueError if a set was given or the dimensions differ."""
    images, captions = points(images, "images"), points(captions, "captions")
    _check_dim(images, captions)
    return images, captions


def element_pair(images, captions):
    """Checked `(elements, mask)` of both sides, `(N, K, dim)` and `(M, L, dim)`; masks or None.
    Raises ValueError if one side is not a set, the dimensions differ or a mask does not fit."""
    sides = elements(images, "images"), elements(captions, "captions")
    _check_dim(sides[0][0], sides[1][0])
    for name, (values, mask) in zip(("images", "captions"), sides, strict=True):
        if mask is not None and not _agree(mask.shape, values.shape[:2]):
            raise ValueError(
                f"the 'mask' of `{name}` must have shape (batch, num_elements) = "
                f"{tuple(values.shape[:2])}; received {tuple(mask.shape)}"
            )
    return sides


def product(a, b):
    """a bᵀ of `(N, dim)` and `(M, dim)`: `(N, M)`."""
    return ops.matmul(a, ops.transpose(b))


def outer_sum(rows, columns):
    """`rows_i + columns_j` of `(N,)` and `(M,)`: `(N, M)`."""
    return ops.expand_dims(rows, 1) + ops.expand_dims(columns, 0)


def common_centre(a, b):
    """A constant `(1, dim)` amid both batches; subtracting it leaves differences as they are."""
    some = slice(64), slice(None)  # a tuple, as symbolic tensors take no bare slice
    centre = ops.mean(a[some], axis=0, keepdims=True) + ops.mean(b[some], axis=0, keepdims=True)
    return ops.stop_gradient(0.5 * centre)


def about_common_centre(images, captions):
    """Two `gaussian_pair` sides, shifted and scaled alike per dimension, and log(scale²)."""
    (image_mean, image_log), (caption_mean, caption_log) = images, captions
    mean, log = common_centre(image_mean, caption_mean), common_centre(image_log, caption_log)
    inverse = ops.exp(-0.5 * log)
    return (
        ((image_mean - mean) * inverse, image_log - log),
        ((caption_mean - mean) * inverse, caption_log - log),
        log,
    )


def squared_distance(a, b):
    """‖a_i − b_j‖² of `(N, dim)` and `(M, dim)` by one matrix product: `(N, M)`, ≥ 0."""
    return joint_squared_distance([(a, b)])


def joint_squared_distance(parts):
    """`squared_distance` of vectors given in parts, `[(a, b), …]`, without joining them."""
    rows, columns, products = 0.0, 0.0, 0.0
    for a, b in parts:
        centre = common_centre(a, b)
        a, b = a - centre, b - centre
        rows = rows + ops.sum(a * a, axis=-1)
        columns = columns + ops.sum(b * b, axis=-1)
        products = products + product(a, b)
    return ops.maximum(outer_sum(rows, columns) - 2.0 * products, 0.0)


def safe_sqrt(x):
    """√x with the gradient 0, not infinity, at x = 0, where it is 1e-15."""
    return ops.sqrt(ops.maximum(x, 1e-30))


def unit(x):
    """x / ‖x‖₂ along the last axis; a vector shorter than 1e-6 is divided by 1e-6 instead."""
    squared_norm = ops.sum(x * x, axis=-1, keepdims=True)
    return x * ops.rsqrt(ops.maximum(squared_norm, 1e-12))


def sizes(x):
    """The shape as a tuple of ints, with a scalar tensor where a size is unknown until run."""
    dynamic = ops.shape(x)
    return tuple(d if s is None else s for s, d in zip(x.shape, dynamic, strict=True))


def elements_first(x):
    """`(batch, elements, dim)` to `(elements · batch, dim)`. After the product of two of these
    every reduction over elements runs over an outer axis, along contiguous memory."""
    return ops.reshape(ops.transpose(x, (1, 0, 2)), (-1, x.shape[-1]))


def _check_dim(images, captions):
    """Raises ValueError if the last dimensions differ; an unknown one fits any."""
    if not _agree(images.shape[-1:], captions.shape[-1:]):
        raise ValueError(
            "`images` and `captions` must have the same last dimension; received "
            f"{images.shape[-1]} (images {tuple(images.shape)}) and {captions.shape[-1]} "
            f"(captions {tuple(captions.shape)})"
        )


def _agree(received, expected):
    """Whether two shapes agree, where None fits any size."""
    return len(received) == len(expected) and all(
        a is None or b is None or a == b for a, b in zip(received, expected, strict=True)
    )
