"""Results as data: what a submission holds, and that one changed thing of it is found."""

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import layerboard
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.repeat import suite_of
from layerboard.leaderboards.exchange.merge import StoredResult
from layerboard.leaderboards.exchange.submission import PATH, public_name
from layerboard.leaderboards.records.checksum import companions_of, write_checked
from layerboard.leaderboards.records.fields import name_problem
from layerboard.leaderboards.records.manifest import MANIFEST, verified_results
from layerboard.leaderboards.records.record import read_records
from layerboard.zoo.errors import InputError
from tests.benchmark.conftest import Whole, copy_results
from tests.benchmark.runs import command, run
from tests.faults.submissions import WAYS, change_once, damage, problems_of

Capture = pytest.CaptureFixture[str]
TASKS = ("knn", "cka", "spair", "cluster-object")


@pytest.fixture(scope="module")
def out(whole: Whole, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of the whole run."""
    return copy_results(whole, tmp_path_factory.mktemp("out"), *TASKS)


@pytest.fixture(scope="module")
def submission(out: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("repository")
    return layerboard.submit(out, to=repository, name="mine", partial=True).paths[0].parent


def test_a_submission_is_an_output_folder_without_pictures(out: Path, submission: Path) -> None:
    assert {path.name for path in submission.iterdir()} <= {MANIFEST, "records", "items", "arrays"}
    before, after = (read_records([folder / "records"]) for folder in (out, submission))
    pd.testing.assert_frame_equal(before, after)
    manifest = json.loads((submission / MANIFEST).read_text())
    assert manifest["results_version"] == 1
    assert manifest["partial"] is True
    assert sorted(manifest["weights"]) == ["mini-fs", "mini-resnet"]
    assert problems_of(submission) == []


def test_submit_prints_the_text_of_a_pull_request(capsys: Capture, out: Path, tmp_path: Path) -> None:
    words = ("submission", "write", out, "--to", tmp_path, "--partial", "--name", "x", "--claim", "authors")
    said = command(capsys, *words)
    assert said.code == 0
    for text in ("# Results of mini-fs, mini-resnet", "Claim: authors", "verify submissions/x", "SHA-256"):
        assert text in said.out
    assert "there is a submission at" in command(capsys, *words).error


def test_partial_data_are_refused_unless_it_is_said(capsys: Capture, out: Path, tmp_path: Path) -> None:
    assert (
        "a part of a dataset is behind" in command(capsys, "submission", "write", out, "--to", tmp_path).error
    )
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("/home/me/my net", "my net"),
        ("./own-vit/", "own-vit"),
        ("~/nets/a@448px", "a@448px"),
        ("C:\\nets\\b", "b"),
        ("facebook/dinov2-base", "facebook/dinov2-base"),
        ("timm:vit_small", "timm:vit_small"),
        ("onnx:/home/me/net.onnx", "onnx:net.onnx"),
        ("mini-dino", "mini-dino"),
    ],
)
def test_backbones_lose_the_folders_that_they_lie_in(name: str, public: str) -> None:
    assert public_name(name) == public


def test_paths_in_texts_become_their_last_names() -> None:
    text = "/home/me/net adds no a/b, 3/12 images of ./data/x.png; ~/cache/y and C:\\z\\w"
    assert PATH.sub(r"\1", text) == "net adds no a/b, 3/12 images of x.png; y and w"


def test_no_path_of_the_machine_is_submitted(own_local: Path, tmp_path: Path) -> None:
    sent = layerboard.submit(own_local, to=tmp_path / "repository", partial=True)
    folder = sent.paths[0].parent
    assert {*read_records([folder / "records"])["backbone"]} == {"own-net"}
    assert all(str(tmp_path).encode() not in path.read_bytes() for path in sent.paths)
    assert problems_of(folder) == []


@pytest.fixture
def own_local(out: Path, tmp_path: Path) -> Path:
    """Results of a backbone that lies in a folder of this machine."""
    name = f"{tmp_path}/nets/own-net"
    records = out / "records" / "mini-fs" / "knn.imagenet.standard.parquet"
    folder = tmp_path / "local"
    rows = pd.read_parquet(records).assign(backbone=name, reason=f"{name} has no attention.")
    called = layerboard.leaderboards.records.files.safe_name(name)
    write_checked(rows, folder / "records" / called / records.name, companions_of(records.read_bytes()))
    for kind, ending in (("items", ".parquet"), ("examples", ".npz")):
        (folder / kind / called).mkdir(parents=True)
        source = out / kind / "mini-fs" / records.with_suffix(ending).name
        shutil.copyfile(source, folder / kind / called / source.name)
    shutil.copytree(out / "thumbnails", folder / "thumbnails")
    return folder


@pytest.mark.parametrize("signed", [False, True])
def test_one_change_is_found(submission: Path, tmp_path: Path, signed: bool) -> None:
    for number, way in enumerate(way for way in WAYS if not (signed and way is damage)):
        draw, place = random.Random(500 + number), tmp_path / str(number)  # draws what one check alone sees
        shutil.copytree(submission, place)
        title = change_once(place, draw, way, signed=signed)
        assert problems_of(place), title


def test_verify_says_what_is_wrong_and_where(capsys: Capture, submission: Path, tmp_path: Path) -> None:
    assert "expected a submission" in command(capsys, "submission", "verify", tmp_path).error
    assert command(capsys, "submission", "verify", submission).code == 0
    place = tmp_path / "changed"
    shutil.copytree(submission, place)
    path = next((place / "records" / "mini-fs").glob("knn.*"))
    rows = pd.read_parquet(path)
    rows.loc[0, "value"] += 1
    write_checked(rows, path, companions_of(path.read_bytes()))
    said = command(capsys, "submission", "verify", place)
    assert said.code == 1
    assert f"mini-fs/{path.name}: {rows['metric'][0]} of layer 1 block (cls) has value" in said.out
    assert f"file records/mini-fs/{path.name}" in said.out


@pytest.mark.parametrize("column", ["backbone", "task"])
def test_a_submission_names_no_code_that_is_run(submission: Path, column: str) -> None:
    rows = read_records([submission / "records" / "mini-fs"]).query("task == 'knn'")
    for names, suite in (({}, "standard"), ({column: "evil:name"}, ""), ({column: "evil:name@448px"}, "")):
        result = StoredResult(submission, Path("a"), rows.assign(**names), {})
        assert suite_of(result, Request(data="data")) == suite


def test_of_a_part_of_a_dataset_the_same_images_are_measured_again(
    submission: Path, data: Path, tmp_path: Path
) -> None:
    options = {"seed": 2, "cache": tmp_path / "cache", "mark": True}
    other = tmp_path / "data"
    shutil.copytree(data / "imagenet", other / "imagenet")
    for path in other.rglob("*.JPEG"):
        path.write_bytes(path.read_bytes() + b"x")
    checked = layerboard.verify(submission, data=other, **options)
    (problem,) = checked.frame["problem"]
    assert problem.startswith("nothing that was drawn could be measured again")
    assert checked.notes[1] == "Measured again, drawn with --seed 2: none."
    assert "more were drawn but cannot be measured here, such as mini-" in checked.notes[2]
    assert not verified_results(submission.parents[1], submission)
    checked = layerboard.verify(submission, data=data, **options)
    assert len(checked.frame) == 0
    drawn = checked.notes[1].removeprefix("Measured again, drawn with --seed 2: ").removesuffix(".")
    assert verified_results(submission.parents[1], submission) == {*drawn.split(", ")} != set()
    with pytest.raises(InputError, match="mark= needs a new measurement"):
        layerboard.verify(submission, mark=True)


def test_made_up_results_are_drawn_and_not_marked(submission: Path, data: Path, tmp_path: Path) -> None:
    """Nobody can measure them: the honest one beside them lends them no mark."""
    honest = next((submission / "records" / "mini-fs").glob("knn.*"))
    out = tmp_path / "out"
    for name in ("mini-fs", *(f"made-up-{number}" for number in range(5))):
        for kind in ("records", "items"):
            source, target = submission / kind / "mini-fs" / honest.name, out / kind / name / honest.name
            target.parent.mkdir(parents=True)
            shutil.copyfile(source, target)
        target = out / "records" / name / honest.name
        rows = pd.read_parquet(target).assign(backbone=name)
        write_checked(rows, target, companions_of(target.read_bytes()))
    sent = layerboard.submit(out, to=tmp_path / "repository", name="x", partial=True).paths[0].parent
    options = {"data": data, "cache": tmp_path / "cache", "mark": True}
    for seed in range(2):
        checked = layerboard.verify(sent, seed=seed, **options)
        assert "made-up-" in checked.notes[2]
        assert "is not in the registry; give it by --backbones" in checked.notes[2]
        assert bool(len(checked.frame)) == checked.notes[1].endswith(": none.")
        assert "made-up" not in " ".join(verified_results(tmp_path / "repository", sent))


def test_a_killed_submit_leaves_nothing_that_counts(out: Path, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    options = {"to": tmp_path, "name": "x", "partial": True}
    with monkeypatch.context() as patch:
        patch.setattr("layerboard.leaderboards.exchange.submission.weights_by_backbone", lambda _: 1 / 0)
        patch.setattr("shutil.rmtree", lambda *_, **__: None)  # as if killed
        with pytest.raises(ZeroDivisionError):
            layerboard.submit(out, **options)
    assert [path.name[0] for path in (tmp_path / "submissions").iterdir()] == ["."]
    folder = layerboard.submit(out, **options).paths[0].parent
    assert problems_of(folder) == []
    assert (tmp_path / "accepted.txt").read_text() == "x\n"


def test_names_of_submissions_are_plain(out: Path, tmp_path: Path) -> None:
    for name in ("..", "a/b", " x", "x.", "b\u0430", "a b", "-x", "X" * 300, "mine!"):
        assert "needs a name of ASCII letters" in name_problem("submission", name)
    for name in ("..", ""):
        with pytest.raises(InputError, match=r"needs a name of ASCII letters|takes a word"):
            layerboard.submit(out, to=tmp_path, name=name, partial=True)
    assert not [*tmp_path.iterdir()]


def test_names_of_submissions_differ_in_more_than_case(out: Path, tmp_path: Path) -> None:
    layerboard.submit(out, to=tmp_path, name="mine", partial=True)
    with pytest.raises(InputError, match="the submission MINE differs from mine in case alone"):
        layerboard.submit(out, to=tmp_path, name="MINE", partial=True)


def test_who_reviews_is_told_what_a_reviewer_can_do(
    capsys: Capture, submission: Path, tmp_path: Path
) -> None:
    place = tmp_path / "changed"
    shutil.copytree(submission, place)
    path = next((place / "records" / "mini-fs").glob("knn.*"))
    rows = pd.read_parquet(path)
    rows.loc[1:, "backbone"] = "mini-resnet"
    write_checked(rows, path, companions_of(path.read_bytes()))
    said = command(capsys, "submission", "verify", place)
    assert said.code == 2
    assert f"cannot use records {path}: it is of 2 backbones or tasks, expected one" in said.error
    assert said.error.endswith("; refuse it, or ask its sender for a new submission")
    path.write_bytes(path.read_bytes()[:-9])
    assert "run again" not in command(capsys, "submission", "verify", place).error


@pytest.mark.slow
def test_a_drawn_part_is_measured_again(tmp_path: Path) -> None:
    run(tmp_path, ["mini-fs"], "knn", "cluster-part", layers="6,12", limit=None)
    sent = layerboard.submit(tmp_path / "out", to=tmp_path / "repository", partial=True)
    folder, options = sent.paths[0].parent, {"again": True, "seed": 0, "cache": tmp_path / "cache"}
    checked = layerboard.verify(folder, **options)
    assert [*checked.frame["problem"]] == []
    assert "Measured again, drawn with --seed 0: mini-fs/" in checked.notes[1]
    name = checked.notes[1].split(": ")[1].removesuffix(".")
    path = folder / "records" / name
    rows = pd.read_parquet(path)
    rows["value"] = np.minimum(rows["value"] + 1, 100)
    write_checked(rows, path, companions_of(path.read_bytes()))
    assert (
        "measured again, is another result" in layerboard.verify(folder, **options).frame["problem"].iloc[-1]
    )
