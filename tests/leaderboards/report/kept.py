"""An output folder with records and examples of planted predictions."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from layerboard.leaderboards.records.arrays import write_arrays
from layerboard.leaderboards.records.checksum import file_digest, write_checked
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.record import read_records
from layerboard.leaderboards.records.thumbnails import FOLDER, write_thumbnail
from layerboard.tasks.framework.examples import VERSION
from tests.leaderboards.builder import frame, layers

LAYERS = 3
"""Layers of every backbone, all of which are drawn."""

CLASSES = {
    "classes": ["cat", "n1", "none"],
    "class_folder": ["n1"],
    "class_name": ["dog"],
    "class_images": [[4, 5, 0]] * 3,
    "mistaken": [[[1, 0, 3], [0, 1, 1], [0, 0, 0]]] * 3,
}
"""Two classes with images and one without, and what they are taken for."""


def keep(output: Path, records: list[Any], arrays: dict[str, Any], pictures: list[str]) -> None:
    """Write records of one backbone and task, and its examples with a picture of a colour for each name."""
    rows = frame(records)
    one = rows.iloc[0]
    key = task_key(one["task"], one["dataset"], one["protocol"])
    path = output / "examples" / scored_path(key, one["backbone"], ending="npz")
    colours = np.random.default_rng(len(pictures)).integers(0, 256, (len(pictures), 3)).tolist()
    made = [write_thumbnail(Image.new("RGB", (40, 30), tuple(c)), output / FOLDER) for c in colours]
    places = {"version": VERSION, "layer": np.arange(1, LAYERS + 1), "drawn": np.ones(LAYERS, bool)}
    places |= {"tap": ["block"] * LAYERS, "pooling": [one["pooling"]] * LAYERS}
    named = {"picture": np.array(pictures), "thumbnail": np.array(made)}
    write_arrays({name: np.asarray(values) for name, values in (places | named | arrays).items()}, path)
    write_checked(
        rows, output / "records" / scored_path(key, one["backbone"]), {"examples": file_digest(path)}
    )


def keep_knn(
    output: Path,
    backbone: str,
    values: list[float],
    right: list[list[bool]],
    more: dict[str, Any] | None = None,
    **names: str,
) -> None:
    """k-NN: for each layer which queries are right; each has one neighbour, of the class it is taken for.

    Args:
        output: Folder.
        backbone: Name.
        values: Score of each layer.
        right: [layers queries].
        more: Further arrays.
        names: ``query`` and ``wrong``: name of the queries' images, and of the class of what is wrong.
    """
    count = len(right[0])
    query, wrong = names.get("query", "val/dog/{}.png"), names.get("wrong", "cat")
    queries = [query.format(number) for number in range(count)]
    given = np.where(np.array(right), "dog", wrong)
    near = np.char.add(np.char.add("train/", given), "/near.png")
    arrays = {
        "query": queries,
        "class": ["dog"] * count,
        "predicted": given,
        "right": right,
        "neighbour": near[..., None],
        "neighbour_class": given[..., None],
        "cosine": np.full((*given.shape, 1), 0.5),
    }
    pictures = [*queries, *dict.fromkeys(near.ravel().tolist())]
    keep(output, layers(values, backbone=backbone), arrays | (more or {}), pictures)


def read(output: Path) -> pd.DataFrame:
    """The records of the folder."""
    return read_records([output / "records"])
