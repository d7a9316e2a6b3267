"""Clustering against regions that are averaged cell by cell and k-means in the dataset's order."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from torch import Tensor

from layerboard.benchmark.passes.collectors import MeasuredCollector
from layerboard.benchmark.passes.loading import Batch, Loader
from layerboard.tasks.clustering.task import ImageClusterTask, RegionClusterTask, region_weights
from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.datasets.coco import CocoEntry, RegionImage, Regions
from layerboard.tasks.framework.base import Outcome, Statistic
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Tiles
from tests.benchmark.doubles import CountingBackbone, MemorySample
from tests.fakes import write_fake_coco
from tests.tasks import passes
from tests.tasks.framework.test_sources import classification, probed, sources

VIEW = config_of(STANDARD, "cluster-image").view
QUICK = replace(config_of(STANDARD, "cluster-image"), n_init=2)
LAYER = Layer(2)
Mask = NDArray[np.uint8]


@dataclass(frozen=True)
class Drawn:
    """A region in memory."""

    key: str
    label: int
    pixels: Mask

    def mask(self) -> Mask:
        return self.pixels


def drawn_image(key: str, size: tuple[int, int], labels: list[int], seed: int) -> RegionImage:
    """An image with random rectangles; the last of them is one pixel."""
    rng = np.random.default_rng(seed)
    regions = []
    for number, label in enumerate(labels):
        mask = np.zeros((size[1], size[0]), np.uint8)
        left, top = (int(rng.integers(0, length // 2)) for length in size)
        wide, tall = (int(rng.integers(length // 4, length // 2)) for length in size)
        last = number == len(labels) - 1
        mask[top : top + (1 if last else tall), left : left + (1 if last else wide)] = 1
        regions.append(Drawn(f"{key}#{number}", label, mask))
    return RegionImage(MemorySample(key, 0, size), size, tuple(regions))


def obvious_weights(mask: Mask, grid: tuple[int, int]) -> NDArray[np.float64]:
    """The rule written out: 0 or 255, 8 bit, bicubic to the token grid, over the sum."""
    image = Image.fromarray(np.where(mask > 0, 255, 0).astype(np.uint8))
    small = np.asarray(image.resize((grid[1], grid[0]), Image.Resampling.BICUBIC)).astype(np.float64)
    return small / small.sum() if small.any() else small


def obvious_mean(mask: Mask, grid: Tensor) -> NDArray[np.float64] | None:
    """Weighted mean of a grid's cells; None where the region vanishes."""
    weights = obvious_weights(mask, (grid.shape[0], grid.shape[1]))
    if not weights.any():
        return None
    mean = np.zeros(grid.shape[2])
    for row, column in np.ndindex(weights.shape):
        mean += weights[row, column] * grid[row, column].double().numpy()
    return mean


def counted_purity(labels: NDArray[np.int64], clusters: NDArray[np.int64]) -> float:
    return float(contingency_matrix(labels, clusters).max(axis=0).sum() / len(labels))


def check(
    outcome: Outcome, features: NDArray[np.float64], labels: NDArray[np.int64], k: int, unit: str
) -> None:
    """The scores of scikit-learn's partition of float32 features in that order, which is the first item."""
    model = KMeans(k, n_init=QUICK.n_init, random_state=QUICK.seed, max_iter=300, tol=1e-4)
    clusters = model.fit(features.astype(np.float32)).labels_
    expected = {
        "purity": counted_purity(labels, clusters),
        "NMI": normalized_mutual_info_score(labels, clusters),
        "ARI": adjusted_rand_score(labels, clusters),
    }
    scores = [score for score in outcome.scores if score.metric != "purity ceiling"]
    assert [(s.metric, s.n, s.unit) for s in scores] == [(metric, len(labels), unit) for metric in expected]
    assert {score.metric: score.value / 100 for score in scores} == pytest.approx(expected)
    items = outcome.items
    assert items is not None
    assert list(items.values) == ["label", *(f"start {number + 1}" for number in range(QUICK.n_init))]
    assert items.values["label"].tolist() == labels.tolist()
    assert items.values["start 1"].tolist() == clusters.tolist()
    assert items.statistics == {name: Statistic(name, "partition") for name in expected}


def test_a_region_that_fills_the_image_is_the_mean_of_all_cells() -> None:
    np.testing.assert_allclose(region_weights(np.ones((31, 50), np.uint8), (4, 7)), 1 / 28, rtol=1e-6)


def random_regions() -> RegionClusterTask:
    """Twelve images of several shapes; labels with gaps; the last region of each is a pixel."""
    sizes = [(200, 150), (110, 220), (160, 160)]
    rng = np.random.default_rng(3)
    images = tuple(
        drawn_image(f"image{n}", sizes[n % 3], rng.choice([3, 17, 90], 4).tolist(), n) for n in range(12)
    )
    return RegionClusterTask(Regions("double", images, {}, Coverage(()), clusters=3), QUICK)


def measured(task: RegionClusterTask, grids: dict[Layer, list[Tensor]]) -> passes.Measured:
    return passes.measured(
        task, {layer: passes.by_key(task, every) for layer, every in grids.items()}, view=VIEW
    )


def test_regions_are_weighted_means_and_the_vanished_are_left_out() -> None:
    task, generator = random_regions(), torch.Generator().manual_seed(0)
    shapes = {Layer(0): (9, 11, 5), Layer(1): (5, 4, 8), Layer(2): (9, 11, 7)}
    grids = {layer: [torch.randn(s, generator=generator) for _ in range(12)] for layer, s in shapes.items()}
    found = measured(task, grids)
    for layer in shapes:
        means, labels, keys, vanished = [], [], [], 0
        for image, grid in zip(task.data.images, grids[layer], strict=True):
            for region in image.regions:
                mean = obvious_mean(region.mask(), grid)
                if mean is None:
                    vanished += 1
                    continue
                means.append(mean)
                labels.append(region.label)
                keys.append(region.key)
        covered = np.concatenate([left["covered"] for left in found[layer]])
        mean = np.concatenate([left["mean"] for left in found[layer]])
        assert int((~covered).sum()) == vanished
        np.testing.assert_allclose(mean[covered], means, atol=1e-5)
        outcome = task.score(found[layer])
        check(outcome, mean[covered].astype(np.float64), np.array(labels), 3, "objects")
        assert outcome.items is not None
        assert outcome.items.keys == tuple(keys)
        assert outcome.items.clusters == tuple(key.split("#")[0] for key in keys)  # its image
        if layer == Layer(1):
            assert 0 < vanished < 48
            assert "image0#3" not in keys


def planted(boxes: dict[str, tuple[int, int, int, int, int]]) -> RegionClusterTask:
    """Images of 32 x 32 px with regions: label, first and last row, first and last column."""
    images = []
    for number in range(4):  # four times the same, so that there are more regions than clusters
        regions = []
        for key, (label, top, bottom, left, right) in boxes.items():
            mask = np.zeros((32, 32), np.uint8)
            mask[top:bottom, left:right] = 1
            regions.append(Drawn(f"{number}#{key}", label, mask))
        key = f"image{number}"
        images.append(RegionImage(MemorySample(key, 0, (32, 32)), (32, 32), tuple(regions)))
    regions = Regions("planted", tuple(images), {}, Coverage(()), clusters=2)
    return RegionClusterTask(regions, QUICK)


@pytest.mark.parametrize(
    ("boxes", "cells", "ceiling"),
    [
        ({"a": (7, 0, 16, 0, 16), "b": (9, 16, 32, 16, 32)}, 4, 100),  # on the borders of cells
        ({"a": (7, 1, 3, 1, 3), "b": (9, 4, 6, 4, 7)}, 4, 50),  # both wholly within one cell
        ({"a": (7, 1, 3, 1, 3), "b": (9, 4, 6, 4, 7)}, 16, 100),  # which finer cells tell apart
        ({"a": (7, 0, 16, 0, 16), "b": (7, 16, 32, 16, 32), "c": (9, 16, 32, 0, 16)}, 2, 100),
        ({"a": (7, 0, 32, 0, 32), "b": (7, 0, 32, 0, 16), "c": (9, 10, 13, 10, 13)}, 1, 100 * 2 / 3),
    ],
)
def test_planted_regions_have_the_ceiling_that_their_cells_allow(
    boxes: dict[str, tuple[int, int, int, int, int]], cells: int, ceiling: float
) -> None:
    task, generator = planted(boxes), torch.Generator().manual_seed(0)
    grids = [torch.randn(cells, cells, 8, generator=generator) for _ in task.data.images]
    outcome = task.score(measured(task, {LAYER: grids})[LAYER])
    scores = {one.metric: one.value for one in outcome.scores}
    assert list(scores) == ["purity", "NMI", "ARI", "purity ceiling"]
    assert scores["purity ceiling"] == pytest.approx(ceiling)
    assert outcome.items is not None
    assert "purity ceiling" not in outcome.items.statistics  # no layer is chosen by it


def test_what_was_measured_by_an_earlier_version_has_no_ceiling() -> None:
    task, generator = random_regions(), torch.Generator().manual_seed(0)
    left = measured(task, {LAYER: [torch.randn(5, 4, 8, generator=generator) for _ in range(12)]})[LAYER]
    older = [{name: one[name] for name in ("mean", "covered")} for one in left]
    assert [one.metric for one in task.score(older).scores] == ["purity", "NMI", "ARI"]


def test_regions_of_a_tiled_image_that_is_not_square(tmp_path: Path) -> None:
    """Through decoding, tiling and collecting; the features of a cell depend on its pixels only."""
    write_fake_coco(tmp_path, images=4, size=(60, 44))
    data = CocoEntry(images=4, first=4, categories=2).read(tmp_path)
    task, double, view = (RegionClusterTask(data, QUICK), CountingBackbone(), VIEW.scaled(32, 8))
    assert (VIEW, view) == (Tiles(448, 224), Tiles(64, 32, 8))
    source = replace(task.source, view=view)
    collector = MeasuredCollector(task, source, frozenset([LAYER]))
    groups = range(len(source.groups))
    # one image is six tiles: more than a batch
    for event in Loader(1).batches(source, [0], 4, 32):
        if isinstance(event, Batch):
            double.visit(event.pixels, lambda seen, event=event: collector.see(event, seen), [LAYER])
    arrays = collector.finish(groups)
    for number, image in enumerate(data.images):
        with image.sample.open() as opened:
            # 64 x 60 / 44 is 87.3: the longer side is floored to 80
            shown = torch.from_numpy(np.array(opened.resize((80, 64), Image.Resampling.BICUBIC))).float()
        cells = shown.view(8, 8, 10, 8, 3).mean(dim=(1, 3)) + LAYER.index
        grid = torch.cat([cells, cells**2 / 100, torch.ones(8, 10, 2)], dim=-1)
        expected = np.array([obvious_mean(region.mask(), grid) for region in image.regions])
        found = arrays[f"{number}/{LAYER}/mean"].numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_features_that_vary_a_little_are_clustered() -> None:
    task = random_regions()
    left = measured(task, {LAYER: [torch.full((8, 8, 3), 7.3) for _ in range(12)]})[LAYER]
    for number, one in enumerate(left):
        one["mean"][:, 1] += 1e-4 * number
    assert not task.score(left).empty


def image_problem(seed: int, batch: int = 7) -> tuple[ImageClusterTask, NDArray[np.float32]]:
    """Images of four classes of which every second is a probe image; their features in dataset order."""
    rng = np.random.default_rng(seed)
    train = np.sort(rng.integers(0, 4, 80))
    images = classification(train, train[:3])
    data = probed(images, sources(images, np.arange(0, 80, 2), size=batch))
    features = rng.normal(size=(4, 6))[train[::2]] + rng.normal(size=(40, 6))
    return ImageClusterTask(data, QUICK), features.astype(np.float32)


def of_source(task: ImageClusterTask, features: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    return {task.data.probe.name: features[task.data.probe_order // 2]}


def test_images_are_clustered_in_the_order_of_the_dataset() -> None:
    task, features = image_problem(0)
    outcome = task.score(of_source(task, features))
    train = np.empty(80, np.int64)
    train[task.data.probe_order] = task.data.labels
    check(outcome, features.astype(np.float64), train[::2], 4, "images")
    assert outcome.items is not None
    assert outcome.items.keys == tuple(f"train/{index:05d}" for index in range(0, 80, 2))
    assert outcome.items.clusters == outcome.items.keys  # an image is sampled by itself
