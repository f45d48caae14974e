"""The table of all settings is what the recipes say, and they say what the papers print."""

import ast
import csv
import re
from pathlib import Path

import pytest

import zoo
from tools import paper_settings

ROOT = Path(__file__).parents[2]
NO_BUILDERS = {"from_preset", "list_presets", "save_preset", "with_captioning"}
NO_RECIPE = {
    "hib",  # one modality, where the papers' tables compare two
    *("pfe", "vector_points"),  # of stored vectors: methods of own_vectors.py
}

# Typed from the papers, not from the recipes. Scale and shift of PCME are twice what is printed:
# its code computes sigmoid(2x).
# PCME, appendix C.2
PCME = """
num_samples=7 cutout=0.2 word_dropping=0.1 mean_attention=True variance_attention=True
squash_variance=False unit_mean=True covariance=ellipsoidal
word_deleting=0.1 clip_norm=2.0 min_count=4 pair_weight=2
"""
# PCME++, table B.1, first column, and section 3.1
PCMEPP = """
dim=1024 epochs=25 batch_size=128 learning_rate=0.0005 schedule=steps layer_decay=0.7
image_rate=0.01 caption_rate=0.1 beta_2=0.999 epsilon=1e-08 weight_decay=0.0001
pair_weight=2 kl_reduction=mean_per_dimension scale=5.0 shift=5.0 frozen_epochs=2 warm_up_epochs=1
last_epochs=10 variance_blocks=1 pooling=generalized
"""
# Pishdad et al., section 4.2
PISHDAD = """
epochs=30 drop_epoch=15 learning_rate=0.0002 batch_size=128 word_dim=300 fine_tune=False
select=best
"""
# DivE, section 4.2
DIVE = """
dim=1024 num_slots=4 num_iterations=4 alpha=16.0 set_similarity=smooth_chamfer
set_diversity_weight=0.01 discrepancy_weight=0.01 batch_size=200 captions_per_image=None
"""
# DAA, section 5.2
DAA = """
learning_rate=0.00015 num_samples=5 cutout=0.2 word_dropping=0.1 warm_up_epochs=3
daa_weight=2000 pair_weight=2
"""
TABLE = [
    (
        "pcme_cub --data-dir=data --image-weights=none",
        PCME + "network=resnet50 dim=512 learning_rate=0.0001 warm_up_epochs=10 "
        "fine_tuning_epochs=50 kl_weight=0.001 uniformity_weight=10.0 scale=10 shift=10 "
        "cosine_epochs=50 select=last",
    ),
    (
        "pcme_coco --data-dir=data --image-weights=none",
        PCME + "network=resnet152 dim=1024 learning_rate=0.0002 warm_up_epochs=30 "
        "fine_tuning_epochs=30 kl_weight=1e-05 uniformity_weight=0.0 scale=30 shift=30 "
        "cosine_epochs=30 select=best",
    ),
    # appendix C.3
    (
        "pcme_2d --data-dir=data --image-weights=none",
        "dim=2 sentence_dim=1024 mean_attention=False variance_attention=False "
        "learning_rate=0.0001 scale=10",
    ),
    (
        "pcmepp_coco --data-dir=data --weights=none",
        PCMEPP + "pseudo_positive_weight=0.1 mixed_share=0.25 averaged_epochs=10 kl_weight=0.0001",
    ),
    # section 3.1: the same backbone and training, the initial softmax temperature is 1.0
    (
        "pcmepp_coco --data-dir=data --weights=none --method=infonce",
        PCMEPP + "temperature=1.0 mixed_share=0 averaged_epochs=0",
    ),
    # section 3.1: 8 samples; criterions/pcme.py: 2 · (sum of pairs + 5e-4 · VIB)
    (
        "pcmepp_coco --data-dir=data --weights=none --method=pcme",
        PCMEPP + "num_samples=8 pseudo_positive_weight=0 mixed_share=0 kl_weight=0.001 "
        "pair_reduction=sum",
    ),
    (
        "pcmepp_coco --data-dir=data --weights=none --method=vse_infinity",
        PCMEPP + "margin=0.2 mixed_share=0 averaged_epochs=0",
    ),
    # table B.1, second column
    (
        "pcmepp_redcaps --data-dir=data",
        "network=vit_s_16 epochs=25 batch_size=1536 learning_rate=0.0005 schedule=cosine "
        "layer_decay=1.0 image_rate=1.0 caption_rate=1.0 beta_2=0.98 epsilon=1e-06 "
        "weight_decay=0.2 kl_weight=1e-06 pseudo_positive_weight=0.0 mixed_share=0.0 "
        "drop_rate=0.0 word_dropping=0.0 dim=128 scale=5.0 shift=5.0 prompts=clip",
    ),
    ("studies.toy_2d", "learning_rate=0.02 epochs=500 batch_size=128 confusing=0.3"),
    ("vse_coco --data-dir=data --image-weights=none", PISHDAD + "dim=1024 margin=0.2"),
    (
        "gaussian_vsepp_coco --data-dir=data --image-weights=none",
        PISHDAD + "dim=1024 margin=0.2 lowest_variance=0.1 highest_variance=10.0",
    ),
    (
        "gaussian_vsrn_flickr30k --data-dir=data",
        PISHDAD + "dim=2048 margin=0.1 lowest_variance=0.1 highest_variance=10.0",
    ),
    (
        "dive_coco --data-dir=data --features=regions",
        DIVE + "margin=0.2 epochs=80 learning_rate=0.001 drop_epoch=None",
    ),
    # the rates and epochs of pictures are of the code of PVSE and VSE∞
    (
        "dive_coco --data-dir=data --image-weights=none",
        DIVE + "margin=0.1 image_size=224 learning_rate=0.0002 frozen_epochs=30",
    ),
    (
        "dive_coco --data-dir=data --image-weights=none --features=resnext_bert",
        DIVE + "margin=0.1 image_size=512 resize=stretch learning_rate=0.0005 epochs=50 "
        "drop_epoch=20 image_rate=0.01 caption_rate=0.1",
    ),
    (
        "daa_coco --data-dir=data --image-weights=none",
        DAA + "backbone=resnet152 dim=1024 batch_size=128",
    ),
    (
        "daa_cub --data-dir=data --image-weights=none",
        DAA + "backbone=resnet50 dim=512 batch_size=150",
    ),
    # DAA, section 5.2; the parentheses are Flickr30K's
    (
        "daa_sgraf_flickr30k --data-dir=data",
        "batch_size=128 learning_rate=0.0006 drop_epoch=40 epochs=50",
    ),
]


def value(text):
    """A number, True, False or None; else a name."""
    try:
        return ast.literal_eval(text)
    except ValueError:
        return text


@pytest.mark.parametrize(("command", "printed"), TABLE)
def test_defaults_are_those_of_the_paper(command, printed):
    settings = paper_settings.settings_of(*command.split())
    expected = {name: value(text) for name, text in (one.split("=") for one in printed.split())}
    found = {name: getattr(settings, name) for name in expected}
    assert found == pytest.approx(expected)


def test_the_table_is_that_of_the_recipes():
    written = ROOT / "docs/models/settings.csv"
    again = f"run python -m tools.paper_settings > {written.relative_to(ROOT)}"
    assert written.read_text() == paper_settings.table(), again


def test_every_builder_is_on_the_page():
    page = (ROOT / "docs/models/settings.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| (`[^|]+`) \| `\w+\.py`", page, re.M)
    builders = {name for name in zoo.models.__all__ if name.islower()} - NO_BUILDERS - NO_RECIPE
    assert set(re.findall(r"\w+", " ".join(rows))) == builders


MODELS = ROOT / "docs" / "models"
DIFFERS = "differs: "
PAGES = ("pcme", "pcmepp", "dive", "gaussian_vse", "daa")
ASPECTS = ["optimizer", "schedule", "warm-up", "weight decay", "clipping", "augmentation"]
ASPECTS += ["freezing", "batch", "epochs", "initialisation", "evaluation", "model selection"]


def rows_of_csv(name):
    with (MODELS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def parts_that_differ(recipes):
    """What settings.csv declares as different for the commands of these recipes."""
    titles = {
        title for title, command in paper_settings.SYSTEMS.items() if command.split()[0] in recipes
    }
    assert titles
    return {
        row["setting"].removeprefix(DIFFERS).lower()
        for row in rows_of_csv("settings.csv")
        if row["setting"].startswith(DIFFERS)
        and (row["commands"] == "all" or titles & set(row["commands"].split(" · ")))
    }


@pytest.mark.parametrize("page", PAGES)
def test_every_difference_that_a_page_names_has_its_row(page):
    text = (MODELS / f"{page}.md").read_text()
    (section,) = re.findall(r"## What differs from the paper\n\n(.*?)\n\n", text, re.S)
    known = parts_that_differ(re.findall(r"recipes/(\w+)\.py", text))
    items = re.split(r"\n(?=- )", section)
    assert len(items) > 5
    for item in items:
        named = re.findall(r"\*\*(.+?)\*\*", item)
        assert named, item
        assert {part.lower() for part in named} <= known, item


def test_the_training_of_every_recipe_is_compared_in_twelve_rows():
    """ "declared" names rows of settings.csv, so that no difference is only told here."""
    by_recipe = {}
    for row in rows_of_csv("training.csv"):
        by_recipe.setdefault(row["recipe"], []).append(row)
    assert len(by_recipe) == 8
    for recipe, rows in by_recipe.items():
        assert [row["what"] for row in rows] == ASPECTS, recipe
        known = parts_that_differ(re.findall(r"\w+", recipe.partition(": ")[2]))
        for row in rows:
            for verdict in row["verdict"].split("; "):
                name, _, parts = verdict.partition(": ")
                assert name in ("equal", "mended") or (name, bool(parts)) == ("declared", True), row
                assert {part.lower() for part in parts.split(", ") if part} <= known, row


# How a source names a paper, and the number of its text.
PAPERS = {"PCME": "000", "Pishdad et al.": "001", "DAA": "002", "PCME++": "003", "DivE": "004"}
OTHERS = {"PVSE", "SCAN", "SGRAF", "VSE++", "VSE∞", "VSRN"}  # whose papers are not among the five
SETTINGS = {"setting", "differs"}  # whose `source` names a paper
PLACE = re.compile(r"(section|appendix|table|figure) ([A-Z]?[\d.]*\d|[A-Z])|released code")


def sources():
    """`{source: file:line}` of every setting of the zoo."""
    found = {}
    for path in [
        path for room in ("recipes", "studies", "zoo") for path in (ROOT / room).rglob("*.py")
    ]:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) not in SETTINGS:
                continue
            for given in (one.value for one in node.keywords if one.arg == "source"):
                for source in paper_settings.sources(ast.literal_eval(given)):
                    found[source] = f"{path.relative_to(ROOT)}:{given.lineno}"
    return found


def test_sources_have_one_form():
    found = sources()
    assert len(found) > 30
    for source, where in found.items():
        paper, comma, place = source.partition(", ")
        assert comma, f"{where}: {source}"
        assert paper in PAPERS.keys() | OTHERS, f"{where}: {source}"
        assert PLACE.fullmatch(place), f"{where}: {source}"


def texts_of_papers(shared_data):
    """By name the text of each paper."""
    folder = shared_data.parent / "papers"
    if not folder.is_dir():
        pytest.skip("the papers are not beside this checkout")
    of_paper = {}
    for name, number in PAPERS.items():
        (path,) = folder.glob(f"{number}_*.txt")
        of_paper[name] = path.read_text()
    return of_paper


def test_sources_name_places_that_exist(shared_data):
    of_paper = texts_of_papers(shared_data)
    for source, where in sources().items():
        paper, _, place = source.partition(", ")
        if paper not in PAPERS or place == "released code":
            continue
        assert _has(of_paper[paper], place), f"{where}: {source} is not in the paper"
    for place in ("section 4.9", "table Z.1", "figure 99", "appendix G.1"):
        assert not any(_has(text, place) for text in of_paper.values()), "any place would do"


def test_sentences_stand_in_their_papers(shared_data):
    of_paper = {name: _plain(text) for name, text in texts_of_papers(shared_data).items()}
    for sentence in paper_settings.entries("sentence"):
        paper, _, place = sentence.source.partition(", ")
        if paper in PAPERS and place != "released code":
            rest = of_paper[paper]
            for part in sentence.text.split(" … "):
                _, found, rest = rest.partition(_plain(part))
                assert found, f"{sentence.source}: {part!r}"


def _plain(text):
    """Without mark-up and line breaks."""
    return " ".join(re.sub(r"[$\\*]", "", text).split())


def _has(text, place):
    """Whether a paper has a section, appendix, table or figure."""
    kind, number = place.split(" ")
    number = re.escape(number)
    if kind in ("table", "figure"):
        return re.search(rf"(?m){kind.capitalize()} {number}[.:]", text)
    # PCME's text has some headings at the end of another line.
    return re.search(rf"(?m)^\W*{number}\.?\*{{0,2}}\s+\w|## {number}\.\s", text)
