"""DivE on COCO, or on Toy Scenes when no data are given; PVSE and the ablations by flags.

    python recipes/dive_coco.py                                    # Toy Scenes' regions, a minute
    python recipes/dive_coco.py --features resnet152               # their pictures
    python recipes/dive_coco.py --data-dir coco_precomp --features regions
    python recipes/dive_coco.py --data-dir coco --image-weights imagenet
    python recipes/dive_coco.py --data-dir coco --features resnext_bert \\
        --image-weights resnext101_32x8d.safetensors --bert bert_base --bert-vocabulary vocab.txt
    python recipes/dive_coco.py --method pvse                      # PIE-Net and MIL instead
    python recipes/dive_coco.py --similarity chamfer --num-slots 2 # ablations
    python recipes/dive_coco.py --ensemble runs/one runs/other --out runs/both

Kim et al., "Improving Cross-Modal Retrieval with Set of Diverse Embeddings", CVPR 2023.
`--data-dir` holds Karpathy's `dataset_coco.json` and the images, or SCAN's files for
`--features regions`. The same command resumes a run that was stopped. Besides the usual results,
metrics.json has what the sets are like: circular variance, retrieval by one element alone, and how
far the elements specialise.

The paper prints how it trains on regions; for pictures it refers to PVSE and VSE∞ and to a
supplement that we do not have, so `dive_settings.PROTOCOLS` takes what is of pictures from the code
of the three.
"""

from dive_settings import Settings
from halo_search.errors import InputError
from zoo import cli, encoders, evaluation, losses, models, plots, training
from zoo.data import batches, captions, read_bert_tokenizer
from zoo.data.pipeline.augmentation import SizeAugmentation
from zoo.models.run_folder import RunFolder

SMALL_BERT = {"num_layers": 2, "num_heads": 4, "hidden_dim": 64}


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return train(settings, data(settings, "coco"))


def data(settings, loader):
    """Regions, or pictures by a loader of `zoo.data.LOADERS`."""
    if settings.features == "regions":
        loader, options = "regions", {}
    else:
        options = settings.pictures()
    layout = {} if settings.data_dir else {"layout": loader}
    return settings.data(loader, "toy_scenes", **options, **layout)


def train(settings, data):
    """Builds, fits and evaluates; or averages finished runs."""
    if settings.ensemble:
        folder = RunFolder.open(settings.out, settings, data=data)
        return training.finish_ensemble(folder, settings.ensemble, **settings.benchmark())
    run = training.start(settings, data)
    if run.finished:
        return training.show(run)
    with run.replicas():
        run.model = build(settings, run.train).with_auxiliaries(*settings.ranking_terms())
        train_phases(settings, run)
    return training.finish(
        run, **settings.evaluation(), measure_more=measure_sets, report=plots.draw_run
    )


def build(settings, train):
    tokenizer, caption_backbone = captions_of(settings, train.records)
    word_vectors, word_dim = captions.word_vectors(
        settings.glove, tokenizer, settings.word_dim, settings.seed
    )
    common = {
        "image_backbone": image_backbone(settings, train.source),
        "caption_backbone": caption_backbone,
        "tokenizer": tokenizer,
        "dim": settings.dim,
        "similarity": settings.own_similarity,
        "alpha": settings.alpha,
        "margin": settings.margin,
        "discrepancy_weight": settings.discrepancy_weight,
        "diversity_weight": settings.own_diversity,
        "word_dim": word_dim,
        "word_vectors": word_vectors,
        "dropout": settings.dropout,
        "drop_rate": settings.drop_rate,
        "seed": settings.seed,
    }
    if settings.method == "pvse":
        return models.pvse(num_embeddings=settings.num_slots, **common)
    return models.dive(
        num_slots=settings.num_slots,
        num_iterations=settings.num_iterations,
        normalize_over=settings.normalize_over,
        num_heads=settings.num_heads,
        head_dim=settings.head_dim,
        **common,
    )


def image_backbone(settings, source):
    if settings.features == "regions":
        return source.shape
    return encoders.convolutional(settings.network, source.shape[0], settings.image_weights)


def captions_of(settings, records):
    """The tokenizer, and BERT for `resnext_bert`; without data a small one over whole words."""
    if settings.features != "resnext_bert":
        return captions.word_tokenizer(records.captions, max_words=settings.max_words), None
    if settings.data_dir is None:
        tokenizer = captions.word_tokenizer(records.captions, max_words=settings.max_words)
        size = {"vocabulary_size": tokenizer.vocabulary_size(), **SMALL_BERT}
        return tokenizer, encoders.bert(max_length=settings.max_words, **size)
    if settings.bert is None or settings.bert_vocabulary is None:
        raise InputError("--features resnext_bert needs --bert and --bert-vocabulary")
    tokenizer = read_bert_tokenizer(settings.bert_vocabulary, settings.max_words)
    return tokenizer, encoders.bert(settings.bert, max_length=settings.max_words)


def train_phases(settings, run):
    """The hinges of all negatives first, against collapse, then of the hardest.

    The network over pictures is frozen for the first epochs, at a constant rate as in PVSE's way to
    train; then the rate falls: as a cosine, or to a tenth after `--drop-epoch`.
    """
    model, constant = run.model, settings.learning_rate
    easy, frozen = settings.warm_up_epochs, settings.frozen_epochs
    before = max(easy, frozen)
    falling = training.cosine_decay(constant)
    if settings.drop_epoch is not None:
        falling = training.drop_after(constant, max(settings.drop_epoch - before, 0))
    network = [model.image_encoder.get_layer("backbone")] if frozen else []

    def hinges(mining):
        return losses.TripletRanking(settings.margin, mining, reduction="mean")

    mined = hinges(settings.mining)
    phases = [
        training.Phase("warm_up", easy, rate=constant, loss=hinges("sum"), frozen=network),
        training.Phase("frozen", before - easy, rate=constant, loss=mined, frozen=network),
        training.Phase("training", settings.epochs - before, rate=falling, loss=mined),
    ]

    def stream(train, seed):
        crops = settings.crop_and_flip and settings.features != "regions"
        return settings.stream(
            batches.images_with_captions,
            train,
            model.tokenizer,
            seed,
            SizeAugmentation(
                crop=settings.crop if crops else None,
                flip=crops,
                word_dropping=settings.word_dropping,
            ),
            captions_per_image=settings.captions_per_image,
        )

    def adamw(model, rate):
        return training.LayerwiseAdamW(
            rate,
            weight_decay=settings.weight_decay,
            global_clipnorm=settings.clip_norm,
            rates=rates(settings, model),
        )

    training.fit(run, phases, stream, adamw, settings.seed)


def rates(settings, model):
    """The factor on the learning rate of each trainable variable, in order.

    `--set-rate` is of all of an image's layers but the network over pictures, so of the map of
    regions too, and of a caption's slots (`img_pie_lr_scale` and `txt_pie_lr_scale` of train.py).
    """
    images, captions = model.image_encoder, model.caption_encoder
    groups = [(images, settings.set_rate)]
    groups.append((captions.get_layer("head").get_layer("caption_set"), settings.set_rate))
    if settings.features != "regions":
        groups.append((images.get_layer("backbone"), settings.image_rate))
    if settings.features == "resnext_bert":
        groups.append((captions.get_layer("backbone"), settings.caption_rate))
    of = {id(weight): rate for part, rate in groups for weight in part.trainable_variables}
    return [of.get(id(weight), 1.0) for weight in model.trainable_variables]


def measure_sets(run, model):
    """What the sets of the test split are like, and their attention where it has pictures."""
    split = run.test
    sets = evaluation.encode_sets(model, split.records, split.source)
    size = encoders.map_size(model.image_encoder)
    if split.picture is not None and size is not None:
        figure = plots.attention_sheet_of(sets, split.records, split.picture, size)
        plots.save(figure, run.folder.plots / "attention.png")
    return {"sets": evaluation.measure_sets(sets, model.similarity)}


if __name__ == "__main__":
    cli.run(main)
