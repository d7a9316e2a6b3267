"""Runs on a pack give what runs on the official folders give."""

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from layerboard.benchmark.engines.log import LOG
from layerboard.benchmark.forms.campaign import RUN_FILE
from layerboard.benchmark.plan.location import DataLocation
from layerboard.benchmark.plan.suites import REAL
from layerboard.tasks.datasets import write_packs as writing
from layerboard.tasks.datasets.packs.manifest import CARD, read_pack_manifest
from layerboard.tasks.datasets.packs.shards import write_shard
from tests.benchmark.runs import command, comparable, run
from tests.tasks.datasets.conftest import pack

TASKS = ("knn", "davis", "spair", "segment")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def packed_data(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All datasets of the tests' data folder as a pack."""
    names = ("imagenet", "roxford5k", "rparis6k", "davis-2017-val", "spair-71k-test", "voc-2012-val")
    return pack(data, tmp_path_factory.mktemp("pack"), *names, "coco-val2017", "partimagenet")


def test_records_items_and_examples_are_equal_from_folder_and_from_pack(
    data: Path, packed_data: Path, tmp_path: Path
) -> None:
    places = tmp_path / "folder", tmp_path / "pack"
    options = {"layers": "1", "workers": 2}
    found = [
        run(place, ["mini-fs"], *TASKS, data=given, **options)
        for place, given in zip(places, (data, f"hf:{packed_data}"), strict=True)
    ]
    # Only fingerprints differ: of files they name the times, of packs the digests.
    expected, records = (comparable(frame).drop(columns="fingerprint") for frame in found)
    assert {*records["task"]} == {*TASKS}
    pd.testing.assert_frame_equal(records, expected, check_exact=True)
    others = [path.relative_to(places[0]) for path in (places[0] / "out").rglob("*") if path.is_file()]
    own = (LOG, RUN_FILE)
    others = [path for path in others if "records" not in path.parts and path.name not in own]
    assert {path.parts[1] for path in others} == {"items", "examples", "thumbnails"}
    for path in others:
        assert (places[1] / path).read_bytes() == (places[0] / path).read_bytes(), path


def test_a_location_of_a_pack_is_its_root_by_an_absolute_path(
    packed_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from layerboard.benchmark.plan.location import data_folder

    monkeypatch.chdir(packed_data.parent)
    at = DataLocation(REAL, data_folder(Path(f"hf:{packed_data.name}")))
    assert str(at.data) == f"hf:{packed_data}!"
    assert data_folder(Path(f"hf:./{packed_data.name}/")) == at.data


def test_pack_writes_what_check_and_run_read(capsys: Capture, data: Path, tmp_path: Path) -> None:
    target = tmp_path / "pack"
    said = command(capsys, "pack", data, "--to", target, "--datasets", "spair-71k-test", "imagenet")
    assert said.code == 0, said.err
    assert "18" in next(line for line in said.out.splitlines() if line.startswith("imagenet"))
    assert f"read it with --data hf:{target}; nothing was uploaded" in said.out
    said = command(capsys, "check", "--data", f"hf:{target}", "--all")
    assert said.code == 0
    assert "3 shards have their SHA-256" in said.out
    assert said.out.count("partial") == 2
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    said = command(capsys, "pack", data, "--to", target, "--datasets", "imagenet")
    assert said.code == 0, said.err
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before
    shard = next((target / "imagenet").glob("train-*"))
    shard.write_bytes(shard.read_bytes()[:-1])
    for arguments in (("check",), ("run", "--backbones", "mini-fs", "--output", tmp_path / "out")):
        said = command(capsys, *arguments, "--data", f"hf:{target}")
        assert said.code == 2
        assert "bytes in" in said.err
        assert "fetch it again" in said.err


def test_a_killed_packing_goes_on_behind_the_datasets_that_it_had_completed(
    capsys: Capture, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack_all = "pack", data, "--to", tmp_path, "--datasets", "imagenet", "davis-2017-val"
    written: list[str] = []

    def killed(file: Path, *rest: object) -> None:
        if "davis" in str(file) and "imagenet" in written:
            raise KeyboardInterrupt
        written.append(file.parent.name)
        write_shard(file, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(writing, "write_shard", killed)
    assert command(capsys, *pack_all).code not in (0, 2)
    assert tuple(read_pack_manifest(tmp_path)) == ("imagenet",)
    (tmp_path / CARD).unlink()  # as if between manifest and card
    monkeypatch.setattr(writing, "write_shard", lambda *given: (written.append("again"), write_shard(*given)))
    said = command(capsys, *pack_all)
    assert said.code == 0, said.err
    assert [*read_pack_manifest(tmp_path)] == ["davis-2017-val", "imagenet"]
    assert written.count("again") == len([*(tmp_path / "davis-2017-val").iterdir()])
    assert "config_name: imagenet" in (tmp_path / CARD).read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pack", "{data}"), "give --to DIR"),
        (("pack", "{tmp}/none", "--to", "{tmp}/pack"), "expected the datasets' folder at"),
        (("pack", "{tmp}", "--to", "{tmp}/pack"), "expected an official dataset in"),
        (
            ("pack", "{data}", "--to", "{tmp}/p", "--datasets", "davis"),
            "there is no dataset 'davis'; did you mean",
        ),
        (
            ("pack", "{data}", "--to", "{tmp}/p", "--datasets", "ade20k-val"),
            "ade20k-val is missing and was not",
        ),
        (("pack", "hf:{data}", "--to", "{tmp}/p"), "expected the datasets' folder at"),
        (("check", "--data", "hf:{tmp}/none"), "expected the folder of a pack at"),
        (("check", "--data", "hf:{data}"), "an official layout is given without hf:"),
        (("run", "--data", "hf:"), "expected hf:ID"),
    ],
)
def test_wrong_usage_is_one_sentence(
    capsys: Capture, data: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    found = command(capsys, *(one.format(data=data, tmp=tmp_path) for one in arguments))
    assert found.code == 2
    assert said in found.error
    assert not (tmp_path / "pack").exists()


def test_a_pack_that_does_not_fit_is_not_begun(
    capsys: Capture, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1000))
    said = command(capsys, "pack", data, "--to", tmp_path / "pack")
    assert "bytes in" in said.error
    assert "found 1,000; choose another --to" in said.error
    assert not (tmp_path / "pack").exists()


def test_a_broken_dataset_is_not_packed(capsys: Capture, own_data: Path, tmp_path: Path) -> None:
    (own_data / "imagenet" / "val" / "loose.JPEG").write_bytes(b"?")
    said = command(capsys, "pack", own_data, "--to", tmp_path / "pack")
    assert said.code == 2
    assert "imagenet is broken and was not packed: expected only class folders" in said.error
    assert not (tmp_path / "pack").exists()
