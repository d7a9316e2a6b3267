"""What trainings have seen of the datasets of tasks."""

from pathlib import Path

import pytest

from layerboard.tasks.datasets.catalogue import DATASETS
from layerboard.zoo.registry.find import all_specs, find
from layerboard.zoo.spec.seen import LVD_142M, UNKNOWN, Seen, Training
from tests.shared import table_rows

MARKS = table_rows(Path(__file__).with_name("marks.csv"))


@pytest.mark.parametrize(("name", "dataset", "mark"), MARKS)
def test_marks(name: str, dataset: str, mark: str) -> None:
    (spec,) = find([name])
    assert spec.seen is not None
    assert spec.seen.mark(dataset) == mark


def test_marks_of_dinov2_are_those_of_its_table() -> None:
    """Table 15 of arXiv:2304.07193: what of the datasets of tasks is there, and how it was taken."""
    table = {
        "imagenet": "as is",  # ImageNet-22k
        "ade20k-val": "cluster",
        "voc-2012-val": "cluster",
        "voc-2012-aug-val": "cluster",
        "roxford5k": "cluster",
        "rparis6k": "cluster",
        "cub": "cluster",
    }
    as_marks = {"as is": "images", "cluster": "similar images"}
    marks = {entry.name: LVD_142M.mark(entry.name) for entry in DATASETS}
    of_others = {"partimagenet": "images", "spair-71k-test": "similar images"}  # ImageNet's and VOC's images
    assert (
        marks
        == dict.fromkeys(marks, UNKNOWN) | {name: as_marks[how] for name, how in table.items()} | of_others
    )


def test_every_entry_says_what_it_has_seen() -> None:
    names = {entry.name for entry in DATASETS}
    for spec in all_specs():
        seen = spec.seen
        assert seen is not None, spec.name
        assert {one.dataset for one in seen.seen} <= names, spec.name
        assert len({one.dataset for one in seen.seen}) == len(seen.seen), spec.name
        assert all(one.source and one.kinds for one in seen.seen), spec.name
        learned_from_labels = "labels of ImageNet" in spec.supervision
        assert ("labels" in seen.mark("imagenet")) == learned_from_labels, spec.name
        if "ImageNet" in spec.data:
            assert seen.mark("imagenet").startswith("images"), spec.name
        if ("pairs" in spec.supervision and spec.family != "CLIP") or spec.family in ("SigLIP", "AIMv2"):
            assert seen.texts or "mini" in spec.name, spec.name


def test_summaries() -> None:
    assert Training().summary() == "no dataset of the tasks"
    assert Training(listed=False, texts=True).summary() == (
        "which datasets of the tasks is unknown; images came with texts"
    )
    found = Training(
        (Seen("imagenet", ("images", "labels"), "A"), Seen("ade20k-val", ("similar images",), "B"))
    )
    assert found.summary() == (
        "imagenet (images, labels); ade20k-val (similar images); no other dataset of the tasks"
    )
    assert found.sources == ("A", "B")
