import shutil

import pytest

from halo_search.errors import InputError
from zoo.data import cub
from zoo.data.loaders.cub import decode_caption_bytes


def _first_image(root, split="trainval"):
    records = cub.load(root, split=split, image_size=32, verbose=False).records
    name = records.image_paths[0].split("/images/")[1]
    return root / "images" / name, (root / "text_c10" / name).with_suffix(".txt")


def _refused(root, expected, split="trainval"):
    with pytest.raises(InputError) as caught:
        cub.load(root, split=split, image_size=32, verbose=False)
    message = str(caught.value)
    assert "\n" not in message
    assert expected in message, message
    return message


def _left_out(root, kind, count=1, split="trainval"):
    records = cub.load(root, split=split, image_size=32, skip_bad=True, verbose=False).records
    assert [item.kind for item in records.skipped] == [kind] * count
    assert f"{count} {kind}" in records.summary()
    return records


def test_no_such_folder(tmp_path, toy_copy):
    _refused(tmp_path / "nowhere", f"{tmp_path / 'nowhere'}: no such data folder")
    (tmp_path / "empty").mkdir()
    _refused(tmp_path / "empty", f"{tmp_path / 'empty' / 'classes.txt'}: No such file")
    with pytest.raises(InputError, match="no such captions"):
        cub.load(toy_copy, captions=tmp_path / "nowhere", verbose=False)
    shutil.rmtree(toy_copy / "text_c10")
    _refused(toy_copy, "text_c10.tar.gz: no such captions")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (lambda data: data[: len(data) // 2], "a damaged image"),
        (lambda data: b"<html>404</html>", "not an image"),
    ],
)
def test_bad_image(toy_copy, content, why):
    path, _ = _first_image(toy_copy)
    before = cub.load(toy_copy, image_size=32, verbose=False).records
    path.write_bytes(content(path.read_bytes()))
    _refused(toy_copy, f"{path}: {why}")
    after = _left_out(toy_copy, "bad images")
    assert list(after.image_paths) == list(before.image_paths[1:])
    assert after.skipped[0].where == str(path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text + "one more.\n", "expected 10 captions, found 11"),
        (lambda text: "", "expected 10 captions, found 0"),
    ],
)
def test_other_than_ten_captions(toy_copy, change, why):
    _, path = _first_image(toy_copy)
    path.write_text(change(path.read_text()))
    _refused(toy_copy, f"{path}: {why}")
    _left_out(toy_copy, "bad caption files")


def test_a_damaged_archive(toy_copy):
    archive = shutil.make_archive(str(toy_copy / "text_c10"), "gztar", toy_copy, "text_c10")
    shutil.rmtree(toy_copy / "text_c10")
    cub.load(toy_copy, image_size=32, verbose=False)
    with open(archive, "r+b") as file:
        file.truncate(2000)
    _refused(toy_copy, f"{archive}: not a whole tar archive")


def test_bytes_that_are_not_utf8_are_decoded_and_counted(toy_copy):
    _, path = _first_image(toy_copy)
    lines = path.read_bytes().splitlines()
    lines[2] = b"a caf\xe9-coloured bird\xa0with a tail."
    path.write_bytes(b"\n".join(lines))
    records = cub.load(toy_copy, image_size=32, verbose=False).records
    assert records.captions[2] == "a café-coloured bird with a tail."
    assert records.recoded == (str(path),)
    assert "1 caption files were not clean UTF-8" in records.summary()


def test_replaced_bytes_become_a_space():
    assert decode_caption_bytes("this\ufffd\ufffdbird".encode()) == ("this bird", False)
    assert decode_caption_bytes("this\u00a0bird".encode()) == ("this bird", True)
    assert decode_caption_bytes(b"\x81\xff") == (" ÿ", False)


def test_unknown_class_of_a_split(toy_copy):
    path = toy_copy / "splits_pcme_xian" / "trainvalclasses.txt"
    path.write_text(path.read_text() + "999.Dodo\n")
    _refused(toy_copy, f"{path}:10: unknown class '999.Dodo'")
    _left_out(toy_copy, "unknown class names")


def test_nothing_left(toy_copy):
    shutil.rmtree(toy_copy / "images")
    (toy_copy / "images").mkdir()
    _refused(toy_copy, "no image of the split 'trainval' is left to use")


def test_a_path_out_of_the_folder(toy_copy):
    path = toy_copy / "images.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], "4 ../outside.jpg", *lines[4:]]))
    _refused(toy_copy, f"{path}:4: '../outside.jpg' leads out of the data folder")


def test_no_division_for_another_set(toy_copy):
    shutil.rmtree(toy_copy / "splits_pcme_xian")
    _refused(toy_copy, "no folder splits_pcme_xian, and this is not CUB-200-2011")
