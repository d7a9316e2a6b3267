import json
import tracemalloc
from pathlib import Path

import pytest

from layerboard.tasks.datasets.classes import EVERY, Classification
from layerboard.tasks.datasets.folder import NO_CLASSES, read_folder
from layerboard.tasks.datasets.integrity import Coverage
from layerboard.tasks.datasets.reading.labels import (
    FILE_COLUMNS,
    LABEL_COLUMNS,
    Labelling,
    match_rows,
    read_groups,
    read_label_table,
    require_columns,
)
from layerboard.tasks.datasets.reading.tree import read_tree
from layerboard.zoo.errors import InputError
from tests.tasks.datasets.helpers import keys
from tests.tasks.datasets.test_folder import labelled, pictures

CLASSES = ("cat", "dog")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten images, 0.png to 9.png."""
    return pictures(tmp_path / "flat", 10)


def table(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def rows(count: int = 10, ending: str = ".png", delimiter: str = ",") -> str:
    """Even images are cats, odd ones dogs."""
    return "".join(f"{index}{ending}{delimiter}{CLASSES[index % 2]}\n" for index in range(count))


def classes_of(data: Classification) -> dict[str, str]:
    """Class of each image by its key."""
    return {
        key: part.classes[label]
        for part in data.sides.values()
        for key, label in zip(keys(part.samples), part.labels, strict=True)
    }


EXPECTED = {f"{index}.png": CLASSES[index % 2] for index in range(10)}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    "header", ["file,label", "file_name,class", "path,label", "IMAGE,Class", "Filename,LABEL"]
)
@pytest.mark.parametrize("ending", [".png", ""])
def test_columns_delimiters_and_endings(folder: Path, delimiter: str, header: str, ending: str) -> None:
    text = f"{header.replace(',', delimiter)}\n{rows(ending=ending, delimiter=delimiter)}"
    data = labelled(folder, table(folder.parent / "labels.csv", text))
    assert classes_of(data) == EXPECTED
    assert EVERY in data.coverage.remarks
    assert f"classes from labels.csv ({header.replace(',', ', ')})" in data.coverage.remarks
    assert not data.coverage.partial


def test_any_order_of_columns_quotes_and_a_mark_of_the_byte_order(folder: Path) -> None:
    text = "\ufeffnumber,label,file\r\n" + "".join(
        f'{index},"{CLASSES[index % 2]}","./{index}.png"\r\n' for index in range(10)
    )
    assert classes_of(labelled(folder, table(folder / "labels.csv", text))) == EXPECTED


def test_the_table_inside_is_no_file_that_is_ignored(folder: Path) -> None:
    data = labelled(folder, table(folder / "labels.csv", "file,label\n" + rows()))
    assert not any("ignored" in one for one in data.coverage.remarks)


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl"])
def test_metadata_as_datasets_writes_it(folder: Path, name: str) -> None:
    found = [{"file_name": f"{index}.png", "label": index % 2, "size": None} for index in range(10)]
    lines = [json.dumps(one) for one in found]
    if name.endswith(".csv"):
        lines = ["file_name,label", *(f"{one['file_name']},{one['label']}" for one in found)]
    table(folder / name, "\n".join(lines) + "\n")
    data = labelled(folder)
    assert data.train.classes == ("0", "1")
    assert {key: CLASSES[int(label)] for key, label in classes_of(data).items()} == EXPECTED


def test_metadata_in_the_folders_of_splits(tmp_path: Path) -> None:
    for split, count in (("train", 6), ("test", 4)):
        pictures(tmp_path / split, count)
        table(tmp_path / split / "metadata.csv", "file_name,label\n" + rows(count))
    data = labelled(tmp_path)
    assert data.val is not None
    assert (len(data.train.samples), len(data.val.samples)) == (6, 4)
    assert keys(data.val.samples)[0] == "test/0.png"
    assert "classes from metadata.csv and 1 more (file_name, label)" in data.coverage.remarks


def test_metadata_without_classes_is_none(folder: Path) -> None:
    table(folder / "metadata.csv", "file_name,text\n0.png,a cat\n")
    assert NO_CLASSES in read_folder(folder).coverage.remarks


def test_a_column_of_splits(folder: Path) -> None:
    names = ["train"] * 6 + ["Valid"] * 2 + ["test"] * 2
    text = "file,label,split\n" + "".join(f"{i},{CLASSES[i % 2]},{name}\n" for i, name in enumerate(names))
    data = labelled(folder, table(folder.parent / "l.csv", text))
    assert data.val is not None
    assert keys(data.val.samples) == ["6.png", "7.png"]
    assert len(data.train.samples) == 6
    assert data.coverage.notes == ("2 images of further splits left out",)
    alone = text.replace("Valid", "train").replace("test", "train")
    assert labelled(folder, table(folder.parent / "l.csv", alone)).val is None


def test_what_has_no_partner_is_counted_and_left_out(folder: Path) -> None:
    text = "file,label\n" + rows(7) + "gone.png,cat\n8.png,\n6.png,cat\n"
    data = labelled(folder, table(folder.parent / "l.csv", text))
    assert len(classes_of(data)) == 7
    assert data.coverage.partial
    assert data.coverage.notes == (
        "1 row without an image left out (gone.png)",
        "2 images without a row in l.csv left out (7.png, 9.png)",
        "1 image whose row has no class left out (8.png)",
    )
    assert "1 row repeating another row" in data.coverage.remarks


def test_names_in_folders_absolute_and_composed_otherwise(tmp_path: Path) -> None:
    pictures(tmp_path / "im" / "sub", 3)
    (tmp_path / "im" / "sub" / "0.png").rename(tmp_path / "im" / "sub" / "e\u0301.png")
    text = f"file,label\nsub/\u00e9.png,a\n{tmp_path}/im/sub/1.png,a\nsub\\2,b\n"
    data = labelled(tmp_path / "im", table(tmp_path / "l.csv", text))
    assert [*classes_of(data).values()] == ["a", "b", "a"]


def test_a_name_that_may_be_two_images(folder: Path) -> None:
    (folder / "0.jpg").write_bytes((folder / "0.png").read_bytes())
    path = table(folder.parent / "l.csv", "file,label\n" + rows(ending=""))
    with pytest.raises(
        InputError, match=r"one image of the name '0' of .*, line 2, found 0.jpg, 0.png; add its ending"
    ):
        read_folder(folder, Labelling(path))


def test_files_that_are_no_tables(folder: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read labels .*nowhere: No such file"):
        read_folder(folder, Labelling(folder / "nowhere"))
    with pytest.raises(InputError, match="it is no text; save it"):
        read_folder(folder, Labelling(folder / "0.png"))
    for text in ("[1]\n", "{\n"):
        with pytest.raises(InputError, match="expected one JSON object a line"):
            read_folder(folder, Labelling(table(folder / "l.jsonl", text)))
    for name in ("metadata.csv", "metadata.jsonl"):
        table(folder / name, "")
    with pytest.raises(InputError, match=r"expected one table in .*, found metadata.csv and metadata.jsonl"):
        read_folder(folder)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_tables_as_spreadsheets_write_them(tmp_path: Path, encoding: str) -> None:
    folder = pictures(tmp_path / "in", 6)
    for number in range(6):
        (folder / f"{number}.png").rename(folder / f"größe {number}.png")
    text = "sep=;\r\nfile;label\r\n" + "".join(f"größe {n}.png;{('Öl', 'café')[n % 2]}\r\n" for n in range(6))
    (tmp_path / "l.csv").write_bytes(text.encode(encoding))
    data = labelled(folder, tmp_path / "l.csv")
    assert data.train.classes == ("café", "Öl")
    assert not data.coverage.partial
    guess = "l.csv is not in UTF-8: read as Windows-1252 (größe, Öl, café)"
    assert (guess in data.coverage.remarks) == (encoding == "cp1252")


def test_a_column_without_a_name_names_no_splits(folder: Path) -> None:
    lines = rows().splitlines()
    text = ",file,label\n" + "".join(f"{number},{line}\n" for number, line in enumerate(lines))
    assert classes_of(labelled(folder, table(folder.parent / "labels.csv", text))) == EXPECTED


@pytest.mark.parametrize("written", ["./{}", "a/../{}", "/{}", "//{}", ".//{}", "{}/", "{}/."])
def test_a_name_means_what_paths_of_its_kind_do(folder: Path, written: str) -> None:
    lines = (f"{written.format(f'{index}.png')},{CLASSES[index % 2]}\n" for index in range(10))
    path = table(folder.parent / "labels.csv", "file,label\n" + "".join(lines))
    if written in ("a/../{}", "/{}", "//{}"):
        with pytest.raises(InputError, match="found none of its 10 files there"):
            labelled(folder, path)
    else:
        assert classes_of(labelled(folder, path)) == EXPECTED


def test_many_rows_take_little_memory_each(folder: Path) -> None:
    count = 10_000
    further = "".join(f"images/of/photo{number:07d}.jpg,cat\n" for number in range(count))
    path = table(folder.parent / "labels.csv", "file,label\n" + rows() + further)
    tracemalloc.start()
    try:
        data = labelled(folder, path)
        assert tracemalloc.get_traced_memory()[1] < 350 * count
    finally:
        tracemalloc.stop()
    assert classes_of(data) == EXPECTED
    assert any(note.startswith("10,000 rows without an image left out") for note in data.coverage.notes)


def test_a_row_keeps_all_of_its_cells_and_its_group(folder: Path) -> None:
    text = "file,age,label,group\n" + "".join(f"{i},{20 + i},{CLASSES[i % 2]},p{i // 4}\n" for i in range(10))
    path = table(folder.parent / "l.csv", text)
    read = read_label_table(path)
    assert (read.columns, read.header) == ("file, label, group", ("file", "age", "label", "group"))
    files, coverage = match_rows([read], read_tree(folder))
    assert coverage == Coverage(remarks=("classes from l.csv (file, label, group)",))
    assert files[5].cells == ("5", "25", "dog", "p1")
    assert files[5].group == "p1"


def test_a_table_of_groups_needs_no_classes(folder: Path) -> None:
    path = table(folder.parent / "groups.csv", "file,group\n0,a\n1,a\n2,\n")
    assert [(row.label, row.group) for row in read_groups(path).rows] == [("", "a"), ("", "a"), ("", "")]
    with pytest.raises(InputError, match="and a column label or class in the first line of"):
        require_columns(read_label_table(path), FILE_COLUMNS, LABEL_COLUMNS)
    with pytest.raises(
        InputError, match=r"expected a column file_name.* and a column group in the first line"
    ):
        read_groups(table(folder.parent / "g.csv", "file,patient\n0,a\n"))


def test_groups_of_a_split_are_clusters_and_are_not_cut(tmp_path: Path) -> None:
    for split in ("train", "val"):
        for name in CLASSES:
            pictures(tmp_path / "im" / split / name, 3)
    lines = [
        f"{split}/{name}/{i}.png,{split}{name}{i // 2}"
        for split in ("train", "val")
        for name in CLASSES
        for i in range(3)
    ]
    path = table(tmp_path / "groups.csv", "file,group\n" + "\n".join(lines[:-1]) + "\n")
    data = read_folder(tmp_path / "im", Labelling(groups=path))
    assert isinstance(data, Classification)
    assert data.val is not None
    assert data.val.clusters == ("valcat0", "valcat0", "valcat1", "valdog0", "valdog0", "val/dog/2.png")
    assert "7 groups of images that belong together, 1 image of none" in data.coverage.remarks
    assert "groups from groups.csv (file, group)" in data.coverage.remarks
