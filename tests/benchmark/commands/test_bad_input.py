"""Whatever is wrong, it is one sentence and exit code 2, and what was finished is kept."""

import errno
import json
import os
import pickle
import signal
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pandas as pd
import pytest

import layerboard
from layerboard.benchmark.commands.app import main
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.record import read_records, to_frame
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.zoo.errors import InputError, printable
from tests import fakes
from tests.benchmark.runs import Cli, Said, Tally, leave_pages_out
from tests.leaderboards.builder import layers
from workshop.render.masks import write_mask

Go = Callable[..., Said]


@pytest.fixture
def go(cli: Cli, tmp_path: Path) -> Go:
    """`run` with the random floor, which needs no weights."""

    def run(*arguments: object) -> Said:
        folders = ("-o", tmp_path / "out", "--cache", tmp_path / "cache")
        return cli("run", "-b", "mini-random", "--layers", "1", "--workers", "1", *folders, *arguments)

    return run


def records(tmp_path: Path) -> pd.DataFrame:
    return read_records([tmp_path / "out" / "records"])


@pytest.mark.parametrize(
    ("option", "address", "shown"),
    [
        ("--data", "https://me:secret@host/x", "https://host/x"),
        ("--images", "s3://k:secret@b/{0..3}.tar", "s3://b/{0..3}.tar"),
    ],
)
def test_no_error_shows_what_an_address_keeps_secret(go: Go, option: str, address: str, shown: str) -> None:
    said = go(option, address)
    assert f"{option} takes a folder on this machine, found {shown}" in said.error
    assert "secret" not in f"{said.out}{said.err}"


@pytest.mark.parametrize("option", ["--output", "--cache"])
def test_a_file_in_the_way_of_a_folder(go: Go, data: Path, tmp_path: Path, option: str) -> None:
    (tmp_path / "file").write_text("kept")
    assert "cannot be written to" in go("--data", data, option, tmp_path / "file").error
    assert (tmp_path / "file").read_text() == "kept"
    assert "cannot be written to" in go("--data", data, option, tmp_path / "file" / "below").error


class Payload:
    """Runs a command when it is unpickled by anything but a careful reader."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def test_broken_data_fails_its_task_only_and_names_the_file(go: Go, own_data: Path, tmp_path: Path) -> None:
    mask = own_data / "DAVIS/Annotations/480p/sequence-1/00002.png"
    write_mask(mask, read_mask(mask)[:-3])
    (own_data / "SPair-71k/JPEGImages/cat/2008_000001.jpg").unlink()
    gnd = own_data / "rparis6k/gnd_rparis6k.pkl"
    gnd.write_bytes(pickle.dumps({"gnd": Payload(tmp_path / "executed"), "imlist": [], "qimlist": []}))
    said = go("--data", own_data, "-t", "knn", "retrieval", "davis", "spair")
    assert said.code == 2
    failed = said.lines("failed: ")
    assert [line.split(", ")[1].split(":")[0] for line in failed] == ["retrieval", "davis", "spair"]
    for line, name in zip(failed, ("gnd_rparis6k.pkl", str(mask), "2008_000001.jpg"), strict=True):
        assert name in line
    assert not (tmp_path / "executed").exists()
    found = records(tmp_path)
    assert set(found["task"]) == {"knn", "retrieval"}
    assert set(found[found["task"] == "retrieval"]["dataset"]) == {"roxford5k"}
    assert (tmp_path / "out" / "tables" / "standard.md").is_file()


@pytest.mark.usefixtures("no_pages")
def test_images_that_cannot_be_decoded(go: Go, own_data: Path, tmp_path: Path) -> None:
    image = own_data / "imagenet/train/n00000002/n00000002_1.JPEG"
    truncate(image)
    said = go("--data", own_data, "-t", "knn", "cka")
    assert said.code == 0
    assert [line for line in said.lines("left out: ") if str(image) in line]
    found = records(tmp_path)
    assert found["partial"].all()
    assert found["coverage"].str.contains("1 unreadable").all()
    truncate(own_data / "DAVIS/JPEGImages/480p/sequence-0/00001.jpg")
    truncate(own_data / "roxford5k/jpg/landmark_0_000001.jpg")
    said = go("--data", own_data, "-t", "davis", "retrieval", "spair")
    assert said.code == 2
    assert sorted(line.split(", ")[1].split(":")[0] for line in said.lines("failed: ")) == [
        "davis",
        "retrieval",
    ]
    found = records(tmp_path)
    assert set(found["task"]) == {"knn", "cka", "retrieval", "spair"}
    assert set(found[found["task"] == "retrieval"]["dataset"]) == {"rparis6k"}


def test_no_image_that_can_be_decoded_fails_its_tasks(go: Go, own_data: Path, tmp_path: Path) -> None:
    for image in (own_data / "imagenet/train").rglob("*.JPEG"):
        image.write_bytes(b"")
    for _ in range(2):  # the second time from what is stored
        said = go("--data", own_data, "-t", "knn", "cluster-image", "cka", "attention-distance")
        assert said.code == 2
        failed = said.lines("failed: ")
        assert {line.split(": ")[1].split(", ")[-1] for line in failed} == {"knn", "cluster-image", "cka"}
        words = "expected images that can be decoded in imagenet/train-probe, such as train/n0"
        assert all(words in line and "found none among 12; fetch them again" in line for line in failed)
    assert not (tmp_path / "out" / "records").exists() or not list((tmp_path / "out").rglob("*.parquet"))


@pytest.mark.parametrize(("where", "number"), [("features", 4), ("out", 3), ("tables", 1)])
def test_a_full_disk_is_one_sentence_and_a_later_run_goes_on(
    go: Go, data: Path, monkeypatch: pytest.MonkeyPatch, where: str, number: int
) -> None:
    replace, left = os.replace, number

    def full(source: str, target: str | Path) -> None:
        nonlocal left
        left -= where in Path(target).parts
        if left <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    words = ("--data", data, "-t", *(("knn",) if where == "tables" else ("knn", "davis", "cka")))
    with monkeypatch.context() as patch, Tally().watching() as first:
        patch.setattr(os, "replace", full)
        said = go(*words)
    (error,) = said.lines("error: ") if where == "tables" else [said.error]  # pages follow the answer
    assert "no space is left on the disk" in error
    if where != "tables":
        leave_pages_out(monkeypatch)
    with Tally().watching() as second:
        assert go(*words).code == 0
    assert (where == "features") == bool(second.rows)
    assert not set(list(first.rows)[:2]) & set(second.rows)


def test_no_memory_outside_of_tasks_is_one_sentence(
    go: Go, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")

    monkeypatch.setattr("layerboard.benchmark.jobs.prepare.make_plan", full)
    assert go("--data", data).error.startswith("error: out of memory; try with less data")
    monkeypatch.setattr("layerboard.benchmark.jobs.prepare.make_plan", lambda *_: {}["a bug"])
    with pytest.raises(KeyError):
        go("--data", data)


@pytest.mark.usefixtures("no_pages")
def test_a_failing_backbone_is_said(go: Go, data: Path, tmp_path: Path) -> None:
    said = go("--data", data, "-b", "dino-b16", "-t", "knn")
    assert said.code == 2
    (line,) = said.lines("failed: dino-b16")
    assert "the Hub cannot be reached" in line
    assert "all features were there" not in said.out + said.err
    assert set(records(tmp_path)["backbone"]) == {"mini-random"}


def test_a_bug_gives_exit_code_1(go: Go, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr("layerboard.tasks.classification.knn.KnnTask.score_together", bug)
    said = go("--data", data, "-t", "knn", "spair")
    assert said.code == 1
    assert said.lines("failed: ") == ["failed: mini-random, knn: index error: list index out of range"]
    assert said.lines("wrote ")


@pytest.mark.parametrize(("ctrl_c", "code"), [(True, 130), (False, 143)])
def test_ctrl_c_and_sigterm_are_one_sentence(
    go: Go, data: Path, monkeypatch: pytest.MonkeyPatch, ctrl_c: bool, code: int
) -> None:
    def stop(*_: object, **__: object) -> None:
        if ctrl_c:
            raise KeyboardInterrupt
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("layerboard.benchmark.jobs.passes.run_pass", stop)
    said = go("--data", data)
    assert said.code == code
    assert said.lines("interrupted; finished work is kept")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_user_without_a_home(cli: Cli, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("LAYERBOARD_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    said = cli("run", "--data", data)
    assert "has no home folder for the cache; give --cache DIR" in said.error


def test_a_working_folder_that_was_removed(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for words in (("run",), ("check", "--data", "x")):
        assert "the working folder does not exist any more" in cli(*words).error
    with pytest.raises(InputError, match="the working folder does not exist any more"):
        layerboard.run("mini-fs")


def _of_records(folder: Path, name: str = "mini-dino") -> Path:
    frame = to_frame([*layers([40.0, 50.0], backbone=name), *layers([30.0, 20.0])])
    write_checked(frame, folder / "records" / "any" / "knn.mini-imagenet.standard.parquet")
    return folder


STEERING = "a\x1b]0;owned\x07b\x9b31m\u202ec\x7f"
"""A name that sets the title of a terminal's window, its colour and the order of reading."""


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("recommend",),
        ("compare", STEERING, "mini-dino"),
        ("export", "csv"),
        ("export", "latex"),
        ("leaderboard",),
        ("report",),
    ],
)
def test_names_steer_no_terminal(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    out = _of_records(tmp_path, STEERING)
    said = cli(*words, "-o", out)
    written = [
        path.read_text() for ending in ("csv", "md", "tex", "html") for path in out.rglob(f"*.{ending}")
    ]
    for text in (said.out, said.err, *written):
        assert text == printable(text)
    assert "owned" in said.out + said.err + "".join(written)


def test_names_steer_no_terminal_in_tables_errors_and_lines(cli: Cli, tmp_path: Path) -> None:
    fakes.write_fake_class_folders(tmp_path / STEERING, images=2)
    said = cli("check", "--images", tmp_path / STEERING)
    said_of_none = cli("check", "--images", tmp_path / f"{STEERING} none")
    for text in (said.out, said_of_none.out):
        assert "\ufffd" in text
        assert text == printable(text)
    rows = json.loads(cli("show", "--json", "-o", _of_records(tmp_path / "o", STEERING)).out)
    assert rows[0]["answers"][0]["backbone"] == STEERING


@pytest.mark.parametrize(
    "words", [("export", "csv", "--to"), ("leaderboard", "--tables"), ("report", "--to")]
)
def test_a_file_in_the_way_of_what_is_written(cli: Cli, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("kept")
    error = cli(*words, tmp_path / "file", "-o", _of_records(tmp_path)).error
    assert f"expected a folder at '{tmp_path}/file', where there is a file; remove it" in error
    assert (tmp_path / "file").read_text() == "kept"


def test_names_that_the_terminal_has_no_letters_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(screen, "latin-1", write_through=True))
    monkeypatch.setattr(sys, "argv", ["x", "export", "csv", "-o", str(_of_records(tmp_path / "猫"))])
    with pytest.raises(SystemExit):
        main()
    assert rb"\u732b/export/mini.csv" in screen.getvalue()
