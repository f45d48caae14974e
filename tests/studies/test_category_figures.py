"""PCME's figures C.1 and C.2 of Toy Scenes in COCO's layout, against the scenes' own instances."""

import collections
import json

import pytest

from halo_search.errors import InputError
from studies import category_figures
from zoo.data import toy_scenes


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    few = {"num_images": 120, "num_species": 4}  # so that every ζ has an example
    return toy_scenes.generate(folder, image_size=32, **few) / "coco"


@pytest.fixture(scope="module")
def categories(coco):
    """`{image id: names of its categories}` of val2014, counted without pycocotools."""
    read = json.loads((coco / "annotations" / "instances_val2014.json").read_text())
    names = {item["id"]: item["name"] for item in read["categories"]}
    of_image = collections.defaultdict(set)
    for item in read["annotations"]:
        of_image[item["image_id"]].add(names[item["category_id"]])
    return {image["id"]: of_image[image["id"]] for image in read["images"]}


def draw(figure, coco, tmp_path, *flags):
    out = tmp_path / figure
    numbers = category_figures.main(
        [f"--figure={figure}", f"--data-dir={coco}", f"--out={out}", *flags]
    )
    assert (out / "figure.png").stat().st_size > 1000
    assert json.loads((out / "figure.json").read_text()) == numbers
    return numbers


def test_c1_counts_the_categories_of_every_image(coco, categories, tmp_path):
    sizes = collections.Counter(len(names) for names in categories.values())
    numbers = draw("C.1", coco, tmp_path)
    assert numbers["images_by_categories"] == [sizes[count] for count in range(1, 11)]
    more = sum(count for size, count in sizes.items() if size > 2)
    assert numbers["percent_with_more_than_two"] == pytest.approx(100 * more / len(categories))
    assert (numbers["images"], numbers["left_out"]) == (len(categories), 0)


def test_c2_shows_an_image_of_each_distance(coco, categories, tmp_path):
    panels = draw("C.2", coco, tmp_path)["panels"]
    assert [panel["zeta"] for panel in panels] == [None, 0, 1, 2]
    first = categories[panels[0]["image"]]
    assert len(first) >= 2
    for panel in panels:
        assert set(panel["categories"]) == categories[panel["image"]]
        assert len(panel["captions"]) == 5
        if panel["zeta"] is not None:
            assert len(first ^ categories[panel["image"]]) == panel["zeta"]
            assert panel["image"] != panels[0]["image"]


def test_an_image_is_chosen_by_its_id(coco, tmp_path):
    first = draw("C.2", coco, tmp_path)["panels"][0]["image"]
    again = draw("C.2", coco, tmp_path, f"--image={first}", "--seed=9")
    assert again["panels"][0]["image"] == first
    with pytest.raises(InputError, match="--image 999999: expected the id of an image of the test"):
        category_figures.main(
            ["--figure=C.2", f"--data-dir={coco}", f"--out={tmp_path / 'x'}", "--image=999999"]
        )
