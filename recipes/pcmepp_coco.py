"""PCME++ on COCO, or on Toy Birds when no data are given; its baselines and ablations by flags.

    python recipes/pcmepp_coco.py                                # Toy Birds, minutes on two cores
    python recipes/pcmepp_coco.py --data-dir coco --backbone vit_b_16 --weights clip.safetensors \\
        --bpe bpe_simple_vocab_16e6.txt.gz
    python recipes/pcmepp_coco.py --method infonce               # a baseline
    python recipes/pcmepp_coco.py --pseudo-positive-weight 0     # an ablation

Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024. `--data-dir` holds
`dataset_coco.json` (Karpathy's) and the images of train2014 and val2014. The image backbone is
frozen at first, then everything is trained, the weights of the last epochs are averaged, and the
average is evaluated. The same command resumes a run that was stopped.
"""

from pathlib import Path

import keras
import numpy as np

from zoo import encoders, metrics, models, report, training
from zoo.data import batches, captions, clip_tokenizer, coco, cub, mixing, sources, toy_birds
from zoo.data.size_augmentation import SizeAugmentation

try:
    from recipes.pcmepp_settings import DISTANCES, OWN_SIMILARITY, Settings
except ModuleNotFoundError:  # a script sees its own folder, not the one above
    from pcmepp_settings import DISTANCES, OWN_SIMILARITY, Settings

TOY_ROOT = Path("data") / "toy_birds"


def main(argv=None):
    run_recipe(training.parse(Settings, argv, description=__doc__), load)


def run_recipe(settings, load_splits, measure_more=lambda settings, model: {}):
    """Trains, evaluates and reports; the other recipes differ in splits and in what they add."""
    run = training.RunFolder.open(settings.out, settings)
    if run.finished:
        print(f"{run.path} is finished")
        show(run.metrics)
        return run.metrics
    keras.utils.set_random_seed(settings.seed)
    if settings.mixed_precision:
        keras.config.set_dtype_policy(settings.mixed_precision)
    train, test, truth = load_splits(settings)
    model = build(settings, tokenizer(settings, train))
    fit(settings, run, model, train)
    results = evaluate(settings, run, model, test, truth) | measure_more(settings, model)
    run.save_model(model)
    run.finish(results)
    show(results)
    print(f"Everything is in {run.path}")
    return results


def load(settings):
    """Training split, test split and, on Toy Birds, the number of images each caption fits."""
    if settings.data_dir is None:
        root = toy_birds.generate(TOY_ROOT)
        train, test = (cub.load(root, split=split).records for split in ("trainval", "test"))
        return train, test, toy_birds.true_matches(root, test)
    karpathy = settings.data_dir / "dataset_coco.json"
    train, test = (
        coco.load(karpathy, settings.data_dir, split=split).records for split in ("train", "test")
    )
    return train, test, None


def tokenizer(settings, train):
    if settings.is_clip:
        return clip_tokenizer.read_clip_tokenizer(settings.bpe, settings.max_words)
    return captions.word_tokenizer(train.captions, max_words=settings.max_words)


def build(settings, words):
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
    """The image backbone frozen, then a warm-up of one epoch and the rest, averaged at the end."""
    backbone = model.image_encoder.get_layer("backbone")
    source = sources.Pictures(train, settings.image_size)
    if settings.frozen_epochs:
        backbone.trainable = False
        fit_phase(settings, run, model, "frozen", train, source)
    backbone.trainable = True
    fit_phase(settings, run, model, "training", train, source)


def fit_phase(settings, run, model, phase, train, source):
    frozen = phase == "frozen"
    most = train.num_captions if train.class_names is None else train.num_classes
    batch_size = min(settings.batch_size, most)
    steps = settings.steps_per_epoch or batches.steps_per_epoch(train, batch_size)
    epochs = settings.frozen_epochs if frozen else settings.epochs - settings.frozen_epochs
    rate = settings.learning_rate
    if not frozen:
        rate = training.WarmUpThenDrops(
            rate, settings.warm_up_epochs * steps, [(epochs - settings.last_epochs) * steps]
        )
    model.compile(optimizer(settings, model, rate))
    # The phases must not repeat each other's batches.
    seed = 2 * settings.seed + (not frozen)

    def stream(start_step):
        options = {"batch_size": batch_size, "seed": seed, "start_step": start_step}
        return training_batches(settings, train, model.tokenizer, source, **options)

    callbacks, also = [training.HistoryFile(run.history_path, phase)], {}
    if settings.averaged_epochs and not frozen:
        also["swa"] = training.StochasticWeightAveraging(
            epochs - settings.averaged_epochs, lambda: stream(0).take(min(20, steps))
        )
        callbacks.append(also["swa"])
    resume = training.Resume(run.checkpoints, phase, also=also)
    done = resume.restore(model)
    if done:
        print(f"{phase}: {done} of {epochs} epochs are done already")
    model.fit(
        stream(done * steps),
        epochs=epochs,
        initial_epoch=done,
        steps_per_epoch=steps,
        shuffle=False,  # the stream is shuffled already
        callbacks=[*callbacks, resume],
        verbose=2,
    )


def training_batches(settings, train, words, source, batch_size, **place):
    """Pairs of classes (Toy Birds) or of captions (COCO), augmented and mixed."""
    make = batches.class_pairs if train.class_names is not None else batches.image_caption_pairs
    augmentation = SizeAugmentation(
        crop_scale=(0.5, 1.0) if settings.crop_and_flip else None,
        flip=settings.crop_and_flip,
        word_dropping=settings.word_dropping,
    )
    stream = make(train, words, source, batch_size=batch_size, augmentation=augmentation, **place)
    if not settings.mixed_share:
        return stream
    return mixing.mix_batches(stream, settings.mixed_share, **place)


def optimizer(settings, model, learning_rate):
    """AdamP with the paper's groups: backbones slower, their first blocks slowest of all."""
    rates = models.pooled_rates(
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


def evaluate(settings, run, model, test, matches):
    pictures = sources.Pictures(test, settings.image_size, cache=False)
    split = report.encode(model, test, pictures)
    own = OWN_SIMILARITY[settings.method]
    names = dict.fromkeys(own if name == "own" else name for name in settings.test_similarities)
    if split.image_uncertainty is None:  # points have no distributions to compare
        names = [name for name in names if name in ("cosine", "mean")]
    results = report.evaluate(model, split, list(names))
    if settings.annotations_dir:
        results["coco"] = metrics.coco_benchmark(
            split.pairs(model.similarity).kept(),
            test.image_ids,
            test.caption_ids,
            settings.annotations_dir,
        )
    if matches is not None and split.image_uncertainty is not None:
        results["ambiguity_spearman"] = report.spearman_of_matches(split, matches)
    report.draw(run.plots, results, split, model, pictures.picture, matches)
    history = training.read_history(run.history_path)
    report.save(report.training_curves(history), run.plots / "training_curves.png")
    return {**results, "seconds": float(np.nansum(history["seconds"]))}


def show(results):
    report.print_results(results["retrieval"], "test split, in %", results["chance"])
    for side, worth in results.get("uncertainty", {}).items():
        print(
            f"{side}: Spearman of uncertainty bin and R@1 {worth['spearman_of_bins']:+.2f}; "
            f"area under risk–coverage {100 * worth['risk_coverage']['aurc']:.1f} "
            f"(at random {100 * worth['risk_coverage']['random_aurc']:.1f})"
        )
    if "ambiguity_spearman" in results:
        rho = results["ambiguity_spearman"]
        print(f"Spearman of caption uncertainty and true number of matches {rho:+.2f}")


if __name__ == "__main__":
    training.run(main)
