"""The commands that compare, merge and hand on what a run has written, as a user types them."""

import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import layerboard
from layerboard.leaderboards.records.checksum import file_digest, write_checked
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import write_items
from layerboard.leaderboards.records.record import read_frame
from layerboard.zoo.errors import InputError
from tests.benchmark.conftest import Whole, copy_results
from tests.benchmark.runs import Cli, Said, Tally, files
from tests.leaderboards.builder import frame, layers, measured
from tests.leaderboards.planted import plant
from tests.leaderboards.planted import records as planted


@pytest.fixture
def write(cli: Cli, whole: Whole, data: Path, tmp_path: Path):  # type: ignore[no-untyped-def]
    """`features` with the cache of the whole run."""

    def features(*arguments: object) -> Said:
        folders = ("-o", tmp_path / "out", "--cache", whole.place / "cache", "--data", data)
        return cli("features", *folders, "--workers", "1", *arguments)

    return features


def record(whole: Whole, **facts: object) -> pd.Series:
    """The one record of the whole run that has these facts."""
    rows = whole.records
    for column, value in facts.items():
        rows = rows[rows[column] == value]
    assert len(rows) == 1
    return rows.iloc[0]


SCORED = (
    ("knn", "knn", "knn.imagenet.standard", "1.cls.npz", "top-1"),
    ("retrieval", "retrieval", "retrieval.roxford5k.standard", "final.mean.npz", "mAP medium"),
    ("cluster-image", "clustering", "cluster-image.imagenet.standard", "final.cls.npz", "purity"),
)


@pytest.mark.parametrize(("task", "scorer", "folder", "name", "metric"), SCORED)
def test_what_features_writes_scores_as_the_run_did(  # type: ignore[no-untyped-def]
    cli: Cli, whole: Whole, data: Path, tmp_path: Path, write, task, scorer, folder, name, metric
) -> None:
    with Tally().watching() as tally:
        said = write("-b", "mini-fs", "-t", task, "--layers", "1,final")
    assert (said.code, tally.rows.total(), len(said.lines("no images went"))) == (0, 0, 1)
    path = tmp_path / "out" / "features" / "mini-fs" / folder / name
    layer, pooling, _ = name.split(".")
    truth = ("--ground-truth", data / "roxford5k" / "gnd_roxford5k.pkl") if task == "retrieval" else ()
    k: tuple[object, ...] = ()
    if task == "knn":  # fewer images than the protocol's 20 neighbours: all of them vote
        with np.load(path) as arrays:
            k = ("--config", f"k={len(arrays['train'])}")
            parts = {f"{part}{what}" for part in ("train", "test") for what in ("", "_labels", "_keys")}
            assert {*arrays} == parts
            assert len({*arrays["train_keys"]}) == len(arrays["train"]) == len(arrays["train_labels"])
            assert arrays["test"].dtype == np.float32
    scored = cli("score", scorer, "--features", path, *truth, *k, "--json")
    found = json.loads(scored.out)
    place = {"tap": "final" if layer == "final" else "block", "pooling": pooling, "head": -1}
    of_task = {"backbone": "mini-fs", "task": task, "dataset": folder.split(".")[1], "metric": metric}
    expected = record(whole, **of_task, **place)
    assert found["scores"][metric] == pytest.approx(expected["value"], abs=1e-9)
    ends = expected[["ci_low", "ci_high"]].tolist()
    assert found["details"]["intervals"][metric] == pytest.approx(ends, abs=1e-4)
    assert len(list(path.parent.iterdir())) == 4


def test_cka_of_written_vectors_is_that_of_the_run(  # type: ignore[no-untyped-def]
    cli: Cli, whole: Whole, tmp_path: Path, write
) -> None:
    assert write("-b", "mini-fs", "-t", "cka", "--layers", "1,final", "--poolings", "cls").code == 0
    folder = tmp_path / "out" / "features" / "mini-fs" / "cka.imagenet.standard"
    paths = [folder / "1.cls.npy", folder / "final.cls.npy"]
    assert sorted(folder.iterdir()) == paths
    said = cli("score", "cka", "--features", *paths, "--json")
    found = json.loads(said.out)["scores"]["1.cls"]["final.cls"]
    pair = {"backbone": "mini-fs", "layer": 1, "other": "mini-fs", "other_tap": "final"}
    expected = record(whole, task="cka", pooling="cls", **pair)
    assert found == pytest.approx(expected["value"], abs=1e-5)


def test_what_is_not_stored_goes_through_the_backbone_once(  # type: ignore[no-untyped-def]
    cli: Cli, data: Path, tmp_path: Path
) -> None:
    words = ("features", "-b", "mini-fs", "-t", "knn", "--data", data, "--layers", "2", "--workers", "1")
    folders = ("-o", tmp_path / "out", "--cache", tmp_path / "cache")
    with Tally().watching() as tally:
        assert cli(*words, *folders, "--poolings", "mean").code == 0
        assert cli(*words, *folders, "--layers", "3", "--poolings", "cls").code == 0
    assert set(tally.images.values()) == {1}
    names = {path.name for path in (tmp_path / "out" / "features").rglob("*.npz")}
    assert names == {"2.mean.npz", "3.cls.npz"}


def test_two_backbones_are_compared(cli: Cli, whole: Whole) -> None:
    out = whole.place / "out"
    said = cli("compare", "mini-fs", "mini-resnet", "-o", out, "--tasks", "knn", "spair")
    assert said.code == 0
    title, table, *_ = said.out.split("\n\n")
    assert title == "mini-fs and mini-resnet, paired"
    head, _, *rows = table.splitlines()
    assert head.split()[:4] == ["task", "mini-fs", "mini-resnet", "difference"]
    assert len(rows) == 2
    assert "Each backbone is shown at its highest layer" in said.out.splitlines()[-1]
    said = cli("compare", "mini-fs", "mini-resnet", "-o", out, "-t", "knn", "--json")
    found = json.loads(said.out, parse_constant=pytest.fail)
    (row,) = found["comparisons"]
    assert row["difference"] == pytest.approx(row["score"] - row["other_score"])
    compared = layerboard.compare("mini-fs", "mini-resnet", output=out, tasks="knn")
    assert compared.frame["difference"].tolist() == pytest.approx([row["difference"]])
    assert compared.conclusion == found["conclusion"]
    assert compared.conclusion in repr(compared)


def test_the_python_comparison_refuses_alike(whole: Whole) -> None:
    with pytest.raises(InputError, match="two different backbones"):
        layerboard.compare("mini-fs", "mini-fs", output=whole.place / "out")
    with pytest.raises(InputError, match=r"compare\(\) has no option 'json'"):
        layerboard.compare("mini-fs", "mini-resnet", json=True)


def test_outputs_of_two_machines_make_one_page(cli: Cli, whole: Whole, tmp_path: Path) -> None:
    first, second = (copy_results(whole, tmp_path / name, "knn", "cka") for name in "ab")
    shutil.rmtree(first / "records" / "mini-resnet")
    shutil.rmtree(second / "records" / "mini-fs--mini-resnet")
    said = cli("merge", first, second, "-o", tmp_path / "c")
    assert said.code == 0
    assert said.out.splitlines()[-1] == f"wrote {tmp_path / 'c' / 'tables' / 'standard.md'}"
    merged, *names = (
        {path.relative_to(one) for path in files(one / "records")} for one in (tmp_path / "c", first, second)
    )
    assert merged == set.union(*names)


def test_export_writes_each_form(cli: Cli, whole: Whole, of_knn: Path, tmp_path: Path) -> None:
    out, to = of_knn, tmp_path / "paper"
    said = cli("export", "latex", "-o", out, "--to", to)
    assert (said.code, said.out) == (0, f"{to / 'standard.tex'}\n{to / 'standard.held-out.tex'}\n")
    said = cli("export", "latex", "-o", out, "--to", to, "-b", "mini-resnet", "mini-fs")
    assert "standard.mini-resnet--mini-fs.tex\n" in said.out
    paired = (to / "standard.mini-resnet--mini-fs.tex").read_text()
    assert "& mini-resnet & mini-fs & difference &" in paired
    assert "chosen on half of the test data" in (to / "standard.held-out.tex").read_text()
    text = (to / "standard.tex").read_text()
    assert text.count(r"\\") == 3
    assert r"\textbf{" in text
    every = whole.place / "out"
    assert cli("export", "csv", "-o", every, "--to", to).code == 0
    assert (to / "standard.csv").read_bytes() == (every / "tables" / "standard.csv").read_bytes()
    said = cli("export", "hub", "-o", out, "--to", to, "-b", "mini-f*")
    assert [Path(line).relative_to(to).as_posix() for line in said.out.splitlines()] == [
        "mini-fs/model-index.yaml"
    ]


def test_sigterm_ends_export_with_a_sentence_and_whole_files(
    cli: Cli, of_knn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []

    def stop(self: Path, content: bytes) -> int:
        with self.open("wb") as stream:
            stream.write(content if not written else content[:10])
        if written:
            os.kill(os.getpid(), signal.SIGTERM)
        written.append(content)
        return len(content)

    monkeypatch.setattr(Path, "write_bytes", stop)
    said = cli("export", "latex", "-o", of_knn, "--to", tmp_path / "to")
    assert (said.code, said.out) == (143, "")
    assert "interrupted; every file that was written is complete" in said.err
    assert [path.read_bytes() for path in (tmp_path / "to").iterdir()] == written
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_baseline_guards_a_model(cli: Cli, of_knn: Path, tmp_path: Path) -> None:
    out, base = of_knn, tmp_path / "baseline"
    assert cli("export", "csv", "-o", out, "--to", base).code == 0
    check = ("leaderboard", "--check", "--baseline", base, "-o", out)
    said = cli(*check)
    assert (said.code, said.out[:8]) == (0, "None of ")
    path = out / "records" / "mini-fs" / "knn.imagenet.standard.parquet"
    frame = read_frame(path)
    frame["value"] = frame["value"] + 3
    write_checked(frame, path)
    said = cli(*check, "-b", "mini-fs", "--tolerance", "2.5")
    assert said.code == 1
    assert "mini-fs     knn top-1, imagenet (standard)  " in said.out
    assert "+3" in said.out
    assert cli(*check, "-b", "mini-fs", "--tolerance", "3.5").code == 0
    assert cli(*check, "-b", "mini-resnet").code == 0


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """An output of two backbones with records, items and arrays, as a run leaves it."""
    hits = {"mini-dino": 100.0 * (np.arange(80) % 2), "mini-clip": 100.0 * (np.arange(80) % 4 > 0)}
    for grid, (name, family) in enumerate((("mini-dino", "DINO"), ("mini-clip", "CLIP")), start=2):
        plant(tmp_path / "arrays", "localisation", {name: family}, depth=2, grid=grid)
        places = {(layer, "block", "cls"): measured(list(np.roll(hits[name], layer))) for layer in (1, 2)}
        score = float(hits[name].mean())
        ends = {"ci_low": score - 0.1, "ci_high": score + 0.1}
        scores = layers([score] * 2, backbone=name, family=family, data="d1", n=80, **ends)
        for rows, kind in ((scores, "items"), (planted("localisation", {name: family}, depth=2), "arrays")):
            key = task_key(rows[0].task, rows[0].dataset, rows[0].protocol)
            path = scored_path(key, name, ending={"items": "parquet", "arrays": "npz"}[kind])
            if kind == "items":
                write_items(places, tmp_path / kind / path)
            digest = {kind: file_digest(tmp_path / kind / path)}
            if kind == "items":
                examples = tmp_path / "examples" / path.with_suffix(".npz")
                examples.parent.mkdir(parents=True)
                examples.write_text(f"of {name}")
                digest["examples"] = file_digest(examples)
            write_checked(frame(rows), tmp_path / "records" / scored_path(key, name), digest)
    return tmp_path


def _exchange(*folders: Path) -> None:
    for folder in folders:
        (folder / "mini-dino").rename(folder / "between")
        (folder / "mini-clip").rename(folder / "mini-dino")
        (folder / "between").rename(folder / "mini-clip")


@pytest.mark.parametrize(
    "kinds", [("items", "arrays", "examples"), ("items", "arrays", "examples", "records")]
)
def test_items_and_arrays_of_others_are_not_used_and_said(
    cli: Cli, two: Path, kinds: tuple[str, ...]
) -> None:
    compared = cli("compare", "mini-dino", "mini-clip", "-o", two)
    assert compared.code == 0
    assert "-25.0" in compared.out
    _exchange(*(two / kind for kind in kinds))
    assert "the items of" in (said := cli("compare", "mini-dino", "mini-clip", "-o", two).error)
    assert "mini-dino/knn.mini-imagenet.standard.parquet are not those that were written" in said
    assert cli("leaderboard", "-o", two).code == 0
    page, inside = ((two / "tables" / name).read_text() for name in ("mini.md", "mini.inside.md"))
    kinds_said = ((page, "items", "knn"), (page, "examples", "knn"), (inside, "arrays", "localisation"))
    assert cli("report", "-o", two, "--to", two / "html").code == 0
    assert "are not those that were written" in (two / "html" / "mini.html").read_text()
    for text, kind, task in kinds_said:
        reason = f"its {kind} are not those that were written with its records and are not used; run again"
        for name in ("mini-dino", "mini-clip"):
            assert f"- {name}: {task} on mini-imagenet (standard): {reason}." in text
    assert "tokens.svg" not in inside
    assert cli("export", "latex", "-o", two, "--to", two / "paper").code == 0
    table = " ".join((two / "paper" / "mini.tex").read_text().split())
    assert "Which backbones may be the best is not marked: per-item scores of the same images" in table
    assert "not shown to be worse" not in table


def test_a_baseline_that_was_cut_ends_the_guard_with_1(cli: Cli, two: Path) -> None:
    guard = "leaderboard", "--check", "--baseline", two / "baseline", "-o", two
    assert cli("export", "csv", "-o", two, "--to", two / "baseline").code == 0
    said = cli(*guard)
    assert (said.code, "None of 4 numbers moved" in said.out) == (0, True)
    path, more = two / "baseline" / "mini.csv", two / "baseline" / "more.csv"
    rows = path.read_text().splitlines(keepends=True)
    shutil.copyfile(path, more)
    said = cli(*guard)
    assert (said.code, "more.csv is not listed in" in said.out) == (1, True)
    more.unlink()

    def fewer() -> bool:
        said = cli(*guard)
        return said.code == 1 and "fewer numbers than expected" in said.out

    for left in (rows[:-1], [*rows[:-1], rows[-1][:9]], rows[:1]):  # the last is the header
        path.write_text("".join(left))
        assert fewer()
    path.rename(more)
    assert fewer()
    more.rename(path)
    (two / "baseline" / "SHA256SUMS").unlink()
    assert fewer()
