import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layerboard.tasks.datasets.revisitop import ROXFORD5K, RevisitedEntry
from layerboard.zoo.errors import InputError
from tests.fakes import write_fake_revisited
from tests.tasks.datasets.helpers import copy_shuffled, keys

MINI = RevisitedEntry("mini-oxford", "roxford5k", database=8, queries=2)


def change(folder: Path, **fields: Any) -> None:
    """Replace fields of the ground truth."""
    path = folder / "gnd_roxford5k.pkl"
    path.write_bytes(pickle.dumps({**pickle.loads(path.read_bytes()), **fields}))


def truth(**fields: Any) -> dict[str, Any]:
    return {"bbx": [0, 0, 9, 9], "easy": [0], "hard": [1], "junk": [], **fields}


def test_layout(tmp_path: Path) -> None:
    write_fake_revisited(tmp_path)
    dataset = MINI.read(tmp_path)
    assert len(dataset.database) == 8
    assert keys(dataset.queries) == ["query/query_0_000000", "query/query_1_000000"]
    assert dataset.queries[0].box == (4.0, 3.0, 44.0, 33.0)
    assert [found.tolist() for found in dataset.easy] == [[0, 1], [4, 5]]
    assert [found.tolist() for found in dataset.hard] == [[2], [6]]
    assert [found.tolist() for found in dataset.junk] == [[3], [7]]
    assert all(found.dtype == np.int64 for found in (*dataset.easy, *dataset.junk))
    assert not dataset.coverage.partial
    assert dataset.database[0].open().size == (48, 36)


def test_order_is_that_of_the_ground_truth(tmp_path: Path) -> None:
    write_fake_revisited(tmp_path / "a")
    copy_shuffled(tmp_path / "a", tmp_path / "b")
    first, second = (MINI.read(tmp_path / name) for name in "ab")
    assert keys(first.database) == keys(second.database)


def test_missing_images_leave_and_indices_follow(tmp_path: Path) -> None:
    jpg = write_fake_revisited(tmp_path) / "jpg"
    (jpg / "landmark_0_000001.jpg").unlink()
    (jpg / "landmark_1_000003.jpg").unlink()
    (jpg / "query_0_000000.jpg").unlink()
    dataset = MINI.read(tmp_path)
    assert str(dataset.coverage) == "6 of 8 database images, 1 of 2 queries"
    assert dataset.coverage.partial
    assert len(dataset.queries) == 1
    assert [keys(dataset.database)[index] for index in dataset.easy[0]] == [
        "landmark_1_000000",
        "landmark_1_000001",
    ]
    assert dataset.hard[0].tolist() == [5]
    assert dataset.junk[0].tolist() == []


def test_missing_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected roxford5k \(roxford5k/gnd_roxford5k.pkl"):
        ROXFORD5K.read(tmp_path)
    folder = write_fake_revisited(tmp_path)
    shutil.rmtree(folder / "jpg")
    with pytest.raises(InputError, match=r"the images of mini-oxford at .*jpg, which does not exist"):
        MINI.read(tmp_path)
    (folder / "jpg").mkdir()
    with pytest.raises(InputError, match=r"found 0 of 8 and 0 of 2; unpack the images there"):
        MINI.read(tmp_path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"gnd": [truth()]}, "one entry of gnd for each of the 2 queries"),
        ({"gnd": [truth(easy=[8]), truth()]}, r"indices below 8 \(the database\) as easy of query .*found 8"),
        ({"gnd": [truth(junk=[-1]), truth()]}, "indices below 8"),
        ({"gnd": [truth(hard=[0.5]), truth()]}, "integer indices as hard"),
        ({"gnd": [truth(bbx=[1, 2, 3]), truth()]}, "four numbers as bbx"),
        ({"gnd": [truth(bbx=[9, 2, 3, 4]), truth()]}, "x1 < x2"),
        (
            {"gnd": [{"bbx": [0, 0, 9, 9], "ok": [], "junk": []}, truth()]},
            "bbx, easy, hard and junk in query",
        ),
        ({"imlist": []}, "list of image names as imlist"),
        ({"imlist": ["a", "a"]}, "1 repeated"),
        ({"qimlist": ["../../etc/passwd", "b"]}, "below the dataset's folder"),
    ],
)
def test_broken_ground_truth(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    change(write_fake_revisited(tmp_path), **fields)
    with pytest.raises(InputError, match=message):
        MINI.read(tmp_path)


def test_other_object_in_the_pickle(tmp_path: Path) -> None:
    folder = write_fake_revisited(tmp_path)
    (folder / "gnd_roxford5k.pkl").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(InputError, match="expected a dictionary with imlist, qimlist and gnd"):
        MINI.read(tmp_path)
