"""The protocols: their numbers, and the data that they look at."""

from pathlib import Path

import pytest

from layerboard.benchmark.plan.datasets import bind_tasks
from layerboard.benchmark.plan.location import DataLocation
from layerboard.tasks.analyses.attention_maps import AttentionMapsTask, MapConfig
from layerboard.tasks.analyses.cost import CostConfig
from layerboard.tasks.analyses.inspect import InspectConfig
from layerboard.tasks.analyses.label_free import LabelFreeConfig
from layerboard.tasks.analyses.localisation import LocalisationConfig
from layerboard.tasks.analyses.locality import LocalityConfig
from layerboard.tasks.analyses.position import PositionConfig
from layerboard.tasks.analyses.receptive_field import ReceptiveFieldConfig
from layerboard.tasks.analyses.saliency import SaliencyConfig, SaliencyTask, Threshold
from layerboard.tasks.anomaly.references import Draws
from layerboard.tasks.anomaly.task import AnomalyConfig
from layerboard.tasks.classification.few_shot import FewShotRule
from layerboard.tasks.classification.knn import KnnConfig
from layerboard.tasks.classification.softmax import SoftmaxRule
from layerboard.tasks.clustering.task import REGIONS, ClusterConfig, RegionClusterTask, RegionsConfig
from layerboard.tasks.datasets.base import Data, DatasetEntry
from layerboard.tasks.datasets.classes import ProbeSubset
from layerboard.tasks.datasets.coco import CocoEntry
from layerboard.tasks.datasets.davis import DavisEntry
from layerboard.tasks.datasets.imagenet import ImageNetEntry
from layerboard.tasks.datasets.partimagenet import PartImageNetEntry
from layerboard.tasks.datasets.revisitop import RevisitedEntry
from layerboard.tasks.datasets.scenes import VOC_2012, VOC_2012_AUG
from layerboard.tasks.datasets.spair import SpairEntry
from layerboard.tasks.framework.protocols import PAPER, PROTOCOLS, STANDARD, EvaluationProtocol, find_protocol
from layerboard.tasks.framework.registry import config_of, find_tasks, load_code
from layerboard.tasks.framework.sources import IMAGES, Batches, ImagesConfig
from layerboard.tasks.framework.task import Task
from layerboard.tasks.keypoints.config import KeypointConfig, PairDraw
from layerboard.tasks.propagation.config import PropagationConfig
from layerboard.tasks.retrieval.instances import InstancesConfig
from layerboard.tasks.retrieval.landmarks import RetrievalConfig
from layerboard.tasks.segmentation.in_context import Vote
from layerboard.tasks.segmentation.task import SegmentationConfig
from layerboard.tasks.similarity.cka import CkaConfig
from layerboard.tasks.targets.task import TargetConfig
from layerboard.zoo.errors import InputError
from layerboard.zoo.view.views import (
    FitLongSide,
    Letterbox,
    ResizeCrop,
    Stretch,
    ThumbnailCrop,
    Tiles,
    WholeFrame,
)
from tests import fakes

PENALTIES = tuple(4.0**power for power in range(-3, 11))
TENS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)

NUMBERS: dict[str, tuple[object, object]] = {  # by the standard, by the published code
    "knn": (KnnConfig(20, (10, 100, 200), 0.07), KnnConfig(20, (10, 100, 200), 0.07)),
    "retrieval": (RetrievalConfig(FitLongSide(224), True), RetrievalConfig(ThumbnailCrop(224, 224), False)),
    "davis": (
        PropagationConfig(7, 5, 12, False, 0.1, True, False, "patches", WholeFrame(480), None, ()),
        PropagationConfig(7, 5, 12, False, 0.1, False, False, "patches", Tiles(448, 224), 3, ()),
    ),
    "spair": (
        KeypointConfig(
            Letterbox(224, False),
            *("exact", "bilinear", "both", "pixels", None, "centre"),
            *((0.1, 0.05, 0.01), False, None, "category"),
        ),
        KeypointConfig(
            Letterbox(224, True),
            *("view pixel", "bilinear", "tokens", "all pixels", None, "corner"),
            *((0.1, 0.05, 0.01), False, PairDraw(20, 42), "category"),
        ),
    ),
    "fewshot": (
        FewShotRule((10, 1, 5, 25), (0, 1, 2), PENALTIES, 5, 1024.0),
        FewShotRule((10, 1, 5, 25), (0, 1, 2), (), 5, 1024.0),
    ),
    "linear": (SoftmaxRule(20, 1024, 0.9, RATES, 100, 4, 0, PENALTIES),) * 2,
    "cluster-image": (ClusterConfig(10, 0, Tiles(448, 224)), ClusterConfig(10, 0, Tiles(448, 224))),
    "cka": (CkaConfig(("cls", "mean", "patch"), False), CkaConfig(("cls", "patch", "all"), True)),
    "regress": (TargetConfig(ResizeCrop(256, 224), (1e-4, *TENS, 1e4), 20),) * 2,
    "anomaly": (AnomalyConfig(Stretch(448), 1, Draws((1, 4), 3), (0.3, 0.05), 0),) * 2,
    "instances": (InstancesConfig(ResizeCrop(256, 224), (1, 5, 10), (0.01, 0.001), (0.99, 0.9)),) * 2,
    "segment": (SegmentationConfig(Stretch(448), Vote(30, 1, 0.02), 0.5, 0),) * 2,
    "attention-maps": (MapConfig(False, 6), MapConfig(True, 6)),
    "saliency": (
        SaliencyConfig(ResizeCrop(256, 224), Threshold(0.6, 1e-6, True), False, 100, 0, 0.9, 500),
        SaliencyConfig(ResizeCrop(224, 224), Threshold(0.6, 0.0, False), True, 100, 0, 0.9, 500),
    ),
    "localisation": (LocalisationConfig(256, 256), LocalisationConfig(256, 256)),
    "receptive-field": (ReceptiveFieldConfig(32, 32, 0), ReceptiveFieldConfig(32, 32, 0)),
    "inspect": (InspectConfig(28), InspectConfig(28)),
    "residual-cka": (CkaConfig(("cls", "patch", "all"), False), CkaConfig(("cls", "patch", "all"), True)),
    "locality": (LocalityConfig(1, 5), LocalityConfig(1, 5)),
    "label-free": (LabelFreeConfig(10), LabelFreeConfig(10)),
    "position-audit": (PositionConfig(64, TENS), PositionConfig(64, TENS)),
    "cost": (CostConfig(1, 3, 0.3, 25, 1.03, 40, 20.0, 2), CostConfig(1, 3, 0.3, 25, 1.03, 40, 20.0, 2)),
}

DATA: dict[str, tuple[object, object]] = {
    "images": (
        ImagesConfig(ResizeCrop(256, 224), Batches(256, 0), 100, 5000),
        ImagesConfig(ResizeCrop(224, 224), Batches(8, None), 100, 5000),
    ),
    "regions": (RegionsConfig(0, False, False), RegionsConfig(1, True, True)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_the_protocols(name: str) -> None:
    assert (config_of(STANDARD, name), config_of(PAPER, name)) == NUMBERS[name]


def test_how_the_protocols_look_at_images_and_regions() -> None:
    assert (STANDARD.config_for(IMAGES), PAPER.config_for(IMAGES)) == DATA["images"]
    assert (STANDARD.config_for(REGIONS), PAPER.config_for(REGIONS)) == DATA["regions"]


def test_protocols_of_different_training_masks_show_no_image_alike() -> None:
    """Else one pass over the validation images should serve both datasets."""
    asked = [one for one in PROTOCOLS if one.covers("segment")]
    (segment,) = find_tasks(("segment",))

    def code(protocol: EvaluationProtocol) -> type[Task]:
        return load_code(segment, protocol.name)

    for patch in (14, 16):
        sizes = {
            further: {
                config_of(one, "segment").view.scaled(224, patch).geometry((500, 375)).size
                for one in asked
                if (code(one).reading(VOC_2012, one) == VOC_2012_AUG) == further
            }
            for further in (False, True)
        }
        assert sizes[True]
        assert not sizes[True] & sizes[False]


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [("papers", "did you mean 'paper'"), ("standart", "did you mean 'standard'"), ("x", "standard, paper")],
)
def test_an_unknown_protocol_is_answered_with_a_hint(wrong: str, hint: str) -> None:
    with pytest.raises(InputError, match=f"there is no protocol '{wrong}'; .*{hint}"):
        find_protocol(wrong)


OXFORD = RevisitedEntry("mini", "roxford5k", 8, 2)
FAKES: tuple[DatasetEntry[Data], ...] = (
    ImageNetEntry(classes=3, train=12, val=6, probe=ProbeSubset(None, per_class=3)),
    OXFORD,
    DavisEntry(sequences=2, frames=8, objects=4),
    SpairEntry(pairs=4, categories=2),
    CocoEntry(images=5, first=4),
    PartImageNetEntry(images=18, classes=6, supercategories=2, parts=4),
)


def instead(other: DatasetEntry[Data]) -> tuple[DatasetEntry[Data], ...]:
    """The datasets with another entry in place of that of its name."""
    return tuple(other if entry.name == other.name else entry for entry in FAKES)


def bound(
    data: Path, protocol: EvaluationProtocol, datasets: tuple[DatasetEntry[Data], ...] = FAKES
) -> dict[str, Task]:
    found = bind_tasks(DataLocation(datasets, data, protocol=protocol), find_tasks(()), names=["knn"])
    assert not found.absent
    assert not found.broken
    looking = (one for one in found.every if one.entry.role != "weights")
    return {one.entry.name: one for one in looking}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    fakes.write_fake_imagenet(tmp_path)
    fakes.write_fake_revisited(tmp_path)
    fakes.write_fake_davis(tmp_path)
    fakes.write_fake_spair(tmp_path)
    fakes.write_fake_coco(tmp_path, images=5)
    fakes.write_fake_partimagenet(tmp_path)
    return tmp_path


def test_parts_cluster_as_objects_and_the_last_object_image_is_left_out(data: Path) -> None:
    for protocol, objects, parts, images in ((STANDARD, 80, 4, 4), (PAPER, 80, 80, 3)):
        found = bound(data, protocol)
        things, pieces = (found[f"cluster-{what}"] for what in ("object", "part"))
        assert isinstance(things, RegionClusterTask)
        assert isinstance(pieces, RegionClusterTask)
        assert (things.data.clusters, pieces.data.clusters) == (objects, parts)
        assert [image.sample.key for image in things.data.images] == [
            f"{number + 1:012d}.jpg" for number in range(images)
        ]
        assert len(pieces.data.images) == 18


def test_saliency_looks_at_all_images_with_masks_through_the_view_of_classification(data: Path) -> None:
    fakes.write_fake_coco(data, images=7)  # the last has no mask
    datasets = instead(CocoEntry(images=7, first=4))
    for protocol in (protocol for protocol in PROTOCOLS if protocol.covers("saliency")):
        at = DataLocation(datasets, data, protocol=protocol)
        found = bind_tasks(
            at, find_tasks(("saliency", "attention-maps")), names=["saliency", "attention-maps"]
        )
        maps, objects, parts = found.every
        assert [one.dataset for one in (objects, parts)] == ["coco-val2017", "partimagenet"]
        assert [len(one.source.samples) for one in (objects, parts)] == [6, 18]
        assert {one.source.view for one in (maps, objects, parts)} == {protocol.config_for(IMAGES).view}
        for one in (objects, parts):
            assert isinstance(one, SaliencyTask)
            assert one.config == config_of(protocol, "saliency")
            assert not one.coverage.partial
        assert isinstance(maps, AttentionMapsTask)
        assert maps.config == config_of(protocol, "attention-maps")


def test_pairs_drawn_from_a_part_of_the_data_are_said_to_be_others(data: Path) -> None:
    more = instead(SpairEntry(pairs=5, categories=2))
    for protocol, words in ((STANDARD, False), (PAPER, True)):
        coverage = bound(data, protocol, more)["spair"].coverage
        assert coverage.partial
        assert ("pairs drawn from what is there" in str(coverage)) == words
