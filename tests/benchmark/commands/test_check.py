"""The command `check`: this machine, weights, datasets and images of one's own."""

import shutil
import sys
from collections import namedtuple
from pathlib import Path

import pytest
from PIL import Image

import layerboard
from layerboard.benchmark.commands import check as machine
from layerboard.benchmark.commands.check import UNCOUNTED, check
from layerboard.mini.checkpoints import WEIGHTS
from layerboard.zoo.load import feature_fingerprint as fingerprints
from layerboard.zoo.load.feature_fingerprint import require_same_features, stored_fingerprint
from layerboard.zoo.registry.find import find
from tests import fakes
from tests.benchmark.runs import Cli, Said
from tests.tasks.datasets.conftest import pack


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder and a cache with room."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYERBOARD_CACHE", str(tmp_path / "cache"))
    return tmp_path


def said(cli: Cli, code: int) -> Said:
    told = cli("check")
    assert told.code == code, told.out
    return told


@pytest.mark.usefixtures("place")
def test_a_sound_machine_has_exit_code_0(cli: Cli) -> None:
    told = said(cli, 0)
    assert told.out.splitlines()[-1] == (
        "Nothing is wrong with versions, devices and cache; of the libraries only torch was imported."
    )
    assert {"layerboard", "torch", "faiss-cpu", "timm", "devices", "cache"} <= {
        line.split()[1].rstrip(":") for line in told.out.splitlines()[:-1]
    }


@pytest.mark.usefixtures("place")
def test_python_has_the_same_findings(cli: Cli) -> None:
    found = layerboard.check().frame
    assert [*found] == ["what", "sentence", "wrong"]
    assert not found["wrong"].any()
    lines = said(cli, 0).out.splitlines()[:-1]
    assert [line.split()[1].rstrip(":") for line in lines] == [*found["what"]]


@pytest.mark.usefixtures("place")
def test_libraries_that_are_missing_or_too_old(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"transformers": "4.0"}

    def version(name: str) -> str:
        if name == "faiss-cpu" or name == "timm":
            raise machine.PackageNotFoundError(name)
        return versions.get(name, "99.0")

    monkeypatch.setattr(machine, "version", version)
    out = said(cli, 1).out
    assert "WRONG  faiss-cpu: is not installed (pip install 'faiss-cpu>=" in out
    assert "ok     timm: is not installed (pip install 'layerboard[timm]')" in out
    assert "WRONG  transformers: 4.0 is installed, and transformers<6,>=" in out
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "WRONG  devices: torch cannot be imported (import of torch halted" in said(cli, 1).out


def test_a_cache_that_is_full_or_cannot_be_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(2**40, 2**40, 10**6))
    assert "0.0 GB are free; give --cache DIR, or set LAYERBOARD_CACHE" in str(machine._cache())
    (place / "cache").write_text("a file")
    assert str(machine._cache()).startswith("WRONG  cache: it cannot be written (")


def test_packaged_weights_are_the_same(cli: Cli) -> None:
    said = cli("check", "--weights", "mini-resnet", "mini-fs64-*pct")
    checked = len(find(["mini-resnet", "mini-fs64-*pct"]))
    assert checked > 3
    assert (said.code, said.out.count(" same "), said.out.count(" refused ")) == (0, checked, 0)


def test_the_weights_of_another_are_refused(cli: Cli) -> None:
    said = cli("check", "--weights", "mini-fs64", f"mini-dino={WEIGHTS / 'mini-moco'}")
    assert (said.code, said.out.count(" same "), said.out.count(" refused ")) == (1, 1, 1)
    assert "the features of mini-dino are not those of its fingerprint: at 64 px, layer 6" in said.out


def test_a_new_fingerprint_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "stored_fingerprint", lambda name: None)
    found = layerboard.check(weights="mini-resnet", output=tmp_path)
    assert found.frame["state"].tolist() == ["new"]
    written, stored = (stored_fingerprint("mini-resnet", *at) for at in ([tmp_path / "fingerprints"], []))
    assert written is not None
    assert stored is not None
    require_same_features(written, stored)
    given = layerboard.check(weights=[f"mini-dino={WEIGHTS / 'mini-dino'}"], output=tmp_path)
    assert given.frame["state"].tolist() == ["unknown"]
    assert len([*(tmp_path / "fingerprints").iterdir()]) == 1


@pytest.mark.usefixtures("without_heic")
def test_check_opens_all_images_or_a_sample_of_many(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(30):
        Image.new("RGB", (2, 2)).save(photos / f"{number:03}.png")
    (photos / "[red].heic").write_bytes(b"")

    def said(*options: str) -> str:
        return " ".join(cli("check", "--images", photos, *options).out.split())

    note = UNCOUNTED.format(data=f"--images {photos}", output="results")
    blank = "30 images of one colour (000.png, 001.png, 002.png and 27 more)"
    assert f"; {blank}; " in said()
    assert said().endswith(f"pip install 'layerboard[heic]'; 30 of 30 images opened {note}")
    (photos / "[red].heic").unlink()
    assert "photos complete" in said()
    for number in (1, 3, 5, 29):
        (photos / f"{number:03}.png").write_bytes(b"no image")
    assert "photos partial" in said()
    assert "26 of 30 images opened, 4 unreadable (001.png, 003.png, 005.png and 1 more)" in said()
    (listed,) = check(images=str(photos)).parts
    assert listed.frame["file"].tolist() == [f"{number:03}.png" for number in (1, 3, 5, 29)]
    assert "029.png cannot decode image" in said()
    monkeypatch.setattr("layerboard.benchmark.commands.check.SAMPLE", 15)
    assert "15 of 30 images opened" in said()
    assert "26 of 30 images opened, 4 unreadable" in said("--all")
    for path in photos.iterdir():
        path.write_bytes(b"no image")
    answer = cli("check", "--images", photos)
    assert (answer.code, "broken" in answer.out) == (2, True)


def test_check_says_what_is_there(cli: Cli, data: Path, tmp_path: Path) -> None:
    said = cli("check", "--data", data)
    assert said.code == 0
    assert said.out.count("partial") >= 7
    assert "does not exist" in cli("check", "--data", tmp_path / "none").error
    fakes.write_fake_spair(tmp_path)
    said = cli("check", "--data", tmp_path)
    assert said.code == 0
    assert "missing" in said.out
    shutil.rmtree(tmp_path / "SPair-71k" / "JPEGImages" / "cat")
    said = cli("check", "--data", tmp_path)
    assert said.code == 2
    assert "broken" in said.out


def test_check_reads_a_pack_and_says_what_is_damaged(cli: Cli, data: Path, tmp_path: Path) -> None:
    target = pack(data, tmp_path / "pack", "spair-71k-test", "imagenet")
    said = cli("check", "--data", f"hf:{target}", "--all")
    assert said.code == 0
    assert said.out.count("partial") == 2
    shard = next((target / "imagenet").glob("train-*"))
    shard.write_bytes(shard.read_bytes()[:-1])
    for arguments in (("check",), ("run", "--backbones", "mini-fs", "--output", tmp_path / "out")):
        said = cli(*arguments, "--data", f"hf:{target}")
        assert said.code == 2
        assert f"{shard}, which is damaged: " in said.err
        assert "fetch it again" in said.err
