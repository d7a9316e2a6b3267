"""Number formats and resizings: runs in several, and what the page says."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file

import layerboard
from layerboard.benchmark.commands.recommend import RecommendRequest, code_of, recommended
from layerboard.benchmark.engines import choose
from layerboard.benchmark.engines.progress import Silent
from layerboard.leaderboards.blocks.blocks import Table
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.variants import variant_blocks
from layerboard.tasks.framework.protocols import PAPER, STANDARD
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.registry.find import find
from tests.benchmark.runs import Cli, run

FORMATS = ("float32", "bfloat16", "amp-bfloat16")


@pytest.fixture(scope="module")
def made(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    """A run of one backbone in all formats."""
    place = tmp_path_factory.mktemp("formats")
    return place, run(place, ["mini-fs"], "knn", data=data, dtype=FORMATS, layers="3,12,final")


def test_each_format_is_a_backbone_whose_records_name_it(made: tuple[Path, pd.DataFrame]) -> None:
    _, records = made
    formats = records.groupby("backbone")["dtype"].agg(set).to_dict()
    assert formats == {f"mini-fs{'' if name == 'float32' else f'@{name}'}": {name} for name in FORMATS}
    scored = records[records["task"] == "knn"]
    assert len({*scored.groupby("backbone").size()}) == 1


def test_drift_is_the_relative_difference_of_stored_vectors(made: tuple[Path, pd.DataFrame]) -> None:
    place, records = made
    drifts = records[records["task"] == "drift"]
    assert set(drifts["metric"]) == {"drift", "drift-max"}
    asked = drifts[(drifts["backbone"] == "mini-fs@bfloat16") & (drifts["other"] == "mini-fs")]
    asked = asked[(asked["layer"] == 3) & (asked["pooling"] == "cls")].set_index("metric")["value"]
    folders = sorted((place / "cache" / "features" / "mini-fs").glob("*.vectors.*"))
    shards = [load_file(path)["cls.3"] for folder in folders for path in folder.glob("*.safetensors")]
    found = []
    for base in shards:
        for other in shards:
            if base.shape == other.shape:
                apart = np.linalg.norm(base - other, axis=1) / np.linalg.norm(base, axis=1)
                found.append((float(np.median(apart)), float(apart.max())))
    assert any(np.allclose(pair, (asked["drift"], asked["drift-max"])) for pair in found)
    assert 1e-4 < asked["drift"] <= asked["drift-max"] < 0.02


def test_the_page_says_what_formats_do_to_scores_and_vectors(made: tuple[Path, pd.DataFrame]) -> None:
    place, records = made
    tables = [block.frame for block in _blocks(records, place) if isinstance(block, Table)]
    scores, *_, drifts = tables
    assert list(scores["variant"]) == ["mini-fs@amp-bfloat16", "mini-fs@bfloat16"]
    assert scores.iloc[:, 2].str.contains(" to |alike").all()
    assert [*drifts] == ["backbone", "vectors", "beyond 1 %", "3", "12", "final"]
    assert [*drifts["vectors"]] == ["cls", "mean"] * 2
    asked = records.query("task == 'drift' and layer == 3 and other == 'mini-fs'")
    values = asked.set_index(["backbone", "pooling", "metric"])["value"]
    for name, pooling, text in drifts[["backbone", "vectors", "3"]].itertuples(index=False):
        median, largest = (100 * values[name, pooling, metric] for metric in ("drift", "drift-max"))
        assert text == f"{median:.2f} ({largest:.2f})"
    assert _blocks(records[records["backbone"] == "mini-fs"], place) == []
    shallow = (
        (records["backbone"] == drifts["backbone"][0]) & (records["tap"] == "block") & (records["layer"] > 3)
    )
    *_, drifts = [block.frame for block in _blocks(records[~shallow], place) if isinstance(block, Table)]
    assert [*drifts][-2:] == ["12", "final"]


@pytest.mark.usefixtures("no_pages")
def test_the_drift_that_formats_bring_along_is_not_missed_in_compressed_vectors(
    made: tuple[Path, pd.DataFrame], data: Path, cli: Cli
) -> None:
    words = "run -b mini-fs -t knn --dtype float32,bfloat16 --layers 3 --compress binary --workers 1"
    ran = cli(*words.split(), "--data", data, "-o", made[0] / "out", "--cache", made[0] / "cache")
    assert ran.code == 0
    missing = [line for line in (ran.out + ran.err).splitlines() if "left out" in line]
    assert all("on further data: expected " in line for line in missing)


def test_files_of_two_formats_need_no_drift(data: Path, tmp_path: Path, cli: Cli) -> None:
    """Formats bring drift along, which has no files of vectors of its own; named, it is refused."""
    asked = ["features", "-b", "mini-fs", "mini-fs@bfloat16", "--layers", "3", "--workers", "1", "-t"]
    places = ("--data", data, "-o", tmp_path / "out", "--cache", tmp_path / "cache")
    ran = cli(*asked, "knn", *places)
    assert (ran.code, "error" in ran.err) == (0, False)
    files = (tmp_path / "out" / "features").rglob("*.npz")
    written = {path.relative_to(tmp_path / "out" / "features").parts[0] for path in files}
    assert written == {"mini-fs", "mini-fs@bfloat16"}
    assert "drift has no files of vectors of its own" in cli(*asked, "knn", "drift", *places).err


def _blocks(records: pd.DataFrame, place: Path) -> list[object]:
    return [*variant_blocks(Board.of(records, items=place / "out" / "items"))]


@pytest.mark.slow
def test_a_backbone_on_images_that_torch_resizes_is_one_of_its_own(
    data: Path, tmp_path: Path, cli: Cli
) -> None:
    options = {"data": data, "layers": "3,final", "input_size": 96}
    records = run(tmp_path, ["mini-fs", "mini-fs@fast-resize"], "knn", "spair", **options)
    scored = records[records["task"] != "drift"].groupby(["backbone", "task"]).size()
    assert scored["mini-fs@96px"].equals(scored["mini-fs@96px@fast-resize"])
    drifts = records[(records["task"] == "drift") & (records["metric"] == "drift")]
    assert {*zip(drifts["backbone"], drifts["other"], strict=True)} == {
        ("mini-fs@96px@fast-resize", "mini-fs@96px")
    }
    assert 0 < drifts["value"].max() < 0.05
    scores, *_ = [block.frame for block in _blocks(records, tmp_path) if isinstance(block, Table)]
    assert {*scores["variant"]} == {"mini-fs@96px@fast-resize"}

    place = tmp_path / "out"
    said = cli("compare", "mini-fs@96px", "mini-fs@96px@fast-resize", "-o", place)
    assert (said.code, "mini-fs@96px@fast-resize" in said.out) == (0, True)
    alone, cache = tmp_path / "alone", tmp_path / "cache"
    run(alone, ["mini-fs@fast-resize"], "knn", data=data, cache=cache)
    (pick,) = recommended(RecommendRequest(tasks="knn", output=alone / "out")).choices
    assert 'layerboard.load("mini-fs@fast-resize", ' in code_of(pick)


def test_load_resizes_as_the_name_says(data: Path, tmp_path: Path) -> None:
    images = sorted((data / "imagenet").rglob("*.JPEG"))[:4]
    plain, fast = (layerboard.load(f"mini-fs{end}", layer=3, cache=tmp_path) for end in ("", "@fast-resize"))
    assert 0 < float((plain(images) - fast(images)).norm() / plain(images).norm()) < 0.05


def test_a_layer_that_overflowed_is_beyond_any_drift(made: tuple[Path, pd.DataFrame]) -> None:
    place, records = made
    lost = (records["task"] == "drift") & (records["backbone"] == "mini-fs@bfloat16")
    lost &= (records["layer"] == 12) & (records["tap"] == "block")
    records = records.assign(value=records["value"].mask(lost))
    *_, drifts = [block.frame for block in _blocks(records, place) if isinstance(block, Table)]
    rows = drifts[drifts["backbone"] == "mini-fs@bfloat16"]
    assert rows[["vectors", "beyond 1 %", "12"]].values.tolist() == [
        [pooling, "12", "not finite"] for pooling in ("cls", "mean")
    ]


def test_mixed_formats_shorten_products_of_the_network_alone(tmp_path: Path) -> None:
    spec = replace(find(["mini-fs"])[0], dtype="amp-bfloat16")
    mixed = load_backbone(spec, device=torch.device("cpu"), cache_dir=tmp_path)
    assert isinstance(mixed, HookedBackbone)
    seen = []
    mixed.visit(
        torch.zeros(1, 3, 64, 64, dtype=torch.uint8),
        lambda shown: seen.append((torch.eye(2) @ torch.eye(2)).dtype),
    )
    assert {*seen} == {torch.float32} == {mixed.dtype}


@pytest.mark.parametrize(
    ("device", "protocols", "expected"),
    [
        ("cpu", [STANDARD], "float32"),
        ("cuda", [STANDARD], "amp-bfloat16"),
        ("cuda", [STANDARD, PAPER], "float32"),
    ],
)
def test_auto_asks_the_device_and_the_protocol(
    device: str, protocols: list[object], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    found = choose.find_dtypes(("auto",), protocols, SimpleNamespace(type=device), Silent())  # type: ignore[arg-type]
    assert found == (expected,)
