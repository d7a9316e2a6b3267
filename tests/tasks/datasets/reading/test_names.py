import unicodedata
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from layerboard.benchmark.exported.arrays import Arrays
from layerboard.tasks.datasets.defects import read_defects
from layerboard.tasks.datasets.folder import read_folder
from layerboard.tasks.datasets.instances import Instances, read_queries
from layerboard.tasks.datasets.reading.labels import Labelling
from layerboard.tasks.datasets.reading.names import number_twins, unseen_twins
from layerboard.tasks.datasets.targets import Targets
from layerboard.zoo.errors import InputError
from tests.tasks.datasets.test_folder import labelled, pictures

CAFE, DECOMPOSED = "caf\u00e9", "cafe\u0301"
FORMS: tuple[Literal["NFC"], Literal["NFD"]] = ("NFC", "NFD")


def forms(*names: str) -> list[str]:
    """Each name in both Unicode forms."""
    return [unicodedata.normalize(form, name) for name in names for form in FORMS]


def test_folders_of_one_name_in_two_forms_are_one_class(tmp_path: Path) -> None:
    for index, name in enumerate(forms(CAFE, "naïve")):
        for split in ("train", "val") if index % 2 else ("train",):
            pictures(tmp_path / "in" / split / name, 3)
    data = labelled(tmp_path / "in")
    assert data.train.classes == (CAFE, "naïve")
    assert data.val is not None
    assert np.bincount(data.train.labels).tolist() == [6, 6]
    assert "café" not in str(data.coverage)


def test_cells_of_a_table_in_two_forms_are_one_name(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "in", 8)
    for index, name in enumerate(forms("é1", "é2", "é3", "é4")):
        (folder / f"{index}.png").rename(folder / f"{index}{name}.png")
    files = [f"{index}{name}" for index, name in enumerate(forms("é1", "é2", "é3", "é4"))]
    other = [unicodedata.normalize(FORMS[1 - index % 2], name) for index, name in enumerate(files)]
    table = tmp_path / "labels.csv"
    rows = zip(other, forms(CAFE, CAFE, "ü", "ü"), forms("ä", "ö", "ä", "ö"), strict=True)
    table.write_text("file,label,group\n" + "".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    data = labelled(folder, table)
    assert data.train.classes == (CAFE, "ü")
    assert {*data.train.groups} == {"ä", "ö"}
    assert not data.coverage.partial
    table.write_text("file,tags\n" + "".join(f"{name},{CAFE}|{DECOMPOSED}|x{name[0]}\n" for name in files))
    targets = read_folder(folder, Labelling(table))
    assert isinstance(targets, Targets)
    assert [name for name in targets.targets if name[0] != "x"] == [CAFE]


def test_two_files_of_one_name_in_a_table_are_refused(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "in", 2)
    for index, name in enumerate(forms(CAFE)):
        (folder / f"{index}.png").rename(folder / f"{name}.png")
    (tmp_path / "l.csv").write_text(f"file,label\n{CAFE}.png,a\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"expected one image of the name .*, found .*; rename one"):
        labelled(folder, tmp_path / "l.csv")


def test_things_and_defects_in_two_forms_are_one(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    pictures(shop / "query" / CAFE, 1)
    pictures(shop / "database" / DECOMPOSED, 2)
    pictures(shop / "database" / "mug", 2)
    found = read_queries(shop)
    assert isinstance(found, Instances)
    assert {image.thing for image in found.images} == {CAFE, "mug"}
    bolt = tmp_path / "bolt"
    for name in ("train/good", "test/good", f"test/{CAFE}", f"ground_truth/{DECOMPOSED}"):
        pictures(bolt / name, 1).joinpath("0.png").rename(bolt / name / f"{CAFE}.png")
    (bolt / f"ground_truth/{DECOMPOSED}/{CAFE}.png").rename(
        bolt / f"ground_truth/{DECOMPOSED}/{DECOMPOSED}_mask.png"
    )
    product = read_defects(bolt).products[0]
    assert product.masked
    assert {image.kind for image in product.images} == {"good", CAFE}


def test_labels_of_other_code_in_two_forms_are_one() -> None:
    labels = Arrays(Path("x.npz"), {"labels": np.array(forms(CAFE))}).texts("labels", 2)
    assert {*labels.tolist()} == {CAFE}


@pytest.mark.parametrize(
    "other",
    ["cat\u200b", "cat ", "cat\u00a0", "\u2060cat", "c\u00adat", "cat\ufe0f", "\ufeffcat", "cat\u3164"],
)  # fmt: skip
def test_names_that_read_alike_are_said(tmp_path: Path, other: str) -> None:
    for name in ("cat", other, "dog", "a b"):
        pictures(tmp_path / "in" / "train" / name, 3)
    data = labelled(tmp_path / "in")
    assert len(data.train.classes) == 4
    (note,) = data.coverage.notes
    assert note.startswith("classes that read alike but are told apart: ")
    assert ascii(other)[1:-1] in note
    pictures(tmp_path / "in" / "val" / "dog\u200b", 3)
    with pytest.raises(InputError, match=r"there only; names that read alike .*'dog' and 'dog\\u200b'"):
        labelled(tmp_path / "in")


def test_ordinary_names_are_not_alike() -> None:
    names = ("Cat", "cat", "a b", "ab", "a\u0308", "é", "e", "🐈", "🐈‍⬛", "1", "10", "1a", "nan", "1e3")
    assert unseen_twins(names, "classes") == []
    assert number_twins(names, "classes") == []


@pytest.mark.parametrize(
    ("one", "other"), [("0", "0.0"), ("1", "1.0"), ("1", "01"), ("1,0", "1.00"), ("+1", "1")]
)
def test_labels_that_are_one_number_are_said(tmp_path: Path, one: str, other: str) -> None:
    folder, table = pictures(tmp_path / "in", 9), tmp_path / "labels.csv"
    rows = "".join(f"{n};{(one, other, '7')[n % 3]};g{n % 4}\n" for n in range(9))
    table.write_text(f"file;label;group\n{rows}")
    data = labelled(folder, table)
    assert len(data.train.classes) == 3
    said = " and ".join(f"'{name}'" for name in sorted((one, other)))
    (note,) = data.coverage.notes
    assert note.startswith(f"classes that are one number but are told apart: {said}")
