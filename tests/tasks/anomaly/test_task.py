"""Anomaly detection, fed batch by batch, on features that are planted."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.metrics import roc_auc_score
from torch import Tensor

from layerboard.tasks.anomaly.references import Draws, ProductMemories
from layerboard.tasks.anomaly.scores import NO_MASKS, ONE_KIND
from layerboard.tasks.anomaly.task import AnomalyConfig, AnomalyTask
from layerboard.tasks.datasets.base import Coverage, FileSample
from layerboard.tasks.datasets.defects import Defects, Product, ScoredImage
from layerboard.tasks.framework.assess import (
    below_best,
    group_difference,
    held_out_gain,
    intervals_of,
    paired_differences,
    score_of,
    standing_of,
)
from layerboard.tasks.framework.checks import ALIKE
from layerboard.zoo.view.views import Stretch
from tests.tasks.agreement import anomaly as agreement
from tests.tasks.passes import LAYER, by_metric, measured, outcome

OFFICIAL = {
    "AUROC": "image_auroc",
    "AP": "image_ap",
    "pixel AUROC": "pixel_auroc",
    "AU-PRO": "au_pro_0.3",
    "AU-PRO 0.05": "au_pro_0.05",
}
CONFIG = AnomalyConfig(Stretch(8), k=1, draws=Draws((1, 4), 3), limits=(0.3, 0.05), seed=0)


def ready(task: AnomalyTask, grids: Mapping[str, Tensor]) -> AnomalyTask:
    """The task with its memory."""
    return task.remembering(measured(task.memory, {LAYER: grids}), {})


def products(
    folder: Path, masks: Mapping[str, NDArray[Any]], references: int, memory: int = 10**6
) -> Defects:
    """A dataset of masks [images height width] by product; an image without a defect has a black one."""
    every = []
    for name, stacked in masks.items():
        images = []
        for number, mask in enumerate(stacked):
            path = folder / f"{name}-{number}.png"
            Image.fromarray((mask > 0).astype(np.uint8) * np.uint8(255)).save(path)
            size = (mask.shape[1], mask.shape[0])
            images.append(ScoredImage(FileSample(f"{name}/{number}", ""), "crack", size, path))
        known = tuple(FileSample(f"{name}/good/{number}", "") for number in range(references))
        every.append(Product(name, known, tuple(images)))
    return Defects("planted", tuple(every), memory, Coverage(()))


def drawn(data: Defects, strength: float, seed: int = 0) -> dict[str, Tensor]:
    """Grids [4 4 8] of all images: good ones of one mode, and defects that differ where the mask is white."""
    rng = np.random.default_rng(seed)
    mode, odd = rng.standard_normal((2, 8))
    grids = {}
    for product in data.products:
        for sample in product.references:
            grids[sample.key] = mode + 0.1 * rng.standard_normal((4, 4, 8))
        for image in product.images:
            assert image.mask is not None
            white = np.asarray(Image.open(image.mask).resize((4, 4), Image.Resampling.BOX)) > 127
            grids[image.sample.key] = (
                mode + 0.1 * rng.standard_normal((4, 4, 8)) + strength * white[..., None] * odd
            )
    return {key: torch.from_numpy(grid.astype(np.float32)) for key, grid in grids.items()}


def corners(images: int, defects: int) -> NDArray[np.bool_]:
    """Masks [images 40 40] of which the first have a white corner."""
    masks = np.zeros((images, 40, 40), np.bool_)
    masks[:defects, :20, :20] = True
    return masks


def test_golden_numbers_come_out_of_the_passes(tmp_path: Path) -> None:
    """By all reference images, and by draws of one and of four, which are remembered alone."""
    name = "two_kinds_shots_and_seeds"
    case, arrays = agreement.CASES[name], agreement.build(name)
    recipe = case["recipe"]
    order = np.argsort(recipe["ref_names"])
    data = products(tmp_path, {"thing": arrays["test_masks"]}, references=len(order))
    grids = {f"thing/good/{row}": arrays["ref_features"][place] for row, place in enumerate(order)}
    grids |= {f"thing/{row}": features for row, features in enumerate(arrays["test_features"])}
    shaped = {key: torch.from_numpy(grid).view(*recipe["grid"], -1) for key, grid in grids.items()}
    for run, expected in zip(case["params"]["runs"], case["expected"].values(), strict=True):
        official, task = expected["official"], AnomalyTask(data, replace(CONFIG, k=run["k"]))
        if run["shots"] > 0:
            left = measured(ready(task, shaped), {LAYER: shaped})[LAYER]
            scores = np.concatenate([group["scores"] for group in left])
            column = 1 + 3 * (run["shots"] > 1) + run["seed"]
            np.testing.assert_allclose(scores[:, column], official["image_scores"], atol=1e-3)
            continue
        values = by_metric(outcome(task, shaped))
        for metric, golden in OFFICIAL.items():
            assert values[metric] / 100 == pytest.approx(official[golden], abs=1e-3)


def test_each_kind_of_defect_is_compared_with_all_good_images(tmp_path: Path) -> None:
    data = products(tmp_path, {"a": corners(12, 6), "b": corners(6, 3)}, 3)
    kinds = ["crack", "dent", "crack", "dent", "dent", "crack"]
    first, second = data.products
    defects = [replace(image, kind=kind) for image, kind in zip(first.images[:6], kinds, strict=True)]
    data = replace(data, products=(replace(first, images=(*defects, *first.images[6:])), second))
    task = AnomalyTask(data, CONFIG)
    grids = drawn(data, 0.3)
    result, planted = outcome(task, grids), ready(task, grids)
    assert result.items is not None
    left = measured(planted, {LAYER: grids})[LAYER]
    every = np.concatenate([group["scores"] for group in left])[:12, 0]
    for kind in ("crack", "dent"):
        taken = [number for number in range(12) if number > 5 or kinds[number] == kind]
        expected = 100 * roc_auc_score([number < 6 for number in taken], every[taken])
        metric = f"AUROC a/{kind}"
        assert by_metric(result)[metric] == pytest.approx(expected, abs=1e-9)
        assert score_of(result.items, metric) == pytest.approx(expected, abs=1e-9)
        (number,) = (score.n for score in result.scores if score.metric == metric)
        assert number == len(taken)
    assert not [metric for metric in by_metric(result) if metric.startswith("AUROC b/")]


def test_what_a_few_defects_decide_has_no_interval(tmp_path: Path) -> None:
    """With nine defects, AP and the largest F1 of the product and of both have none; the AUROC has."""
    data = products(tmp_path, {"nut": corners(24, 12), "bolt": corners(20, 9)}, references=6)
    result = outcome(AnomalyTask(data, CONFIG), drawn(data, 0.1))
    assert result.items is not None
    lacking = {metric for metric, (ends,) in intervals_of([result.items]).items() if np.isnan(ends).any()}
    assert lacking == {"AP", "F1max", "AP bolt", "F1max bolt"}


@pytest.mark.parametrize(("defects", "known"), [(7, False), (8, True)])
def test_layers_are_not_compared_by_few_defects(tmp_path: Path, defects: int, known: bool) -> None:
    """With four defects of forty images equal layers would differ by AUROC in 9 %."""
    data = products(tmp_path, {"bolt": corners(20, defects)}, references=6)
    layers = [outcome(AnomalyTask(data, CONFIG), drawn(data, share)).items for share in (0.1, 0.4)]
    first, second = (items for items in layers if items is not None)
    assert np.isfinite(intervals_of([first])["AUROC"]).all()
    assert [below is not None for below in below_best([first, second], "AUROC")] == [known] * 2
    groups, paired = (
        group_difference([first], [second], "AUROC"),
        paired_differences([first, second], "AUROC"),
    )
    assert groups is not None
    assert paired is not None
    assert [math.isfinite(p) for p in (groups.p, *paired.p[1:])] == [known] * 2
    gain, standing = held_out_gain([second], [first], "AUROC"), standing_of([[first], [second]], "AUROC")
    assert gain is not None
    assert standing is not None
    assert math.isfinite(gain.value)
    assert [math.isfinite(gain.low), standing.ranks is not None] == [known] * 2
    assert known or math.isnan(standing.smallest)
    assert paired.value[1] == pytest.approx(score_of(second, "AUROC") - score_of(first, "AUROC"))


def test_the_memory_is_bounded_by_a_draw_that_does_not_depend_on_the_layer(tmp_path: Path) -> None:
    data = products(tmp_path, {"nut": corners(8, 4)}, references=20, memory=100)
    task, grids = AnomalyTask(data, replace(CONFIG, draws=Draws((1,), 2))), drawn(data, 3.0)
    left = measured(task.memory, {LAYER: grids})[LAYER]
    image, rows_drawn = (np.concatenate([part[name] for part in left]) for name in ("image", "drawn"))
    assert np.bincount(image).tolist() == [16, 16] + 18 * [5]  # those that are remembered alone are whole
    assert np.bincount(image[rows_drawn]).tolist() == 20 * [5]
    again = measured(task.memory, {LAYER: grids}, batch=1)[LAYER]
    for part, other in zip(left, again, strict=True):
        assert all((part[name] == other[name]).all() for name in part)
    assert by_metric(outcome(task, grids))["memory"] == pytest.approx(100 * 5 / 16)


def test_few_products_are_in_memory_at_a_time(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    data = products(tmp_path, dict.fromkeys(names, corners(4, 2)), references=4)
    task, grids = AnomalyTask(data, CONFIG), drawn(data, 3.0)
    planted = measured(task.memory, {LAYER: grids})
    memories = ProductMemories(planted, {}, task.memory.groups, whole=12, most=100)
    for name in names:
        memory = memories.of(name, LAYER, torch.device("cpu"))
        assert len(memory.every) == 64
        assert len(memory.images) == 4
    assert [*memories._kept] == ["b", "c"]


def test_groups_are_of_one_product(tmp_path: Path) -> None:
    data = products(tmp_path, {"nut": corners(11, 4), "bolt": corners(3, 1)}, references=9)
    task = AnomalyTask(data, CONFIG)
    assert [group.key for group in task.source.groups] == ["nut/00000000", "nut/00000008", "bolt/00000000"]
    assert task.memory.groups == {"nut": [0, 1], "bolt": [2, 3]}
    assert task.memory.source.groups_per_shard == 1


def test_what_cannot_be_scored_has_a_reason(tmp_path: Path) -> None:
    data = products(tmp_path, {"nut": corners(4, 4)}, references=2)
    result = outcome(AnomalyTask(data, CONFIG), drawn(data, 1.0))
    assert result.missing == {"AUROC": ONE_KIND}
    assert result.items is None
    assert by_metric(result)["AP"] == 100
    assert by_metric(result)["pixel AUROC"] > 50
    mixed = products(tmp_path, {"nut": corners(4, 4), "bolt": corners(8, 4)}, references=2)
    result = outcome(AnomalyTask(mixed, CONFIG), drawn(mixed, 1.0))
    assert result.items is not None
    assert {"AP", "AP nut", "AP bolt"} <= {*by_metric(result)}
    count = {score.metric: score.n for score in result.scores}
    assert (count["AUROC"], count["AP"], count["memory"]) == (8, 12, 12)  # AUROC of bolts alone
    assert {name.partition(" ")[0] for name in result.items.statistics} == {"AUROC"}  # of bolts alone
    (tmp_path / "good").mkdir()
    good = products(tmp_path / "good", {"nut": corners(4, 0)}, references=2)
    assert outcome(AnomalyTask(good, CONFIG), drawn(good, 1.0)).empty == ONE_KIND
    same = dict.fromkeys(drawn(data, 1.0), torch.ones(4, 4, 8))
    assert outcome(AnomalyTask(data, CONFIG), same).empty == ALIKE


def test_without_masks_only_images_are_scored(tmp_path: Path) -> None:
    data = products(tmp_path, {"nut": corners(6, 3)}, references=2)
    grids = drawn(data, 3.0)
    kinds = ["crack"] * 3 + ["good"] * 3
    images = zip(data.products[0].images, kinds, strict=True)
    bare = tuple(replace(image, mask=None, kind=kind) for image, kind in images)
    data = replace(data, products=(replace(data.products[0], images=bare),))
    result = outcome(AnomalyTask(data, CONFIG), grids)
    assert by_metric(result)["AUROC"] == pytest.approx(100)
    assert result.missing == {"pixel AUROC": NO_MASKS, "AU-PRO": NO_MASKS}
    assert not any("pixel" in metric for metric in by_metric(result))


def test_maps_of_a_few_images_are_kept(tmp_path: Path) -> None:
    data = products(tmp_path, {"nut": corners(11, 5), "bolt": corners(9, 4)}, references=10)
    kinds = [("crack" if number < 5 else "good") for number in range(11)]
    nut = data.products[0]
    images = tuple(replace(image, kind=kind) for image, kind in zip(nut.images, kinds, strict=True))
    task = AnomalyTask(replace(data, products=(replace(nut, images=images), data.products[1])), CONFIG)
    predicted, facts = outcome(task, drawn(data, 3.0)).predicted, task.facts()
    assert predicted["heat"].shape == facts["truth"].shape == (12, 96, 96)
    assert {*facts["product"].tolist()} == {"nut", "bolt"}
    assert np.count_nonzero(facts["kind"] == "good") == 4
    assert (np.asarray(predicted["score"]) == 100).all()
    assert [*task.pictures([predicted])] == facts["image"].tolist()
    heat, truth = np.asarray(predicted["heat"]), facts["truth"]
    assert (heat[truth == 255] == 255).all()
    assert heat[truth == 1].mean() > 60 > 20 > heat[truth == 0].mean()
