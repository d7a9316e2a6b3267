"""`layerboard check` without data: libraries, devices and the room for the cache."""

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

import layerboard
from layerboard.benchmark import machine
from tests.benchmark.runs import Said, command

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder and a cache with room."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYERBOARD_CACHE", str(tmp_path / "cache"))
    return tmp_path


def said(capsys: Capture, code: int) -> Said:
    told = command(capsys, "check")
    assert told.code == code, told.out
    return told


@pytest.mark.usefixtures("place")
def test_a_sound_machine_has_exit_code_0(capsys: Capture) -> None:
    told = said(capsys, 0)
    assert told.out.splitlines()[-1] == "Nothing is wrong."
    assert {"layerboard", "torch", "faiss-cpu", "timm", "devices", "cache"} <= {
        line.split()[1].rstrip(":") for line in told.out.splitlines()[:-1]
    }


@pytest.mark.usefixtures("place")
def test_python_has_the_same_findings(capsys: Capture) -> None:
    found = layerboard.check().frame
    assert [*found] == ["what", "sentence", "wrong"]
    assert not found["wrong"].any()
    lines = said(capsys, 0).out.splitlines()[:-1]
    assert [line.split()[1].rstrip(":") for line in lines] == [*found["what"]]


@pytest.mark.usefixtures("place")
def test_libraries_that_are_missing_or_too_old(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"transformers": "4.0"}

    def version(name: str) -> str:
        if name == "faiss-cpu" or name == "timm":
            raise machine.PackageNotFoundError(name)
        return versions.get(name, "99.0")

    monkeypatch.setattr(machine, "version", version)
    out = said(capsys, 1).out
    assert "WRONG  faiss-cpu: is not installed (pip install 'faiss-cpu>=" in out
    assert "ok     timm: is not installed (pip install 'layerboard[timm]')" in out
    assert "WRONG  transformers: 4.0 is installed, and transformers<6,>=" in out


def test_a_cache_that_is_full_or_cannot_be_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(2**40, 2**40, 10**6))
    assert "0.0 GB are free; give --cache DIR, or set LAYERBOARD_CACHE" in str(machine._cache())
    (place / "cache").write_text("a file")
    assert str(machine._cache()).startswith("WRONG  cache: it cannot be written (")
