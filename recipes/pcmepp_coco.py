"""PCME++ on COCO, or on Toy Birds when no data are given; its baselines and ablations by flags.

    python recipes/pcmepp_coco.py                                # Toy Birds, minutes on two cores
    python recipes/pcmepp_coco.py --data-dir coco --backbone vit_b_16 --weights clip.safetensors \\
        --bpe bpe_simple_vocab_16e6.txt.gz
    python recipes/pcmepp_coco.py --toy scenes --max-words 48 --batch-size 128 --steps-per-epoch 32
    python recipes/pcmepp_coco.py --method infonce               # a baseline
    python recipes/pcmepp_coco.py --pseudo-positive-weight 0     # an ablation

Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024. `--data-dir` holds
`dataset_coco.json` (Karpathy's) and the images of train2014 and val2014. The image backbone is
frozen at first, then everything is trained, the weights of the last epochs are averaged, and the
average is evaluated. The same command resumes a run that was stopped.
"""

import math

from zoo import cli, encoders, losses, models, recipe, similarities, training
from zoo.data import batches, captions, clip_tokenizer, features, mixing, sources
from zoo.data.size_augmentation import SizeAugmentation

try:
    from recipes.pcmepp_settings import DISTANCES, Settings
except ModuleNotFoundError:  # a script sees its own folder, not the one above
    from pcmepp_settings import DISTANCES, Settings


SQUARED = (
    similarities.ClosedFormSampledDistance,
    similarities.SquaredEuclidean,
    similarities.SquaredWasserstein2,
)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return recipe.run(settings, load, build, fit, recipe.against_truth)


def load(settings):
    """COCO; without data Toy Birds, which has unseen classes, or Toy Scenes, in COCO's layout."""
    birds = settings.data_dir is None and settings.toy == "birds"
    return (recipe.cub_pictures if birds else recipe.coco_pictures)(settings)


def tokenizer(settings, records):
    if settings.is_clip:
        return clip_tokenizer.read_clip_tokenizer(settings.bpe, settings.max_words)
    return captions.word_tokenizer(records.captions, max_words=settings.max_words)


def build(settings, train):
    words = tokenizer(settings, train.records)
    towers = {
        "image_backbone": image_backbone(settings),
        "tokenizer": words,
        "dim": settings.dim,
        "word_dim": settings.word_dim,
        "pooling": settings.pooling,
        "drop_rate": settings.drop_rate,
        "seed": settings.seed,
    }
    if settings.is_clip:
        towers["caption_backbone"] = encoders.clip_text(
            settings.network,
            settings.weights,
            vocabulary_size=words.vocabulary_size(),
            max_length=settings.max_words,
            variance_block=settings.is_probabilistic,
        )
    if settings.method == "infonce":
        return models.infonce(**towers)
    if settings.method == "vse_infinity":
        return models.vse_infinity(margin=settings.margin, **towers)
    # PCME's loss has no pseudo-positives, and its distance is not squared.
    weight = 0.0 if settings.method == "pcme" else settings.pseudo_positive_weight
    return models.pcmepp(
        distance=DISTANCES[settings.method],
        scale=settings.scale,
        shift=settings.shift,
        pseudo_positive_weight=weight,
        kl_weight=settings.kl_weight,
        kl_reduction=settings.kl_reduction,
        log_variance_bias=settings.log_variance_bias,
        **towers,
    )


def image_backbone(settings):
    if settings.is_clip:
        return encoders.clip_image(
            settings.network,
            settings.weights,
            settings.image_size,
            variance_block=settings.is_probabilistic,
        )
    return encoders.convolutional(settings.network, settings.image_size, settings.weights)


def fit(settings, run, model, train):
    """The means alone, the image backbone frozen, then everything, averaged at the end.

    A backbone that is to be frozen is so while the means are alone too.
    """
    backbone = model.image_encoder.get_layer("backbone")
    early, source = model, train.source
    if settings.frozen_epochs:
        backbone.trainable = False
        if settings.cache_features:
            stored = features.cached(run.path, backbone, train.records, train.source)
            early = model.with_image_encoder(encoders.head_alone(model.image_encoder))
            source = sources.Features(stored)
    if settings.mean_epochs:
        fit_means(settings, run, early, train.records, source)
    if settings.frozen_epochs:
        fit_frozen(settings, run, early, train.records, source)
        backbone.trainable = True
    fit_everything(settings, run, model, train.records, train.source)


def fit_means(settings, run, model, records, source):
    """What CLIP's weights bring: means that rank better than chance before there is a variance."""
    stream, steps = training_batches(settings, records, model.tokenizer, source, phase=1)
    towers = model.image_encoder, model.caption_encoder
    means, variances = model, []
    if isinstance(model.loss, losses.TripletRanking):  # hardest negatives would collapse here
        sum_of_hinges = losses.TripletRanking(settings.margin, mining="sum")
        means = models.DualEncoder(*towers, model.similarity, sum_of_hinges)
    if isinstance(model.loss, losses.MatchingCrossentropy):
        distance = similarities.SquaredEuclidean(settings.scale, settings.shift)
        means = models.DualEncoder(*towers, distance, losses.MatchingCrossentropy())
        variances = [part for tower in towers for part in tower.get_layer("head").variance_parts]
    for part in variances:
        part.trainable = False
    rate = training.WarmUpThenDrops(settings.learning_rate, settings.warm_up_epochs * steps)
    means.compile(optimizer(settings, means, rate))
    training.fit_phase(run, means, "means", stream, settings.mean_epochs, steps)
    for part in variances:
        part.trainable = True
    if means.similarity is not model.similarity:
        hand_over(means.similarity, model)


def hand_over(learned, model):
    """Begins with the logits that the means have learned: CSD's shift makes up for its Σσ²."""
    if not isinstance(model.similarity, SQUARED):
        return  # PCME's distance is a root, for which another scale and shift are right
    total = 0.0
    if isinstance(model.similarity, similarities.ClosedFormSampledDistance):
        heads = (tower.get_layer("head") for tower in (model.image_encoder, model.caption_encoder))
        total = sum(head.dim * math.exp(head.covariance.initial_log_variance) for head in heads)
    scale, shift = float(learned.scale), float(learned.shift)
    model.similarity.scale.assign(scale)
    model.similarity.shift.assign(shift + scale * total)


def fit_frozen(settings, run, model, records, source):
    model.compile(optimizer(settings, model, settings.learning_rate))
    stream, steps = training_batches(settings, records, model.tokenizer, source, phase=0)
    training.fit_phase(run, model, "frozen", stream, settings.frozen_epochs, steps)


def fit_everything(settings, run, model, records, source):
    stream, steps = training_batches(settings, records, model.tokenizer, source, phase=2)
    epochs = settings.epochs - settings.frozen_epochs - settings.mean_epochs
    rate = training.WarmUpThenDrops(
        settings.learning_rate,
        settings.warm_up_epochs * steps,
        [(epochs - settings.last_epochs) * steps],
    )
    model.compile(optimizer(settings, model, rate))
    also = {}
    if settings.averaged_epochs:
        also["swa"] = training.StochasticWeightAveraging(
            epochs - settings.averaged_epochs, lambda: stream(0).take(min(20, steps))
        )
    training.fit_phase(run, model, "training", stream, epochs, steps, also=also)


def training_batches(settings, records, words, source, phase):
    """Pairs of classes (Toy Birds) or of captions (COCO), augmented and mixed.

    Returns:
        A function from a step to the batches from there on, and how many an epoch has.
    """
    by_class = records.class_names is not None
    make = batches.class_pairs if by_class else batches.image_caption_pairs
    most = records.num_classes if by_class else records.num_captions
    batch_size = min(settings.batch_size, most)
    crops = settings.crop_and_flip and isinstance(source, sources.Pictures)
    augmentation = SizeAugmentation(
        crop_scale=(0.5, 1.0) if crops else None,
        flip=crops,
        word_dropping=settings.word_dropping,
    )
    seed = 3 * settings.seed + phase  # the phases must not repeat each other's batches

    def stream(start_step):
        place = {"seed": seed, "start_step": start_step}
        pairs = make(
            records, words, source, batch_size=batch_size, augmentation=augmentation, **place
        )
        if not settings.mixed_share:
            return pairs
        return mixing.mix_batches(pairs, settings.mixed_share, **place)

    return stream, settings.steps_per_epoch or batches.steps_per_epoch(records, batch_size)


def optimizer(settings, model, learning_rate):
    """AdamP with the paper's groups: backbones slower, their first blocks slowest of all."""
    rates = training.dual_encoder_rates(
        model, settings.image_rate, settings.caption_rate, settings.layer_decay
    )
    optimizer = training.LayerwiseAdamP(
        learning_rate,
        rates=rates,
        weight_decay=settings.weight_decay,
        global_clipnorm=settings.clip_norm,
    )
    optimizer.exclude_from_weight_decay(var_list=model.similarity.trainable_variables)
    return optimizer


if __name__ == "__main__":
    cli.run(main)
