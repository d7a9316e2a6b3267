"""Tables with numbers, or with several labels an image, beside images."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from layerboard.tasks.datasets.base import Data
from layerboard.tasks.datasets.classes import Classification, Unlabelled
from layerboard.tasks.datasets.folder import TabledEntry, read_folder
from layerboard.tasks.datasets.reading.labels import Labelling, Target
from layerboard.tasks.datasets.targets import ImageLabels, ImageNumbers, Targets
from layerboard.tasks.metrics.folds import ALWAYS_TRAINING
from layerboard.zoo.errors import InputError
from tests.tasks.datasets.helpers import keys
from tests.tasks.datasets.test_folder import pictures

COUNT = 25
ORDER = sorted(range(COUNT), key=lambda number: f"{number}.png")  # of the images, as keys are sorted
Reader = Callable[..., Data]
Cell = Callable[[int], object]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images 0.png to 24.png; not to be changed."""
    return pictures(tmp_path_factory.mktemp("targets") / "im", COUNT)


@pytest.fixture
def read(images: Path, tmp_path: Path) -> Reader:
    """Reads the images by a table of a header, whose rows say what functions make of their numbers."""

    def read_by(header: str, *cells: Cell, target: Target | None = None) -> Data:
        rows = [",".join([f"{row}.png", *(str(cell(row)) for cell in cells)]) for row in range(COUNT)]
        (tmp_path / "t.csv").write_text("\n".join([header, *rows, ""]))
        return read_folder(images, Labelling(tmp_path / "t.csv", target=target))

    return read_by


def values_of(data: Data) -> list[list[float]]:
    assert isinstance(data, Targets)
    return data.values.tolist()


def test_a_column_of_many_numbers_is_one_of_numbers(read: Reader) -> None:
    for header, hint in (
        ("file,label", "--target class would take the numbers as classes; "),
        ("file,age", ""),
    ):
        data = read(header, lambda row: row / 2)
        assert isinstance(data, ImageNumbers)
        assert values_of(data) == [[row / 2] for row in ORDER]
        assert data.targets == (header.partition(",")[2],)
        assert keys(data.samples)[:3] == ["0.png", "1.png", "10.png"]
        assert not data.coverage.partial
        assert str(data.coverage) == (
            f"25 images; regression of {data.targets[0]}; {hint}every image tested once, in 5 folds, seed 0; "
            f"numbers from t.csv ({'file, label' if hint else 'file'})"
        )


def test_few_numbers_in_a_column_of_classes_are_classes_unless_asked(read: Reader) -> None:
    assert isinstance(read("file,label", lambda row: row % 5), Classification)
    assert isinstance(read("file,label", lambda row: row % 5, target="number"), ImageNumbers)


def test_many_numbers_are_classes_if_asked(read: Reader) -> None:
    data = read("file,label", lambda row: row, target="class")
    assert isinstance(data, Classification)
    assert "needs at least 3 images in every class" in data.untestable


def test_several_columns_of_numbers_are_several_targets(read: Reader) -> None:
    data = read("file,x,note,y", lambda row: row, lambda row: f"n{row}", lambda row: -row / 4)
    assert isinstance(data, ImageNumbers)
    assert (data.targets, values_of(data)[3]) == (("x", "y"), [ORDER[3], -ORDER[3] / 4])


def test_numbers_beside_classes_are_taken_if_asked(read: Reader) -> None:
    cells = (lambda row: "ab"[row % 2], lambda row: row)
    assert isinstance(read("file,label,age", *cells), Classification)
    data = read("file,label,age", *cells, target="number")
    assert isinstance(data, ImageNumbers)
    assert data.targets == ("age",)


def test_parted_labels(read: Reader) -> None:
    for header in ("file,label", "file,tags"):
        data = read(header, lambda row: "cat| dog" if row % 2 else ("cat", "bird|")[row % 4 > 0])
        assert isinstance(data, ImageLabels)
        assert data.targets == ("bird", "cat", "dog")
        assert values_of(data)[:3] == [[0, 1, 0], [0, 1, 1], [1, 0, 0]]
    assert "3 labels, any number an image (bird, cat, dog)" in data.coverage.remarks


def test_columns_of_zero_and_one_are_labels(read: Reader) -> None:
    data = read("file,cat,dog", lambda row: row % 2, lambda row: str(row % 3 == 0).lower())
    assert isinstance(data, ImageLabels)
    assert (data.targets, values_of(data)[:2]) == (("cat", "dog"), [[0, 1], [1, 0]])
    assert isinstance(read("file,cat,age", lambda row: row % 2, lambda row: row), ImageNumbers)
    assert isinstance(read("file,cat", lambda row: row % 2, target="labels"), ImageLabels)


def test_rare_and_common_labels_are_named(read: Reader) -> None:
    data = read("file,tags", lambda row: "all|half|one" if row == 3 else ("all", "all|half")[row % 2])
    assert isinstance(data, ImageLabels)
    assert data.judged.tolist() == [False, True, False]
    assert (
        "all, one left out of means: some fold has no image with it, or none without" in data.coverage.remarks
    )


def test_an_empty_cell_leaves_an_image_out_and_says_so(read: Reader) -> None:
    data = read("file,x,y", lambda row: "" if row == 7 else row, lambda row: "n/a" if row == 8 else row)
    assert isinstance(data, ImageNumbers)
    assert len(data.samples) == COUNT - 2
    assert data.coverage.notes == ("2 images whose row has no number left out (7.png, 8.png)",)


@pytest.mark.parametrize("parted", [";", "\t", "|"])
def test_numbers_with_a_decimal_comma_are_read_unless_it_may_be_another(
    images: Path, tmp_path: Path, parted: str
) -> None:
    def read(*cells: str) -> Data:
        rows = "".join(f"{row}{parted}{cells[row % len(cells)]}\n" for row in range(COUNT))
        (tmp_path / "t.csv").write_text(f"sep={parted}\nfile{parted}x\n{rows}", encoding="utf-16")
        return read_folder(images, Labelling(tmp_path / "t.csv", target="number"))

    data = read("0,5", "-1,250", "3", "1,5E+02", "1.234.567,5")
    assert {value for (value,) in values_of(data)} == {0.5, -1.25, 3, 150, 1234567.5}
    assert "numbers with a decimal comma" in data.coverage.remarks
    with pytest.raises(
        InputError, match=r"line 3, found '1,250'; write 1.250, or 1250 if it parts thousands"
    ):
        read("1,250", "2,500", "7")
    with pytest.raises(InputError, match=r"line 3, found '0,5'; write 0.5"):
        read("0,5", "1.250")


def test_the_numbers_of_rows_are_no_target(images: Path, tmp_path: Path) -> None:
    rows = "".join(f"{row},{row}.png,{row / 3:.3f}\n" for row in range(COUNT))
    for name in ("", "Unnamed: 0"):
        (tmp_path / "t.csv").write_text(f"{name},file,x\n{rows}")
        data = read_folder(images, Labelling(tmp_path / "t.csv"))
        assert isinstance(data, ImageNumbers)
        assert data.targets == ("x",)


def test_a_column_of_splits_and_one_of_groups(read: Reader) -> None:
    splits = ("train", "train", "val", "test")
    data = read("file,x,split", lambda row: row, lambda row: splits[row % 4])
    assert isinstance(data, ImageNumbers)
    assert (len(data.samples), data.split) == (19, "train, val")
    assert [keys(data.samples)[place] for place in np.flatnonzero(data.fold == 0)] == [
        f"{row}.png" for row in ORDER if row % 4 == 2
    ]
    assert {*data.fold.tolist()} == {0, ALWAYS_TRAINING}
    assert data.coverage.notes == ("6 images of further splits left out",)
    grouped = read("file,x,group", lambda row: row, lambda row: row % 7)
    assert isinstance(grouped, ImageNumbers)
    assert grouped.groups[:3] == ("0", "1", "3")
    assert len({*zip(grouped.groups, grouped.fold.tolist(), strict=True)}) == 7  # no group is cut


@pytest.mark.parametrize("target", ["number", "labels"])
def test_a_group_in_train_and_val_is_refused_as_for_classes(
    read: Reader, images: Path, tmp_path: Path, target: Target
) -> None:
    cells: tuple[Cell, ...] = (lambda row: row % 2, lambda row: ("train", "val")[row % 2])
    with pytest.raises(
        InputError, match=r"every group of im in train or in val, found 0, 1, .* in both; move"
    ):
        read("file,x,split,group", *cells, lambda row: row // 2, target=target)
    groups = "".join(f"{row}.png,{'one' if row in (4, 7) else ''}\n" for row in range(COUNT))
    (tmp_path / "g.csv").write_text(f"file,group\n{groups}")
    rows = "".join(f"{row}.png,{row % 2},{('train', 'val')[row % 2]}\n" for row in range(COUNT))
    (tmp_path / "t.csv").write_text(f"file,x,split\n{rows}")
    with pytest.raises(InputError, match="found one in both; move its images"):
        read_folder(images, Labelling(tmp_path / "t.csv", groups=tmp_path / "g.csv", target=target))


def test_metadata_are_of_numbers_if_asked(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "im", COUNT)
    rows = "".join(f"{row}.png,{row}\n" for row in range(COUNT))
    (folder / "metadata.csv").write_text(f"file_name,width\n{rows}")
    assert isinstance(read_folder(folder), Unlabelled)
    assert isinstance(read_folder(folder, Labelling(target="number")), ImageNumbers)


def test_other_numbers_groups_and_folds_are_other_data(read: Reader) -> None:
    def content(*cells: Cell) -> list[object]:
        return read("file,x,group", *cells).content(lambda sample: sample.key)

    first = content(lambda row: row, lambda row: row)
    assert content(lambda row: row, lambda row: row) == first
    assert content(lambda row: row + (row == 3), lambda row: row) != first
    assert content(lambda row: row, lambda row: row % 7) != first


def test_images_serve_tasks_that_need_no_classes(read: Reader) -> None:
    data = read("file,x", lambda row: row)
    assert isinstance(data.serving("classification"), Unlabelled)
    assert data.serving("labels") is None
    smaller = data.limited(10)
    assert isinstance(smaller, ImageNumbers)
    assert [len(each) for each in (smaller.samples, smaller.values, smaller.fold)] == [10, 10, 10]


def test_a_dataset_of_a_table_in_a_folder(tmp_path: Path) -> None:
    pictures(tmp_path / "targets" / "images", COUNT)
    (tmp_path / "targets" / "n.csv").write_text(
        "file,x\n" + "".join(f"{row},{row}\n" for row in range(COUNT))
    )
    entry = TabledEntry("tabled", "n.csv", 30, ("numbers",))
    data = entry.read(tmp_path)
    assert (data.name, data.coverage.partial) == ("tabled", True)
    assert str(data.coverage).startswith("25 of 30 images; ")
    (tmp_path / "targets" / "n.csv").write_text(
        "file,label\n" + "".join(f"{r},{r % 2}\n" for r in range(COUNT))
    )
    with pytest.raises(InputError, match="expected columns of numbers or labels"):
        entry.read(tmp_path)
