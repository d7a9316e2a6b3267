"""Runs on a pack give what runs on the official folders give."""

from pathlib import Path

import pandas as pd
import pytest

from layerboard.benchmark.engines.log import LOG
from layerboard.benchmark.forms.campaign import RUN_FILE
from layerboard.benchmark.plan.location import DataLocation
from layerboard.benchmark.plan.suites import REAL
from tests.benchmark.runs import comparable, run
from tests.tasks.datasets.conftest import pack

TASKS = ("knn", "davis", "spair", "segment")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def packed_data(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All datasets of the tests' data folder as a pack."""
    names = ("imagenet", "roxford5k", "rparis6k", "davis-2017-val", "spair-71k-test", "voc-2012-val")
    return pack(data, tmp_path_factory.mktemp("pack"), *names, "coco-val2017", "partimagenet")


@pytest.mark.slow
def test_records_items_and_examples_are_equal_from_folder_and_from_pack(
    data: Path, packed_data: Path, tmp_path: Path
) -> None:
    places = tmp_path / "folder", tmp_path / "pack"
    options = {"layers": "1", "limit": 2, "workers": 2}
    found = [
        run(place, ["mini-fs"], *TASKS, data=given, **options)
        for place, given in zip(places, (data, f"hf:{packed_data}"), strict=True)
    ]
    # Only fingerprints differ: of files they name the times, of packs the digests.
    expected, records = (comparable(frame).drop(columns="fingerprint") for frame in found)
    assert {*records["task"]} == {*TASKS}
    pd.testing.assert_frame_equal(records, expected, check_exact=True)
    others = [path.relative_to(places[0]) for path in (places[0] / "out").rglob("*") if path.is_file()]
    own = (LOG, RUN_FILE)
    others = [path for path in others if "records" not in path.parts and path.name not in own]
    assert {path.parts[1] for path in others} == {"items", "examples", "thumbnails"}
    for path in others:
        assert (places[1] / path).read_bytes() == (places[0] / path).read_bytes(), path


def test_a_location_of_a_pack_is_its_root_by_an_absolute_path(
    packed_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from layerboard.benchmark.plan.location import data_folder

    monkeypatch.chdir(packed_data.parent)
    at = DataLocation(REAL, data_folder(Path(f"hf:{packed_data.name}")))
    assert str(at.data) == f"hf:{packed_data}!"
    assert data_folder(Path(f"hf:./{packed_data.name}/")) == at.data
