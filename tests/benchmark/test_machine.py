"""`layerboard check` without data: what is wrong, whatever is broken."""

import shutil
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

import pytest

import layerboard
from layerboard.benchmark import machine
from layerboard.benchmark.machine import Diagnosis
from tests.benchmark.runs import Said, command

Capture = pytest.CaptureFixture[str]

BROKEN = {
    "broken_by_itself": "1 / 0",
    "crashes": "import os, signal; print('OMP: Error #15'); os.kill(os.getpid(), signal.SIGABRT)",
    "ends": "import os; os._exit(0)",
    "exits": "raise SystemExit(3)",
    "hangs": "import time; time.sleep(100)",
    "talks": "print('welcome', end='')",
}


def wrong(findings: list[Diagnosis]) -> dict[str, str]:
    return {each.what: each.sentence for each in findings if each.wrong}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No library is imported."""
    monkeypatch.setattr(
        machine, "_imported", lambda modules: iter([("OpenMP", "ok one"), ("GPU", "ok none")])
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder and a cache with room."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYERBOARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    return tmp_path


def said(capsys: Capture, code: int) -> Said:
    told = command(capsys, "check")
    assert told.code == code, told.out
    return told


@pytest.mark.skipif(sys.platform == "win32", reason="signals end processes in another way there")
def test_modules_that_break_crash_or_hang_are_named_and_the_others_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, code in BROKEN.items():
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(machine, "FACTS", {})
    monkeypatch.setattr(machine, "SECONDS", 8.0)
    answers = dict(machine._imported([*BROKEN, "no_such_module", "json"]))
    assert "cannot be imported (division by zero)" in answers["broken_by_itself"]
    assert answers["crashes"] == "its import crashes Python by SIGABRT (OMP: Error #15); install it again"
    assert answers["ends"] == "its import ends Python with exit code 0; install it again"
    assert answers["exits"].startswith("exits is installed and cannot be imported (3)")
    assert answers["hangs"] == "its import does not end in 8 seconds; install it again"
    assert "no_such_module is not installed" in answers["no_such_module"]
    assert (answers["talks"], answers["json"]) == ("", "")


@pytest.mark.usefixtures("alone", "place")
def test_a_sound_machine_has_exit_code_0(capsys: Capture) -> None:
    told = said(capsys, 0)
    assert told.out.splitlines()[-1] == "Nothing is wrong."
    assert {"torch", "faiss-cpu", "timm", "GPU", "cache"} <= {
        line.split()[1].rstrip(":") for line in told.out.splitlines()[:-1]
    }


@pytest.mark.usefixtures("alone", "place")
def test_python_has_the_same_findings(capsys: Capture) -> None:
    found = layerboard.check().frame
    assert [*found] == ["what", "sentence", "wrong"]
    assert not found["wrong"].any()
    lines = said(capsys, 0).out.splitlines()[:-1]
    assert [line.split()[1].rstrip(":") for line in lines] == [what.split()[0] for what in found["what"]]


@pytest.mark.usefixtures("place")
def test_one_cause_is_said_once(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    told = "torchvision 0.29.1 does not fit torch 2.13.0"
    answers = [
        ("transformers.modeling_utils", told),
        ("torch", told),
        ("OpenMP", "wrong twice"),
        ("GPU", "ok"),
    ]
    monkeypatch.setattr(machine, "_imported", lambda modules: iter(answers))
    out = said(capsys, 1).out
    assert out.count(told) == 1
    assert "WRONG  OpenMP: twice" in out
    assert out.endswith("2 wrong\n")


@pytest.mark.usefixtures("alone")
def test_what_is_missing_or_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, versions = machine.installed, {"faiss-cpu": "", "transformers": "4.0", "timm": ""}
    monkeypatch.setattr(machine, "installed", lambda name: versions.get(name, usual(name)))
    monkeypatch.setattr(machine, "is_there", lambda name: False)
    monkeypatch.setattr(machine, "fits", lambda name, wanted: name != "transformers")
    found = list(machine._libraries())
    assert wrong(found)["faiss-cpu"] == "is not installed, and layerboard needs it: pip install faiss-cpu"
    assert wrong(found)["transformers"].startswith("4.0 is installed, and layerboard needs transformers")
    assert {each.what: str(each) for each in found}["timm"] == (
        "ok     timm: not installed (pip install 'layerboard[timm]')"
    )


def test_folders_that_cannot_be_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "cache").write_text("a file")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(2**40, 2**40, 10**6))
    found = wrong(list(machine._folders()))
    assert "cannot be written" in found["cache"]
    assert found["cache"].endswith("give --cache DIR, or set LAYERBOARD_CACHE")
    assert "can be written, 0.0 GB are free; change to another folder" in found["working folder"]
    monkeypatch.setattr(tempfile, "gettempdir", lambda: (_ for _ in ()).throw(FileNotFoundError("none")))
    assert "set TMPDIR" in wrong(list(machine._folders()))["temporary files"]


@pytest.mark.usefixtures("place")
def test_what_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert wrong([*machine._threads(), *machine._locale()]) == {}
    monkeypatch.setenv("OMP_NUM_THREADS", "abc")
    assert "expected a number, found 'abc'" in wrong(list(machine._threads()))["OMP_NUM_THREADS"]
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")
    assert "names of files are read as ascii" in wrong(list(machine._locale()))["locale"]
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(machine, "SHARED", tmp_path / "shm")
    assert "does not exist" in wrong(list(machine._shared_memory()))["shared memory"]


def test_a_gpu_without_a_torch_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    driver = tmp_path / "version"
    driver.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 2024\n")
    monkeypatch.setattr(machine, "DRIVER", driver)
    monkeypatch.setattr("torch.version.cuda", None)
    assert machine._gpu().startswith("wrong there is the NVIDIA driver 535.183.01, and torch ")
    monkeypatch.setattr("torch.version.cuda", "13.0")

    def zeros(*_: object, **__: object) -> None:
        raise RuntimeError(
            "The NVIDIA driver on your system is too old (found version 12020).\nPlease update"
        )

    monkeypatch.setattr("torch.zeros", zeros)
    assert "for CUDA 13.0 do not work together (The NVIDIA driver on your system is too old" in machine._gpu()


@pytest.mark.usefixtures("alone", "place")
def test_a_check_that_fails_is_a_finding(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "requirements", lambda *_: 1 / 0)
    assert "WRONG  libraries: cannot be looked at (zero division error: " in said(capsys, 1).out


def test_two_runtimes_of_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    def loaded(*names: str) -> None:
        infos = [
            {"user_api": "openmp", "prefix": name, "filepath": f"/{name}.{n}"} for n, name in enumerate(names)
        ]
        monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: infos)

    for names, answer in (
        (("libgomp", "libgomp"), "ok"),
        (("libomp", "libgomp"), "wrong"),
        (("libomp",), "ok"),
    ):
        loaded(*names)
        assert machine._openmp().startswith(answer)
