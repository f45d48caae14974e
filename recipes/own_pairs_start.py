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
    found = {
        "--max-words": preset.tokenizer.max_words,
        "--image-size": preset.image_encoder.input_shape[1],
    }
    wanted = {"--max-words": settings.max_words, "--image-size": settings.image_size}
    for flag, value in found.items():
        if wanted[flag] != value:
            raise InputError(
                f"{flag} must be {value}, as of the preset {PRESET!r}; received {wanted[flag]}. "
                "Other sizes need --text-weights and --image-weights"
            )
    return preset


def begin(points, preset):
    """Sets the maps of `points` to the preset's; whether they are of the same widths."""
    own, start = maps(points), maps(preset)
    fits = [weight.shape for weight in own] == [weight.shape for weight in start]
    if fits:
        assign(own, start)
    return fits


def keep_best_mean(run, heads, preset):
    """Sets maps to the mean of the preset's and those learnt that ranks the validation best."""
    own, start = maps(heads), [weight.numpy() for weight in maps(preset)]
    learnt = [weight.numpy() for weight in own]

    def mix(share):
        pairs = zip(start, learnt, strict=True)
        assign(own, [(1 - share) * first + share * last for first, last in pairs])

    def ranked(share):
        mix(share)
        return sum(recalls(heads, run.validation).values())

    share = max(SHARES, key=ranked)
    mix(share)
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
    found = evaluation.encode(heads, split.records, split.source)
    pairs = metrics.PairwiseSimilarity(found.images, found.captions, heads.similarity)
    owners = split.records.caption_image
    relevance = metrics.LabelRelevance(np.arange(split.records.num_images), owners)
    found = metrics.evaluate_retrieval(pairs, relevance)
    return {name: value for name, value in found.items() if "recall" in name}


def maps(model, names=HEAD):
    """The weights of both towers' heads, or of other layers."""
    towers = model.image_encoder, model.caption_encoder
    return [weight for t in towers for name in names for weight in t.get_layer(name).weights]


def assign(weights, values):
    for weight, value in zip(weights, values, strict=True):
        weight.assign(value)
