from pathlib import Path

import numpy as np

from layerboard.tasks.datasets.revisitop import RevisitedEntry
from tests.fakes import write_fake_revisited
from tests.tasks.datasets.helpers import keys

MINI = RevisitedEntry("mini-oxford", "roxford5k", database=8, queries=2)


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
