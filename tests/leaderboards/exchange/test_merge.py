"""Outputs of several machines as one; what does not fit is refused before anything is written."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from layerboard.leaderboards.exchange.merge import merge_outputs
from layerboard.leaderboards.records.checksum import companions_of, file_digest, read_checked, write_checked
from layerboard.leaderboards.records.record import read_frame
from layerboard.zoo.errors import InputError
from tests.leaderboards.builder import frame, layers, pair

NAME = Path("mini-dino") / "knn.mini-imagenet.standard.parquet"


def output(folder: Path, name: Path = NAME, items: bytes = b"items", **changes) -> Path:
    """An output folder with one result, its items and an array."""
    beside = {"items": folder / "items" / name, "arrays": (folder / "arrays" / name).with_suffix(".npz")}
    for path in beside.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(items)
    usual = {"data": "d1", "fingerprint": folder.name, "backbone": name.parts[0]}
    rows = frame(layers([50.0, 60.0], **(usual | changes)))
    write_checked(rows, folder / "records" / name, {kind: file_digest(path) for kind, path in beside.items()})
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_two_machines_did_stands_in_one_folder_as_it_was(tmp_path):
    first = output(tmp_path / "a")
    second = output(tmp_path / "b", Path("mini-clip") / NAME.name)
    assert merge_outputs([first, second], tmp_path / "c") == 2
    assert contents(tmp_path / "c") == contents(first) | contents(second)
    before = contents(tmp_path / "c")
    assert merge_outputs([first, second], tmp_path / "c") == 2
    assert contents(tmp_path / "c") == before


def test_an_output_that_has_results_keeps_them(tmp_path):
    first, second = output(tmp_path / "a"), output(tmp_path / "b", Path("mini-clip") / NAME.name)
    assert merge_outputs([second, second], first) == 2
    assert sorted(path.name for path in (first / "records").iterdir()) == ["mini-clip", "mini-dino"]
    assert merge_outputs([first, second], first) == 2


def test_of_one_result_twice_the_newest_stays_and_belongs_to_both_suites(tmp_path):
    old = output(tmp_path / "a", items=b"old", suite="standard", date="2026-01-01", device="cpu")
    new = output(tmp_path / "b", items=b"new", suite="mini", date="2026-01-02", device="cuda")
    for folders in ([old, new], [new, old]):
        target = tmp_path / f"c-{folders[0].name}"
        assert merge_outputs(folders, target) == 1
        path = target / "records" / NAME
        assert (target / "items" / NAME).read_bytes() == b"new"
        assert companions_of(read_checked(path))["items"] == file_digest(target / "items" / NAME)
        assert set(read_frame(path)["suite"]) == {"mini\nstandard"}
        assert set(read_frame(path)["device"]) == {"cuda"}


def test_numbers_of_two_machines_may_differ_a_little(tmp_path):
    first, second = output(tmp_path / "a"), output(tmp_path / "b")
    path = second / "records" / NAME
    near = read_frame(path)
    near["value"] += 0.2
    write_checked(near, path, companions_of(path.read_bytes()))
    assert merge_outputs([first, second], tmp_path / "c") == 1


LIMITED = "the first is not limited, the second is limited to 4 images a class"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"revision": "other"}, "the weights are 0123456789abcdef in the one and other in the other"),
        ({"data": "d2"}, "the data is d1 in the one and d2 in the other"),
        ({"data": "d2", "coverage": "576 of 576 images; limited to 4 images a class"}, LIMITED),
        ({"data": "d2", "coverage": "4 of 576 images"}, "in the one and 4 of 576 images in the other"),
        ({"data": ""}, "the data is d1 in the one and not known in the other"),
        ({"dtype": "bfloat16"}, "the dtype is float32 in the one and bfloat16 in the other"),
        ({"input_size": 448}, "the input size is 64 in the one and 448 in the other"),
        ({"pooling": "mean"}, "they are of different layers, poolings or metrics"),
    ],
)
def test_two_results_are_refused_both_named_and_nothing_is_written(tmp_path, changes, words):
    first, second = output(tmp_path / "a"), output(tmp_path / "b", **changes)
    third = output(tmp_path / "z", Path("mini-clip") / NAME.name)
    with pytest.raises(InputError) as caught:
        merge_outputs([third, first, second], tmp_path / "c")
    files = f"{first / 'records' / NAME} and {second / 'records' / NAME}"
    assert str(caught.value).startswith(f"{files} are two different results: ")
    assert words in str(caught.value)
    assert not (tmp_path / "c").exists()
    assert merge_outputs([third, first], tmp_path / "c") == 2
    kept = (tmp_path / "c" / "records" / NAME).read_bytes()
    assert kept == (first / "records" / NAME).read_bytes()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([50.0, 61.0], "layer 2 .cls. is 60 in the one and 61 in the other"),
        ([50.0, float("nan")], "no number"),
    ],
)
def test_other_numbers_are_another_result(tmp_path, values: Sequence[float], words: str):
    first, second = output(tmp_path / "a"), output(tmp_path / "b")
    rows = frame(layers(values, data="d1"))
    write_checked(rows, second / "records" / NAME, {"items": file_digest(second / "items" / NAME)})
    with pytest.raises(InputError, match=words):
        merge_outputs([first, second], tmp_path / "c")


def test_a_comparison_of_two_backbones_is_merged_too(tmp_path):
    name = Path("mini-clip--mini-dino") / "cka.mini-imagenet.standard.parquet"
    for folder, value in (("a", 0.5), ("b", 0.51), ("c", 0.6)):
        rows = frame([pair("mini-clip", 1, "mini-dino", 1, value, data="d1")])
        write_checked(rows, tmp_path / folder / "records" / name)
    assert merge_outputs([tmp_path / "a", tmp_path / "b"], tmp_path / "out") == 1
    with pytest.raises(InputError, match="CKA of layer 1"):
        merge_outputs([tmp_path / "a", tmp_path / "c"], tmp_path / "other")


def damaged_items(folder: Path) -> None:
    (folder / "items" / NAME).write_bytes(b"others")


def lost_arrays(folder: Path) -> None:
    (folder / "arrays" / NAME).with_suffix(".npz").unlink()


def flipped(folder: Path) -> None:
    path = folder / "records" / NAME
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (damaged_items, "the items of .* are not those that were written"),
        (lost_arrays, "the arrays of .* are not there; copy the whole folder"),
        (flipped, "cannot read records"),
    ],
)
def test_what_is_damaged_is_not_merged_but_may_be_replaced(tmp_path, harm, words):
    first, second = output(tmp_path / "a"), output(tmp_path / "b")
    harm(second)
    with pytest.raises(InputError, match=words):
        merge_outputs([first, second], tmp_path / "c")
    assert not (tmp_path / "c").exists()
    merge_outputs([first, first], second)  # what the output itself has lost comes back
    assert contents(second) == contents(first)


@pytest.mark.parametrize("kind", ["../elsewhere", ".config/autostart", "records", "thumbnails"])
def test_records_cannot_name_another_folder_to_write_to(tmp_path, kind):
    folder = output(tmp_path / "a")
    evil = (folder / kind / NAME).with_suffix(".desktop")
    evil.parent.mkdir(parents=True, exist_ok=True)
    evil.write_bytes(b"evil")
    write_checked(frame(layers([1.0])), folder / "records" / NAME, {kind: file_digest(evil)})
    with pytest.raises(InputError, match="expected items, arrays, examples"):
        merge_outputs([folder, folder], tmp_path / "c")
    assert not (tmp_path / "c").exists()


NO_FOLDERS = ("", "items/..", "/tmp/escaped", "a\nb\0", "x" * 5000)
NO_DIGESTS = (None, "", {}, "0" * 32, "x" * 100_000)


@pytest.mark.parametrize(
    "companions", [*({kind: "0" * 32} for kind in NO_FOLDERS), *({"items": digest} for digest in NO_DIGESTS)]
)
def test_records_cannot_name_what_no_folder_or_file_is_called(tmp_path, companions):
    folder = output(tmp_path / "a")
    write_checked(frame(layers([1.0])), folder / "records" / NAME, companions)
    with pytest.raises(InputError) as told:
        merge_outputs([folder, folder], tmp_path / "c")
    assert len(str(told.value)) < 6000
    assert not {*"\n\0"} & {*str(told.value)}
    assert not (tmp_path / "c").exists()


def test_a_companion_has_the_ending_of_its_kind(tmp_path):
    folder = output(tmp_path / "a")
    items = folder / "items" / NAME
    items.rename(items.with_suffix(".desktop"))
    with pytest.raises(InputError, match=r"the items of .* are not there"):
        merge_outputs([folder, folder], tmp_path / "c")


def test_records_in_a_hidden_folder_are_refused(tmp_path):
    folder = output(tmp_path / "a", Path(".config") / "autostart" / NAME.name)
    with pytest.raises(InputError, match="hidden folder"):
        merge_outputs([folder, folder], tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_a_folder_without_records_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=f"with records .* at {tmp_path / 'empty'}, found none"):
        merge_outputs([output(tmp_path / "a"), tmp_path / "empty"], tmp_path / "c")
