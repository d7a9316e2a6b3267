"""Runs with transforms of the features: beside the plain records, of the same forwards, never among them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import layerboard
from layerboard.leaderboards.blocks.blocks import Table
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.variants import variant_blocks
from layerboard.zoo.errors import InputError
from tests.benchmark.conftest import Whole
from tests.benchmark.runs import Cli, Tally, files, run, run_from_store
from tests.fakes import write_fake_class_folders

NUMBERS = ["value", "ci_low", "ci_high", "chosen", "held_out", "maybe_best", "n", "reason", "data"]
PLACE = ["task", "dataset", "layer", "tap", "pooling", "metric"]
NAMES = ("spair", "knn")
COMPRESSED = ("pca:96", "first:32+int8", "binary", "pq:96", "rp:97")


class Transformed:
    """One run with transforms, and what it showed."""

    def __init__(self, place: Path, records: pd.DataFrame, tally: Tally) -> None:
        self.place, self.records, self.tally = place, records, tally

    def of(self, transform: str) -> pd.DataFrame:
        own = self.records[self.records["transform"] == transform]
        return own.sort_values(PLACE).reset_index(drop=True)


@pytest.fixture(scope="module")
def made(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Transformed:
    place = tmp_path_factory.mktemp("transformed")
    with Tally().watching() as tally:
        ways = {"transform": ["whiten", "zscore"], "compress": [*COMPRESSED]}
        records = run(place, ["mini-fs"], *NAMES, data=data, pages=True, **ways)
    return Transformed(place, records, tally)


@pytest.mark.slow
def test_every_task_takes_what_makes_sense(made: Transformed) -> None:
    found = made.records.groupby("transform")["task"].agg(set).to_dict()
    assert found == {"": {*NAMES}, **{name: {"knn"} for name in ("whiten", "zscore", *COMPRESSED)}}
    assert made.records.loc[~made.records["transform"].isin(COMPRESSED), "value"].notna().all()


def test_transforms_show_no_image_again(made: Transformed, whole: Whole) -> None:
    """Vectors are transformed as they are stored."""
    plain = whole.records.query("task in @NAMES and backbone == 'mini-fs'")
    assert len(made.tally.rows) == 3  # sources of images to learn from and to ask, and pairs
    assert made.tally.rows.items() <= whole.tally.rows.items()
    columns = [*PLACE, *NUMBERS]
    pd.testing.assert_frame_equal(
        made.of("")[columns], plain.sort_values(PLACE).reset_index(drop=True)[columns], check_exact=True
    )


def test_a_second_run_computes_nothing(made: Transformed, data: Path) -> None:
    before = files(made.place / "cache", made.place / "out" / "records")
    run_from_store(made.place, ["mini-fs"], *NAMES, data=data, transform=("whiten", "zscore"))
    assert files(made.place / "cache", made.place / "out" / "records") == before


def test_compressed_vectors_are_scored_with_their_bytes(made: Transformed) -> None:
    reasons = {
        "pca:96": "pca:96 is fitted on more than 96 images; 12 could be read",
        "pq:96": "pq:96 is fitted on at least 256 images; 12 could be read",
        "rp:97": "rp:97 leaves 97 numbers of a vector, which has 96",
    }
    for name, reason in reasons.items():
        assert set(made.of(name)["reason"]) == {reason}
    for name, size in {"first:32+int8": 32, "binary": 12}.items():
        records = made.of(name)
        values = records.groupby("metric")["value"].agg(set)
        assert (values["bytes"], values["bytes float32"]) == ({size}, {384})
        plain = made.of("")[made.of("")["task"] == "knn"]
        scores = records[~records["metric"].str.startswith("bytes")]
        assert len(scores) == len(plain)
        assert set(scores["data"]) == set(plain["data"])


def test_the_price_of_a_vector_has_a_part(made: Transformed) -> None:
    page = (made.place / "out/tables/standard.md").read_text()
    before, _, after = page.partition("### What a vector costs")
    assert "with rp:97, " in before
    lines = after.partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| mini")]
    assert rows == [["mini-fs", "binary", "12 (32.0)"], ["mini-fs", "first:32+int8", "32 (12.0)"]]
    assert "**Scores against the bytes of a vector**" in after
    assert "binary" not in (made.place / "out/tables/standard.csv").read_text()


def test_sizes_are_of_the_vectors_whose_scores_are_compared(tmp_path: Path) -> None:
    write_fake_class_folders(tmp_path / "photos")
    options = {"images": tmp_path / "photos", "layers": "3,12", "compress": "first:128,int8"}
    records = run(tmp_path, ["mini-resnet"], "knn", **options)
    best = (records["transform"] == "") & (records["layer"] == 3) & (records["metric"] == "top-1")
    records.loc[best, "value"] = 101.0  # the layer of 64 channels, which is too narrow for first:128
    *_, table = [each for each in variant_blocks(Board.of(records)) if isinstance(each, Table)]
    sizes = table.frame.set_index("variant")["knn top-1"]
    assert sizes["first:128"] == "512 (0.5)"


def test_small_vectors_are_recommended(cli: Cli, made: Transformed) -> None:
    found = layerboard.recommend("knn", output=made.place / "out", within={"bytes": 100, "loss": 50})
    row = found.frame.iloc[0]
    assert row["compression"] in ("first:32+int8", "binary")
    assert row["bytes"] == {"first:32+int8": 32, "binary": 12}[row["compression"]]
    assert f"scores best by {row['compression']}" in found.notes[0]
    assert f'compress = layerboard.compression("{row["compression"]}", encode(known))' in found.code[0]
    whole = layerboard.recommend("knn", output=made.place / "out").frame
    assert (set(whole["compression"]), set(whole["bytes"])) == ({""}, {384.0})
    failed = cli("recommend", "-o", made.place / "out", "-t", "spair", "--within", "bytes=100")
    assert "nothing is within the limits for spair PCK@0.1" in failed.error


def test_a_compression_takes_vectors_as_backbones_give_them() -> None:
    known = torch.randn(300, 8, generator=torch.manual_seed(0))
    compress = layerboard.compression("pca:4+int8", known)
    np.testing.assert_array_equal(compress(known[:3]), compress(known.numpy()[:3]))
    for wrong in (known[0], known[:, :5], known[:, :1]):
        with pytest.raises(layerboard.InputError, match=r"expected vectors \[m 8\], found an array of"):
            layerboard.compression("binary", known)(wrong)
    with pytest.raises(layerboard.InputError, match="takes a word"):
        layerboard.compression(3, known)
    with pytest.raises(layerboard.InputError, match=r"finite numbers, found an array of \(5, 0\)"):
        layerboard.compression("int8", np.zeros((5, 0)))
    spoilt = known.clone()
    spoilt[3, 0] = torch.inf
    with pytest.raises(layerboard.InputError, match="found NaN or infinity in 1 of 300; leave these out"):
        layerboard.compression("int8", spoilt)


def test_indexes_of_vectors_are_measured(cli: Cli, made: Transformed, data: Path, tmp_path: Path) -> None:
    place: dict[str, Any] = {"cache": made.place / "cache", "output": made.place / "indexes", "index": True}
    found = layerboard.cost("mini-fs", data=data, vectors=40, **place).frame
    sizes = [(name, size) for size in (12, 40) for name in ("flat", "HNSW", "IVF")]
    assert list(zip(found["index"], found["vectors"], strict=True)) == sizes
    assert {*found["layer"]} == {"12.cls"}
    assert found["recall@10"][0] == 100
    assert found["bytes"][0] > 384
    (path,) = (place["output"] / "features" / "mini-fs").glob("knn.*/12.cls.npz")
    alone = cli("score", "index", "--features", path, "--config", "vectors=40", "--json")
    assert alone.code == 0, alone.err
    scores = json.loads(alone.out)["scores"][str(path)]
    assert [*scores] == [f"{name}, {size}" for name, size in sizes]
    assert [each["recall@10"] for each in scores.values()] == found["recall@10"].tolist()
    shown = cli("score", "index", "--features", path, path.with_name("12.mean.npz"), "--config", "vectors=20")
    assert (shown.code, shown.out.count("HNSW")) == (0, 4)
    write_fake_class_folders(tmp_path / "photos")
    every = layerboard.cost("mini-fs", images=tmp_path / "photos", vectors=9, **place).frame
    assert {*every["vectors"]} == {9}  # of 12 images 3 ask
    assert len(layerboard.cost("mini-fs", "cka", data=data, vectors=1, **place).frame)  # a file of one array
    with pytest.raises(InputError, match="has no files of vectors"):
        layerboard.cost("mini-fs", "spair", data=data, **place)
    np.savez(tmp_path / "other.npz", labels=np.arange(3))
    said = cli("score", "index", "--features", tmp_path / "other.npz")
    assert (said.code, "expected one of the arrays train, database, features" in said.error) == (2, True)
