"""Probes of the class token, of averages and of single tokens stand side by side, a row a layer."""

import math

from leaderboards.choices.gathering import PLACE, gathering
from tests.leaderboards.builder import frame, layers

FEW = {"task": "fewshot", "metric": "top1-10shot"}
TOKENS = {"task": "token-probes", "pooling": "token", "analysis": True}


def test_each_feature_has_a_column_and_each_layer_a_row() -> None:
    records = frame(
        layers([10.0, 20.0], **FEW),
        layers([11.0, 21.0], pooling="mean", **FEW),
        layers([12.0, 22.0], pooling="all", **FEW),
        layers([90.0, 90.0], task="fewshot", metric="top1-5shot"),
        layers([5.0, 6.0], metric="fewshot-10", **TOKENS),
        layers([3.0], metric="fewshot-10-first", **TOKENS),
    )
    table = gathering(records[records["depth"] > 0].assign(depth=2))
    assert [*table.columns] == [*PLACE, "cls", "mean", "all", "token", "first token"]
    assert table["layer"].tolist() == [1, 2]
    assert table.loc[0, ["cls", "mean", "all", "token", "first token"]].tolist() == [10, 11, 12, 5, 3]
    assert table.loc[1, "cls"] == 20
    assert math.isnan(table.loc[1, "first token"])


def test_without_probes_there_is_nothing() -> None:
    assert gathering(frame(layers([10.0]))).empty
