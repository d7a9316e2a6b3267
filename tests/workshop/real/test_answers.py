"""The answers of trained networks on each photograph, which are committed beside their board."""

from pathlib import Path

import pandas as pd
import pytest

from layerboard.leaderboards.records.items import read_items

BOARD = Path(__file__).parents[3] / "leaderboards" / "real"
PLACE = ["layer", "tap", "pooling"]


def test_the_answers_on_each_photograph_give_every_number_of_the_board() -> None:
    board = pd.read_csv(BOARD / "images-tiny-imagenet-50-fb244128.csv", low_memory=False)
    board = board[board["task"] == "knn"].set_index("backbone")
    paths = BOARD.glob("knn/records/*/*.parquet")
    folders = {str(pd.read_parquet(path)["backbone"][0]): path for path in paths}
    assert {*folders} == {*board.index}
    for name, records in folders.items():
        rows = board.loc[name].set_index(["metric", *PLACE])["value"]
        answers, values = read_items(BOARD / "knn/items" / Path(*records.parts[-2:])), {}
        for (layer, tap, pooling), items in answers.items():
            values |= {
                (metric, layer, tap, pooling): items.values[statistic.column].mean()
                for metric, statistic in items.statistics.items()
                if metric.startswith("top")
            }
        assert rows.to_dict().keys() >= values.keys(), name
        assert values == pytest.approx({place: rows[place] for place in values}, abs=1e-4), name
