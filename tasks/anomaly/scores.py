"""Anomaly detection scores of one layer: of each product, and their mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.anomaly import metric as anomaly
from layerboard.tasks.datasets.defects import Product, read_defect
from layerboard.tasks.framework.base import Items, Outcome, Over, Score, Statistic
from layerboard.tasks.framework.examples import small_mask
from layerboard.tasks.metrics.arrays import SHORTEST, Floats, Mask
from layerboard.tasks.statistics import linearised

ONE_KIND = "no product has test images both with and without a defect"
NO_MASKS = "no product has a mask of every defect"

OVER: Mapping[str, Over] = {"AUROC": "ranks", "pixel": "shares", "AU-PRO": "shares"}
"""What a metric averages over, by the first word of its name; the others are curves."""

NOTHING = np.zeros(0)  # column of a metric without one
Measured = Mapping[str, tuple[float, Floats]]
"""Metrics in percent, NaN if undefined, and columns with one value per image for their intervals."""

_pixels = Lock()  # the pixels of only one product and layer are in memory at a time


@dataclass(frozen=True, slots=True)
class ScoredProduct:
    """Results of a layer for the test images of a product, in order."""

    product: Product
    defect: Mask  # whether an image shows a defect, [images]
    distances: NDArray[np.float32]  # of patches, [images height width]
    scores: NDArray[np.float32]  # of images, from all references and from each draw, [images 1 + draws]

    def measured(self, draws: Sequence[str], limits: Sequence[float]) -> Measured:
        """All metrics that are defined; the arguments are those of `_of_draws` and `_of_pixels`."""
        every = {**self._of_draws(draws), **self._of_images(), **self._of_pixels(limits)}
        return {metric: measured for metric, measured in every.items() if not np.isnan(measured[0])}

    def _of_draws(self, draws: Sequence[str]) -> Measured:
        """AUROC by all references and by those of few-shot draws, the mean over images of either kind.

        ``draws`` name the columns of scores after the first, ``N-shot DRAW``; draws with equal N are
        averaged. Empty if all images are of one kind.
        """
        names = ["AUROC", *(f"AUROC {draw.partition(' ')[0]}" for draw in draws)]
        columns: dict[str, list[Floats]] = {}
        for name, scores in zip(names, self.scores.T.astype(np.float64), strict=True):
            if not np.isnan(scores).any() and self.defect.any() and not self.defect.all():
                placed = linearised.placements(scores, self.defect)
                columns.setdefault(name, []).append(100 * placed.pseudo_values)
        means = {name: np.mean(values, axis=0) for name, values in columns.items()}
        return {name: (float(column[self.defect].mean()), column) for name, column in means.items()}

    def by_kind(self) -> dict[str, Floats]:
        """AUROC column for each kind of defect, if there are several, of its images and all good images.

        Other images are NaN.
        """
        of_image = np.asarray([image.kind for image in self.product.images])
        kinds = sorted({*of_image[self.defect]}) if not self.defect.all() else []
        columns = {}
        for kind in kinds if len(kinds) > 1 else ():
            taken = ~self.defect | (of_image == kind)
            columns[str(kind)] = np.full(len(taken), np.nan)
            placed = linearised.placements(self.scores[taken, 0].astype(np.float64), self.defect[taken])
            columns[str(kind)][taken] = 100 * placed.pseudo_values
        return columns

    def _of_images(self) -> Measured:
        """Further metrics of images."""
        scores = self.scores[:, 0].astype(np.float64)
        precision = linearised.average_precision_values(self.defect, scores)
        metrics = {"AP": precision, "F1max": linearised.f1_max_values(self.defect, scores)}
        return {metric: self._percent(float(values.mean()), values) for metric, values in metrics.items()}

    def _of_pixels(self, limits: Sequence[float]) -> Measured:
        """Pixel metrics; empty without defects or if a defect has no mask."""
        if not (self.product.masked and self.defect.any()):
            return {}
        maps = (
            (anomaly.anomaly_map(distances, image.size), read_defect(image))
            for image, distances in zip(self.product.images, self.distances, strict=True)
        )
        with _pixels:
            pixels = anomaly.pooled_pixels(maps)
            if (images := pixels.images) is None:
                return {"pixel F1max": (100 * pixels.f1_max, NOTHING)}
            metrics = {"pixel AUROC": self._percent(pixels.auroc, images.area_under_roc())}
            for limit in limits:
                name = f"AU-PRO {limit:g}".removesuffix(f" {limits[0]:g}")
                metrics[name] = self._percent(pixels.au_pro(limit), images.au_pro(limit))
            return metrics | {"pixel F1max": self._percent(pixels.f1_max, images.f1_max())}

    def _percent(self, value: float, values: Floats) -> tuple[float, Floats]:
        """A metric in percent and its column, from `linearised` values, if there are images of both kinds."""
        both = self.defect.any() and not self.defect.all()
        return 100 * value, 100 * linearised.of_either_kind(value, values, self.defect) if both else NOTHING

    def heat(self, place: int) -> NDArray[np.uint8]:
        """Small anomaly map of an image in percent (`tasks.examples.small_mask`).

        0 is the median patch distance of the good images, 100 the largest distance of all.
        """
        good = self.distances[~self.defect]
        low, high = float(np.median(good if good.size else self.distances)), float(self.distances.max())
        image = anomaly.anomaly_map(self.distances[place].astype(np.float64), self.product.images[place].size)
        share = np.clip((image - low) / max(high - low, SHORTEST), 0, 1)
        return small_mask(np.rint(100 * share).astype(np.uint8))


def outcome(products: Sequence[ScoredProduct], draws: Sequence[str], limits: Sequence[float]) -> Outcome:
    """Means over products in percent, and scores of each product and kind of defect; items are images.

    The arguments are those of `ScoredProduct`. The mean leaves out products for which a metric is undefined.
    """
    measured = {each.product.name: each.measured(draws, limits) for each in products}
    metrics = dict.fromkeys(metric for of_product in measured.values() for metric in of_product)
    if not metrics:
        return Outcome((), empty=ONE_KIND)
    images = {each.product.name: len(each.defect) for each in products}
    scores = []
    for metric in metrics:
        known = {name: every[metric][0] for name, every in measured.items() if metric in every}
        count = sum(images[name] for name in known)
        scores.append(Score(metric, float(np.mean([*known.values()])), count, "images"))
    if len(products) > 1:
        scores += [
            Score(f"{metric} {name}", value, images[name], "images")
            for name, of_product in measured.items()
            for metric, (value, _) in of_product.items()
        ]
    missing = {} if "AU-PRO" in metrics else dict.fromkeys(("pixel AUROC", "AU-PRO"), NO_MASKS)
    columns = _columns(products, measured)
    compared = [each for each in products if any(each.product.name in every for every in columns.values())]
    if not compared:
        return Outcome(tuple(scores), missing={"AUROC": ONE_KIND, **missing})
    items = _items(compared, columns)
    there = {score.metric for score in scores}
    defect = np.concatenate([each.defect for each in compared])
    for metric, column in items.values.items():
        if metric not in there:  # a metric of one kind of defect
            mean = float(np.nanmean(column[defect]))
            scores.append(Score(metric, mean, int(np.isfinite(column).sum()), "images"))
    return Outcome(tuple(scores), items, missing=missing)


def _columns(
    products: Sequence[ScoredProduct], measured: Mapping[str, Measured]
) -> dict[str, dict[str, Floats]]:
    """Columns by metric and product: those of all products, then of each product and kind of defect.

    A metric has columns for all products that it is defined for, or for none.
    """
    every: dict[str, dict[str, Floats]] = {}
    parts: dict[str, dict[str, Floats]] = {}
    several = len(products) > 1
    named = (each for of_product in measured.values() for each in of_product.items())
    partly = {name for name, (_, column) in named if not len(column)}
    for each in products:
        name = each.product.name
        whole = {metric: column for metric, (_, column) in measured[name].items() if metric not in partly}
        for metric, column in whole.items():
            every.setdefault(metric, {})[name] = column
            parts |= {f"{metric} {name}": {name: column}} if several else {}
        for kind, column in each.by_kind().items() if whole else ():
            parts[f"AUROC {name}/{kind}" if several else f"AUROC {kind}"] = {name: column}
    return every | parts


def _items(products: Sequence[ScoredProduct], columns: Mapping[str, Mapping[str, Floats]]) -> Items:
    """One item per image; strata are good and defective images of each product; NaN without a column."""
    keys = tuple(image.sample.key for each in products for image in each.product.images)
    strata = tuple(
        f"{each.product.name}/{'defect' if defect else 'good'}" for each in products for defect in each.defect
    )
    nothing = {each.product.name: np.full(len(each.defect), np.nan) for each in products}
    values = {
        metric: np.concatenate([*{**nothing, **by_product}.values()])
        for metric, by_product in columns.items()
    }
    statistics = {metric: Statistic(metric, OVER.get(metric.split()[0], "curves")) for metric in values}
    return Items("images", keys, keys, strata, values, statistics)
