"""DivE on COCO, or on Toy Scenes when no data are given; PVSE and the ablations by flags.

    python recipes/dive_coco.py                                    # Toy Scenes' regions, a minute
    python recipes/dive_coco.py --features resnet152               # their pictures
    python recipes/dive_coco.py --data-dir coco_precomp --features regions
    python recipes/dive_coco.py --data-dir coco --features resnext_bert --image-size 512 \\
        --image-weights resnext101_32x8d.safetensors --bert bert_base --bert-vocabulary vocab.txt
    python recipes/dive_coco.py --method pvse                      # PIE-Net and MIL instead
    python recipes/dive_coco.py --similarity chamfer --num-slots 2 # ablations
    python recipes/dive_coco.py --ensemble runs/one runs/other --out runs/both

Kim et al., "Improving Cross-Modal Retrieval with Set of Diverse Embeddings", CVPR 2023.
`--data-dir` holds Karpathy's `dataset_coco.json` and the images, or SCAN's files for
`--features regions`. The same command resumes a run that was stopped. Besides the usual results,
metrics.json has what the sets are like: circular variance, retrieval by one element alone, and how
far the elements specialise.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import keras

from zoo import cli, encoders, evaluation, losses, models, report, training
from zoo.cli import setting
from zoo.data import Stream, batches, captions, phase_seed, read_bert_tokenizer
from zoo.data.augmentation import Augmentation
from zoo.errors import InputError
from zoo.files import RunFolder
from zoo.losses.ranking import MINING

PHASES = ("warm_up", "training")
FEATURES = ("resnet152", "regions", "resnext_bert")
NETWORKS = {"resnet152": "resnet152", "resnext_bert": "resnext101_32x8d"}
MARGIN = {"resnet152": 0.1, "regions": 0.2, "resnext_bert": 0.1}
SMALL_BERT = {"num_layers": 2, "num_heads": 4, "hidden_dim": 64}


@dataclass(frozen=True, kw_only=True)
class Settings(training.RetrievalSettings):
    """The paper's settings for COCO; `toy` is what runs on Toy Scenes."""

    out: Path = setting(Path("runs/dive_coco"), "run folder to write or resume", identity=False)
    ensemble: tuple[str, ...] = setting((), "finished runs to average instead of training")
    method: Literal["dive", "pvse"] = setting("dive", "slots or PIE-Net")
    features: Literal[FEATURES] = setting(
        "resnet152", "image features, and with resnext_bert BERT for the captions", toy="regions"
    )
    backbone: Literal[encoders.CONVOLUTIONAL] | None = setting(
        None, "another network than that of --features", toy="tiny"
    )
    image_weights: str | None = setting(
        training.UNSAID, "'imagenet', a local file, or none; must be said with --data-dir"
    )
    bert: Path | None = setting(None, "folder of BERT's preset, for resnext_bert")
    bert_vocabulary: Path | None = setting(None, "its vocab.txt")
    glove: Path | None = setting(None, "text file of word vectors to start from")
    image_size: int = setting(
        224, "pixels; the paper has 512 for resnext_bert", source="DivE, section 4.3", toy=64
    )
    max_words: int = setting(40, "words of a caption that are read", toy=48)  # of several birds
    dim: int = setting(1024, "dimensions of an element", source="DivE, section 4.2", toy=64)
    word_dim: int = setting(300, "of a word vector", source="DivE, released code", toy=64)
    num_slots: int = setting(4, "elements of a set, K", source="DivE, section 4.2")
    num_iterations: int = setting(4, "rounds of aggregation, T", source="DivE, section 4.2")
    similarity: Literal[models.SET_SIMILARITIES] | None = setting(
        None, "default: smooth_chamfer, or maximum_pair for pvse", source="DivE, table 3"
    )
    alpha: float = setting(16.0, "of smooth-Chamfer", source="DivE, section 4.2")
    margin: float | None = setting(
        None, "of the triplets; default: 0.2 for regions, else 0.1", source="DivE, section 4.2"
    )
    mining: Literal[MINING] = setting(
        "hardest", "negatives after the warm-up", source="DivE, released code", toy="sum"
    )
    discrepancy_weight: float = setting(0.01, "of MMD", source="DivE, section 4.2")
    diversity_weight: float | None = setting(
        None, "default: 0.01, or 0.1 for pvse", source="DivE, section 4.2"
    )
    dropout: float = setting(0.1, "of the regions' features", source="DivE, released code")
    drop_rate: float = setting(0.2, "regions left out", source="DivE, released code")
    word_dropping: float = setting(0.2, "words left out", source="DivE, released code")
    learning_rate: float = setting(1e-3, "peak, cosine decay", source="DivE, section 4.2", toy=4e-3)
    set_rate: float = setting(0.1, "factor of the slots", source="DivE, released code", toy=1.0)
    backbone_rate: float = setting(0.1, "factor of pretrained networks", toy=1.0)
    weight_decay: float = setting(1e-4, "of AdamW", source="DivE, released code")
    clip_norm: float = setting(1.0, "largest norm of a gradient", source="DivE, released code")
    batch_size: int = setting(
        200, "images, with their captions", source="DivE, section 4.2", toy=64
    )
    captions_per_image: int | None = setting(
        None, "drawn anew each time; default: all", source="DivE, section 4.2", toy=2
    )
    steps_per_epoch: int | None = setting(None, "default: images / batch size", smoke=2)
    warm_up_epochs: int = setting(1, "with all negatives, not the hardest", toy=0, smoke=1)
    epochs: int = setting(80, "in all", source="DivE, section 4.2", toy=40, smoke=2)

    def __post_init__(self):
        super().__post_init__()
        used = None if self.ensemble or self.features == "regions" else self.network
        training.check_weights(self, "image_weights", used)
        if not 0 <= self.warm_up_epochs <= self.epochs:
            raise ValueError("--epochs must not be below --warm-up-epochs")

    @property
    def network(self):
        """The name of the network over pictures."""
        return self.backbone or NETWORKS.get(self.features)

    @property
    def own_similarity(self):
        return self.similarity or {"dive": "smooth_chamfer", "pvse": "maximum_pair"}[self.method]

    @property
    def own_margin(self):
        return MARGIN[self.features] if self.margin is None else self.margin

    @property
    def own_diversity(self):
        weights = {"dive": 0.01, "pvse": 0.1}
        given = self.diversity_weight
        return weights[self.method] if given is None else given


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
        return report.finish_ensemble(folder, settings.ensemble, **settings.benchmark())
    run = training.start(settings, data)
    if run.finished:
        return report.show(run)
    with run.replicas():
        model = build(settings, run.train)
        run.model = model.with_auxiliaries(*settings.ranking_terms())
        fit(settings, run)
    return report.finish(run, **settings.evaluation(), measure_more=measure_sets)


def build(settings, train):
    tokenizer, caption_backbone = captions_of(settings, train.records)
    word_vectors, word_dim = None, settings.word_dim
    if settings.glove:
        word_vectors, coverage = captions.read_glove(settings.glove, tokenizer, settings.seed)
        word_dim = word_vectors.shape[1]
        print(f"{settings.glove}: vectors of {coverage:.1%} of the vocabulary")
    common = {
        "image_backbone": image_backbone(settings, train.source),
        "caption_backbone": caption_backbone,
        "tokenizer": tokenizer,
        "dim": settings.dim,
        "similarity": settings.own_similarity,
        "alpha": settings.alpha,
        "margin": settings.own_margin,
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
        num_slots=settings.num_slots, num_iterations=settings.num_iterations, **common
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


def fit(settings, run):
    """The hinges of all negatives first, against collapse, then of the hardest."""
    easy, rest = settings.warm_up_epochs, settings.epochs - settings.warm_up_epochs
    fit_phase(settings, run, "warm_up", "sum", easy, lambda steps: settings.learning_rate)
    fit_phase(
        settings,
        run,
        "training",
        settings.mining,
        rest,
        lambda steps: keras.optimizers.schedules.CosineDecay(
            settings.learning_rate, max(rest, 1) * steps
        ),
    )


def fit_phase(settings, run, phase, mining, epochs, schedule):
    model = run.model
    stream = Stream(
        batches.images_with_captions,
        run.train,
        model.tokenizer,
        settings.batch_size,
        seed=phase_seed(settings.seed, phase, PHASES),
        augmentation=Augmentation(word_dropping=settings.word_dropping),
        steps=settings.steps_per_epoch,
        options={"captions_per_image": settings.captions_per_image},
    )
    optimizer = training.LayerwiseAdamW(
        schedule(stream.steps_per_epoch),
        weight_decay=settings.weight_decay,
        global_clipnorm=settings.clip_norm,
        rates=rates(settings, model),
    )
    loss = losses.TripletRanking(settings.own_margin, mining, reduction="mean")
    model.compile(optimizer, loss=loss)
    run.fit(model, phase, stream, epochs)


def rates(settings, model):
    """The factors on the learning rate, by the paths of variables."""
    found = {".*(image_set|caption_set)/.*": settings.set_rate}
    towers = []
    if settings.features != "regions":
        towers.append(model.image_encoder)
    if settings.features == "resnext_bert":
        towers.append(model.caption_encoder)
    for tower in towers:
        for weight in tower.get_layer("backbone").trainable_variables:
            found[weight.path] = settings.backbone_rate
    return found


def measure_sets(run, model):
    """What the sets of the test split are like, and their attention where it has pictures."""
    split = run.test
    sets = evaluation.encode_sets(model, split.records, split.source)
    size = encoders.map_size(model.image_encoder)
    if split.picture is not None and size is not None:
        figure = report.attention_sheet_of(sets, split.records, split.picture, size)
        report.save(figure, run.folder.plots / "attention.png")
    return {"sets": evaluation.measure_sets(sets, model.similarity)}


if __name__ == "__main__":
    cli.run(main)
