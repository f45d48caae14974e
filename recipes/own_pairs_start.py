"""The packaged preset as the start of a run on your own photos, and what it must not end below."""

from halo_search.confidence.probes import contents_hash
from halo_search.errors import InputError
from zoo import evaluation, metrics, presets
from zoo.encoders.point_towers import HEAD

import numpy as np

PRESET = "photos_pfe"
VARIANCES = ("variance_map", "covariance")
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the maps learnt here, the rest is the preset's


def packaged(settings):
    """The preset, whose networks are taken. Raises InputError if it is absent or of other sizes."""
    if PRESET not in presets.list_presets():
        raise InputError(
            f"the preset {PRESET!r} is not packaged here; give --text-weights a folder with a "
            "MiniLM or a name on Hugging Face"
        )
    preset = presets.from_preset(PRESET)
    sizes = (
        ("--max-words", preset.tokenizer.max_words, settings.max_words),
        ("--image-size", preset.image_encoder.input_shape[1], settings.image_size),
    )
    for flag, expected, received in sizes:
        if received != expected:
            raise InputError(
                f"{flag} must be {expected}, as of the preset {PRESET!r}; received {received}. "
                "Other sizes need --text-weights and --image-weights"
            )
    return preset


def begin(points, preset):
    """Sets the maps of `points` to the preset's if their widths are equal; returns whether."""
    weights, preset_weights = maps(points), maps(preset)
    have_equal_shapes = [w.shape for w in weights] == [w.shape for w in preset_weights]
    if have_equal_shapes:
        assign(weights, preset_weights)
    return have_equal_shapes


def keep_best_mean(run, heads, preset):
    """Sets maps to the mean of the preset's and those learnt that ranks the validation best."""
    weights = maps(heads)
    preset_values = [weight.numpy() for weight in maps(preset)]
    learnt_values = [weight.numpy() for weight in weights]

    def set_mean(share):
        values = zip(preset_values, learnt_values, strict=True)
        assign(weights, [(1 - share) * start + share * learnt for start, learnt in values])

    def sum_of_recalls(share):
        set_mean(share)
        return sum(recalls(heads, run.validation).values())

    share = max(SHARES, key=sum_of_recalls)
    set_mean(share)
    print(f"maps: {share:.0%} learnt from these photos, the rest from {PRESET}")


def keep_variances(model, preset):
    """Where the points are the preset's, few photos teach no better variances: sets these and the
    similarity to the preset's, so that the model ranks as it does."""
    if all(map(np.array_equal, maps(model), maps(preset))):
        assign(maps(model, VARIANCES), maps(preset, VARIANCES))
        assign(model.similarity.weights, preset.similarity.weights)
        print(f"variances: those of {PRESET}, as the points are")


def recall(run, preset):
    """R@1 of the preset on the run's test photos, text to image, in percent; None if it was trained
    on one of them. It reads the vectors that the run has stored, so that asking costs a second."""
    seen = evaluation.probes_of(PRESET).trained_on
    if np.isin([contents_hash(path) for path in run.test.records.image_paths], seen).any():
        return None
    return recalls(run.reader(preset), run.test)["t2i_recall@1"]


def recalls(heads, split):
    """Recalls of heads on a split of stored vectors, in percent."""
    encoded = evaluation.encode(heads, split.records, split.source)
    similarity = metrics.PairwiseSimilarity(encoded.images, encoded.captions, heads.similarity)
    image_of_caption = split.records.caption_image
    relevance = metrics.LabelRelevance(np.arange(split.records.num_images), image_of_caption)
    results = metrics.evaluate_retrieval(similarity, relevance)
    return {name: value for name, value in results.items() if "recall" in name}


def maps(model, names=HEAD):
    """The weights of both towers' heads, or of other layers."""
    towers = model.image_encoder, model.caption_encoder
    layers = [tower.get_layer(name) for tower in towers for name in names]
    return [weight for layer in layers for weight in layer.weights]


def assign(weights, values):
    """Sets each weight to its value."""
    for weight, value in zip(weights, values, strict=True):
        weight.assign(value)
