"""How far the numbers of an export are from its Keras model's, measured on the files as saved."""

import numpy as np
import tensorflow as tf

from export import probes
from zoo import embeddings
from zoo.data import images

COUNT = 32


def compare(folder, model, batch_size=None, resize="crop", crop_fraction=1.0):
    """Loads an export and measures it against its model on seeded pictures and captions.

    Args:
        folder: of the version.
        model: the `DualEncoder` that was exported.
        batch_size, resize, crop_fraction: as exported.

    Returns:
        A dict: for each of `encode_images` (or `encode_features`) and `encode_captions`, the
        largest absolute difference of every output, and with both the same of `match`, relative
        to its largest value, as `match/similarity`, and the share of captions whose best image
        is the same, as `match/same_best_image`.
    """
    loaded = tf.saved_model.load(str(folder))
    signatures = loaded.signatures
    count = batch_size or COUNT
    # By bytes where the model takes pictures, so that decoding is compared as well.
    images_name = "encode_images" if "encode_images" in signatures else "encode_features"
    (spec,) = signatures[images_name].structured_input_signature[1].values()
    if images_name == "encode_images":
        raw = probes.pictures(count)
        size = signatures["encode_pixels"].structured_input_signature[1]["pixels"].shape[1]
        fed = np.stack([images.prepare(one, size, resize, crop_fraction) for one in raw])
        fed = fed.astype(np.float32)
    else:
        raw = fed = probes.numbers(count, spec.shape[1:])
    wanted = {images_name: (raw, model.image_encoder(fed, training=False))}
    if "encode_captions" in signatures:
        if model.reads_caption_vectors:
            strings = ids = probes.numbers(count, model.caption_encoder.input_shape[1:], seed=1)
        else:
            strings = probes.sentences(count, model.tokenizer)
            ids = model.tokenize(strings)
        wanted["encode_captions"] = (strings, model.caption_encoder(ids, training=False))
    errors = {}
    for name, (request, embedding) in wanted.items():
        (argument,) = signatures[name].structured_input_signature[1]
        outputs = signatures[name](**{argument: tf.constant(request)})
        reference = {key: value for key, value in embedding.items() if value is not None}
        if embeddings.has_uncertainty(embedding):
            reference["uncertainty"] = model.uncertainty(embedding)
        for key, value in reference.items():
            errors[f"{name}/{key}"] = _largest_difference(outputs[key], value)
    if len(wanted) == 2:
        (pictures, pictures_wanted), (strings, strings_wanted) = wanted.values()
        logits = np.asarray(model.similarity(pictures_wanted, strings_wanted))
        matched = signatures["match"](
            **{spec.name: tf.constant(pictures), "captions": tf.constant(strings)}
        )["similarity"].numpy()
        scale = max(1.0, float(np.abs(logits).max()))
        errors["match/similarity"] = _largest_difference(matched, logits) / scale
        same = matched.argmax(axis=0) == logits.argmax(axis=0)
        errors["match/same_best_image"] = float(same.mean())
    return errors


def _largest_difference(one, other):
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    return float(np.abs(one - other).max())
