"""The page of all builders is what the recipes say now."""

from pathlib import Path

import paper_settings
import zoo

ROOT = Path(__file__).parents[2]
NO_BUILDERS = {"from_preset", "list_presets", "save_preset", "with_captioning"}
NO_RECIPE = {"hib"}  # one modality, where the papers' tables compare two


def test_the_page_is_that_of_the_recipes():
    written = (ROOT / "docs/models/settings.md").read_text()
    assert written == paper_settings.page(), "run python recipes/paper_settings.py --out PAGE"


def test_every_builder_has_a_command_whose_recipe_exists():
    listed = {name for system in paper_settings.SYSTEMS for name in system.builders}
    builders = {name for name in zoo.models.__all__ if name.islower()} - NO_BUILDERS - NO_RECIPE
    assert listed == builders
    for system in paper_settings.SYSTEMS:
        assert (ROOT / f"recipes/{system.recipe}.py").exists()
