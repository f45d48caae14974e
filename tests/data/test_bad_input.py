"""What is wrong with a data set is said in one line, with the file; `skip_bad` counts it."""

import re
import shutil

import pytest

from zoo.data import cub
from zoo.data.loaders.cub_files import decode_caption_bytes, read_numbered
from zoo.errors import InputError
from zoo.files.text_files import read_lines


def _first_image(root, split="trainval"):
    """An image of the split: its path, and that of its captions."""
    records = cub.load(root, split=split, image_size=32, verbose=False).records
    name = records.image_paths[0].split("/images/")[1]
    return root / "images" / name, (root / "text_c10" / name).with_suffix(".txt")


def _refused(root, expected, split="trainval"):
    """The loader raises one line with `expected` in it."""
    with pytest.raises(InputError) as caught:
        cub.load(root, split=split, image_size=32, verbose=False)
    message = str(caught.value)
    assert "\n" not in message
    assert expected in message, message
    return message


def _left_out(root, kind, count=1, split="trainval"):
    """With `skip_bad` the loader goes on and lists what it left out."""
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
    _refused(toy_copy, "no captions, neither text_c10 nor text_c10.tar.gz")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (lambda data: data[: len(data) // 2], "a damaged image"),
        (lambda data: data[:-1], "a damaged image"),
        (lambda data: b"<html>404</html>", "not an image"),
        (lambda data: b"", "an empty file"),
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
        (lambda text: "".join(text.splitlines(True)[:9]), "expected 10 captions, found 9"),
        (lambda text: "", "expected 10 captions, found 0"),
    ],
)
def test_other_than_ten_captions(toy_copy, change, why):
    _, path = _first_image(toy_copy)
    path.write_text(change(path.read_text()))
    _refused(toy_copy, f"{path}: {why}")
    _left_out(toy_copy, "bad caption files")


def test_an_empty_caption_is_named_with_its_line(toy_copy):
    _, path = _first_image(toy_copy)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], "  ", *lines[4:]]))
    _refused(toy_copy, f"{path}:4: an empty caption")


def test_no_caption_file(toy_copy):
    _, path = _first_image(toy_copy)
    path.unlink()
    _refused(toy_copy, f"{path}: No such file")
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


def test_unknown_class_of_an_image(toy_copy):
    path = toy_copy / "image_class_labels.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:6], "7 999", *lines[7:]]))
    _refused(toy_copy, f"{path}:7: unknown class '999'")


def test_unknown_class_of_a_split(toy_copy):
    path = toy_copy / "splits_pcme_xian" / "trainvalclasses.txt"
    path.write_text(path.read_text() + "999.Dodo\n")
    _refused(toy_copy, f"{path}:10: unknown class '999.Dodo'")
    _left_out(toy_copy, "unknown class names")


def test_a_folder_of_an_unknown_class(toy_copy):
    (toy_copy / "images" / "999.Dodo").mkdir()
    _refused(toy_copy, f"{toy_copy / 'images' / '999.Dodo'}: a class that classes.txt")
    _left_out(toy_copy, "unknown classes")


def test_a_class_without_images(toy_copy):
    folder = _first_image(toy_copy)[0].parent
    for path in folder.iterdir():
        path.unlink()
    _refused(toy_copy, f"{folder}: no image of {folder.name}")
    records = cub.load(toy_copy, image_size=32, skip_bad=True, verbose=False).records
    assert "1 classes without images" in records.summary()
    path = toy_copy / "images.txt"
    lines = [line for line in path.read_text().splitlines() if folder.name not in line]
    path.write_text("\n".join(lines))
    labels = toy_copy / "image_class_labels.txt"
    numbers = {line.split()[0] for line in lines}
    kept = [line for line in labels.read_text().splitlines() if line.split()[0] in numbers]
    labels.write_text("\n".join(kept))
    seen = toy_copy / "splits_pcme_xian" / "seen_test_images.txt"
    others = [line for line in seen.read_text().splitlines() if folder.name not in line]
    seen.write_text("\n".join(others))
    _refused(toy_copy, f"{path}: no image of {folder.name}")


def test_nothing_left(toy_copy):
    shutil.rmtree(toy_copy / "images")
    (toy_copy / "images").mkdir()
    _refused(toy_copy, "no image of the split 'trainval' is left to use")


@pytest.mark.parametrize("name", ["../outside.jpg", "/etc/passwd", "a\\..\\b.jpg"])
def test_a_path_out_of_the_folder(toy_copy, name):
    path = toy_copy / "images.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], f"4 {name}", *lines[4:]]))
    _refused(toy_copy, f"{path}:4: {name!r} leads out of the data folder")


def test_tables_are_checked(tmp_path):
    table = tmp_path / "table.txt"
    for text, why in (
        ("1 a\n2\n", ":2: expected 'number value', found '2'"),
        ("1 a\n1 b\n", ":2: number 1 occurs twice"),
        ("one a\n", ":1: expected"),
    ):
        table.write_text(text)
        with pytest.raises(InputError, match=re.escape(f"{table}{why}")):
            read_numbered(table)
    table.write_bytes(b"fine\nnot \xff\n")
    with pytest.raises(InputError, match=re.escape(f"{table}:2: expected UTF-8, found byte 0xff")):
        read_lines(table)


def test_labels_and_images_must_agree(toy_copy):
    labels = toy_copy / "image_class_labels.txt"
    whole = labels.read_text()
    labels.write_text("".join(whole.splitlines(True)[:-1]))
    _refused(toy_copy, "images.txt:60: image 60 has no line in")
    labels.write_text(whole + "61 1\n")
    _refused(toy_copy, f"{labels}:61: unknown image 61")


def test_no_division_for_another_set(toy_copy):
    shutil.rmtree(toy_copy / "splits_pcme_xian")
    _refused(toy_copy, "no folder splits_pcme_xian, and this is not CUB-200-2011")
