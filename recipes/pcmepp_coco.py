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

from pcmepp_settings import DISTANCES, Settings
from zoo import cli, encoders, losses, models, report, similarities, training
from zoo.data import (
    MixedStream,
    Stream,
    batches,
    captions,
    clip_tokenizer,
    phase_seed,
    sources,
)
from zoo.data.size_augmentation import SizeAugmentation

import keras

PHASES = ("frozen", "means", "training")
SQUARED = (
    similarities.ClosedFormSampledDistance,
    similarities.SquaredEuclidean,
    similarities.SquaredWasserstein2,
)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return train(settings, data(settings))


def data(settings):
    """COCO; without data Toy Birds, which has unseen classes, or Toy Scenes, in COCO's layout."""
    shown = settings.pictures()
    if settings.data_dir or settings.toy == "birds":
        return settings.data("coco", "toy_birds", **shown)
    return settings.data("coco", "toy_scenes", num_images=settings.toy_images, **shown)


def train(settings, data, prepare=lambda run: None, measure_more=None, make=None):
    """Builds, fits and evaluates.

    Args:
        settings: PCME++'s.
        data: what is read, a description for `zoo.data.open`.
        make: function `(settings, train) -> DualEncoder`, in place of `build`.
        prepare: function of the run that may replace its splits.
        measure_more: function `(run, model) -> dict` of further results.
    """
    # The weights of the last epochs are averaged, so there is no best one to choose.
    run = training.start(settings, data, select="last" if settings.averaged_epochs else None)
    if run.finished:
        return report.show(run)
    prepare(run)
    with run.replicas():
        model = (make or build)(settings, run.train)
        run.model = model.with_auxiliaries(*settings.ranking_terms())
        fit(settings, run)
    return report.finish(run, **settings.evaluation(), measure_more=measure_more)


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
            variance_blocks=settings.variance_blocks if settings.is_probabilistic else 0,
        )
    if settings.method == "infonce":
        return models.infonce(temperature=settings.temperature, **towers)
    if settings.method == "vse_infinity":
        return models.vse_infinity(margin=settings.margin, **towers)
    return models.pcmepp(
        distance=DISTANCES[settings.method],
        scale=settings.scale,
        shift=settings.shift,
        num_samples=settings.num_samples,
        pseudo_positive_weight=settings.pseudo_positive_weight,
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
            variance_blocks=settings.variance_blocks if settings.is_probabilistic else 0,
        )
    return encoders.convolutional(settings.network, settings.image_size, settings.weights)


def fit(settings, run):
    """The means alone, the image backbone frozen, then everything, averaged at the end.

    A backbone that is to be frozen is so while the means are alone too.
    """
    backbone = run.model.image_encoder.get_layer("backbone")
    early, train, validation = run.model, run.train, run.validation
    if settings.frozen_epochs:
        backbone.trainable = False
        if settings.cache_features:
            early = run.model.with_image_encoder(encoders.head_alone(run.model.image_encoder))
            train, validation = run.stored_features(backbone)
    if settings.mean_epochs:
        fit_means(settings, run, early, train, validation)
    if settings.frozen_epochs:
        freeze_pretrained(backbone)
        stream = training_batches(settings, early, train, "frozen")
        rate = settings.learning_rate
        if not settings.training_epochs:  # this phase is the last
            rate = learning_rate(settings, settings.frozen_epochs, stream.steps_per_epoch)
        early.compile(optimizer(settings, early, rate))
        run.fit(early, "frozen", stream, settings.frozen_epochs, validation=validation)
        thaw(backbone)
    if settings.training_epochs:
        fit_everything(settings, run)


def thaw(backbone):
    """Makes all of a backbone trainable, whatever of it was frozen."""
    backbone.trainable = False  # Keras passes on to the parts only what changes the whole
    backbone.trainable = True


def freeze_pretrained(backbone):
    """Freezes what a backbone has weights for: CLIP's new blocks of the variance train."""
    thaw(backbone)  # a frozen model has no part that trains
    for layer in backbone.layers:
        layer.trainable = "variance" in layer.name


def fit_means(settings, run, model, train, validation):
    """What CLIP's weights bring: means that rank better than chance before there is a variance."""
    stream = training_batches(settings, model, train, "means")
    towers = model.image_encoder, model.caption_encoder
    means, variances = model, []
    if isinstance(model.loss, losses.TripletRanking):  # hardest negatives would collapse here
        sum_of_hinges = losses.TripletRanking(settings.margin, mining="sum")
        means = models.DualEncoder(
            *towers, model.similarity, sum_of_hinges, tokenizer=model.tokenizer
        )
    if isinstance(model.loss, losses.MatchingCrossentropy):
        distance = similarities.SquaredEuclidean(settings.scale, settings.shift)
        loss = losses.MatchingCrossentropy()
        means = models.DualEncoder(*towers, distance, loss, tokenizer=model.tokenizer)
        variances = [part for tower in towers for part in tower.get_layer("head").variance_parts]
    for part in variances:
        part.trainable = False
    warm_up = settings.warm_up_epochs * stream.steps_per_epoch
    rate = training.WarmUpThenDrops(settings.learning_rate, warm_up)
    means.compile(optimizer(settings, means, rate))
    run.fit(means, "means", stream, settings.mean_epochs, validation=validation)
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


def fit_everything(settings, run):
    model, stream = run.model, training_batches(settings, run.model, run.train, "training")
    steps, epochs = stream.steps_per_epoch, settings.training_epochs
    model.compile(optimizer(settings, model, learning_rate(settings, epochs, steps)))
    averaging = {}
    if settings.averaged_epochs:
        averaging["swa"] = training.StochasticWeightAveraging(
            epochs - settings.averaged_epochs, lambda: stream(0).take(min(20, steps))
        )
    run.fit(model, "training", stream, epochs, stateful_callbacks=averaging)


def learning_rate(settings, epochs, steps):
    """A linear warm-up, then steps for COCO or a cosine for RedCaps."""
    peak, rising = settings.learning_rate, settings.warm_up_epochs * steps
    if settings.schedule == "steps":
        return training.WarmUpThenDrops(peak, rising, [(epochs - settings.last_epochs) * steps])
    return keras.optimizers.schedules.CosineDecay(
        0.0 if rising else peak,
        max(1, epochs * steps - rising),
        warmup_target=peak if rising else None,
        warmup_steps=rising,
    )


def training_batches(settings, model, train, phase):
    """Pairs of classes (Toy Birds) or of captions (COCO), augmented and mixed."""
    by_class = train.records.class_names is not None
    crops = settings.crop_and_flip and isinstance(train.source, sources.Pictures)
    stream = Stream(
        batches.class_pairs if by_class else batches.image_caption_pairs,
        train,
        model.tokenizer,
        settings.batch_size,
        seed=phase_seed(settings.seed, phase, PHASES),
        augmentation=SizeAugmentation(
            crop=settings.crop if crops else None,
            flip=crops,
            word_dropping=settings.word_dropping,
        ),
        steps=settings.steps_per_epoch,
    )
    if not settings.mixed_share:
        return stream
    options = {
        "alpha": settings.mixing_beta,
        "mixup": settings.mixup,
        "whole_batches": settings.mix_whole_batches,
    }
    return MixedStream(stream, settings.mixed_share, options)


def optimizer(settings, model, learning_rate):
    """AdamP with the paper's groups: backbones slower, their first blocks slowest of all."""
    rates = training.dual_encoder_rates(
        model,
        settings.image_rate,
        settings.caption_rate,
        settings.layer_decay,
        settings.decay_last_block,
    )
    optimizer = training.LayerwiseAdamP(
        learning_rate,
        rates=rates,
        beta_2=settings.beta_2,
        epsilon=settings.epsilon,
        weight_decay=settings.weight_decay,
        global_clipnorm=settings.clip_norm,
    )
    optimizer.exclude_from_weight_decay(var_list=model.similarity.trainable_variables)
    return optimizer


if __name__ == "__main__":
    cli.run(main)
