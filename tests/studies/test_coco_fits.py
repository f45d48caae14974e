"""What is said of COCO's photos by probes of Flickr8k and of COCO, beside the oracle."""

import pytest

from studies import coco_fits
from zoo import list_presets


@pytest.mark.very_slow  # encodes 170 photos
def test_other_photos_than_the_probes_are_judged_as_the_oracle_does(shared_data, capsys):
    folder = shared_data / "coco_subset"
    if not folder.is_dir() or "photos_pfe" not in list_presets():
        pytest.skip("no photos of COCO, or no preset of photos")
    coco_fits.main(["photos_pfe", str(folder)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "170 photos of COCO"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[4:]]
    assert [row[0] for row in rows] == ["80", "80", "170", "170"]
    assert [row[1] for row in rows] == [*coco_fits.KINDS[:2]] * 2
    away = [abs(float(row[-1].split()[0])) for row in rows]
    assert max(away[::2]) <= 0.08, "by the model's probes"
    assert max(away[1::2]) <= 0.06, "by COCO's"
