"""Scores of anomaly detection of one layer: of each product, and their mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.base import Items, Outcome, Score, Statistic
from layerboard.tasks.datasets.defects import Product, read_defect
from layerboard.tasks.examples import small_mask
from layerboard.tasks.metrics import anomaly
from layerboard.tasks.metrics.arrays import SHORTEST, Floats, Mask

ONE_KIND = "no product has test images both with and without a defect"
NO_MASKS = "no product has a mask of every defect"

_pixels = Lock()  # pixels of one product and layer are in memory at a time


@dataclass(frozen=True, slots=True)
class ScoredProduct:
    """What a layer says of the test images of a product, in order."""

    product: Product
    defect: Mask  # whether an image shows a defect, [images]
    distances: NDArray[np.float32]  # of patches, [images height width]
    scores: NDArray[np.float32]  # of images by all references and by draws of them, [images 1 + draws]

    def columns(self, draws: Sequence[str]) -> dict[str, Floats]:
        """For each AUROC in percent a value an image, whose mean over images of either kind it is.

        ``draws`` name the columns of scores after the first, ``N-shot DRAW``; those of one number are joined.
        Nothing where all images are of one kind.
        """
        names = ["AUROC", *(f"AUROC {draw.partition(' ')[0]}" for draw in draws)]
        columns: dict[str, list[Floats]] = {}
        for name, scores in zip(names, self.scores.T.astype(np.float64), strict=True):
            if not np.isnan(scores).any() and self.defect.any() and not self.defect.all():
                placed = anomaly.placements(scores, self.defect)
                columns.setdefault(name, []).append(100 * placed.pseudo_values)
        return {name: np.mean(values, axis=0) for name, values in columns.items()}

    def by_kind(self) -> dict[str, Floats]:
        """For each kind of defect, where there are several, AUROC's column of its images and all good ones.

        Other images are NaN.
        """
        of_image = np.asarray([image.kind for image in self.product.images])
        kinds = sorted({*of_image[self.defect]}) if not self.defect.all() else []
        columns = {}
        for kind in kinds if len(kinds) > 1 else ():
            taken = ~self.defect | (of_image == kind)
            columns[str(kind)] = np.full(len(taken), np.nan)
            placed = anomaly.placements(self.scores[taken, 0].astype(np.float64), self.defect[taken])
            columns[str(kind)][taken] = 100 * placed.pseudo_values
        return columns

    def of_images(self) -> dict[str, float]:
        """Further metrics of images in percent; NaN where one is not defined."""
        scores = self.scores[:, 0].astype(np.float64)
        bad, good = scores[self.defect], np.sort(scores[~self.defect])
        precision = anomaly.average_precision(scores, self.defect)
        return {"AP": 100 * precision, "F1max": 100 * anomaly.f1_max(bad, good)}

    def of_pixels(self, limits: Sequence[float]) -> dict[str, float]:
        """Metrics of pixels in percent; nothing where a defect has no mask, or there is none."""
        if not (self.product.masked and self.defect.any()):
            return {}
        maps = (
            (anomaly.anomaly_map(distances, image.size), read_defect(image))
            for image, distances in zip(self.product.images, self.distances, strict=True)
        )
        with _pixels:
            pixels = anomaly.pooled_pixels(maps)
            regions = {
                f"AU-PRO {limit:g}".removesuffix(f" {limits[0]:g}"): 100 * pixels.au_pro(limit)
                for limit in limits
            }
            return {"pixel AUROC": 100 * pixels.auroc, **regions, "pixel F1max": 100 * pixels.f1_max}

    def heat(self, place: int) -> NDArray[np.uint8]:
        """How far the pixels of an image are from good ones, in percent, small (`tasks.examples.small_mask`).

        0 is the median of the patches of the good images, 100 the farthest of all.
        """
        good = self.distances[~self.defect]
        low, high = float(np.median(good if good.size else self.distances)), float(self.distances.max())
        image = anomaly.anomaly_map(self.distances[place].astype(np.float64), self.product.images[place].size)
        share = np.clip((image - low) / max(high - low, SHORTEST), 0, 1)
        return small_mask(np.rint(100 * share).astype(np.uint8))


def outcome(products: Sequence[ScoredProduct], draws: Sequence[str], limits: Sequence[float]) -> Outcome:
    """Means over products in percent, those of each product and kind of defect beside them, an item an image.

    Arguments as of `ScoredProduct`. What is not defined of a product is left out of the mean.
    """
    columns = {each.product.name: each.columns(draws) for each in products}
    values = {}
    for each, named in zip(products, columns.values(), strict=True):
        means = {metric: float(column[each.defect].mean()) for metric, column in named.items()}
        every = means | each.of_images() | each.of_pixels(limits)
        values[each.product.name] = {metric: value for metric, value in every.items() if not np.isnan(value)}
    metrics = dict.fromkeys(metric for of_product in values.values() for metric in of_product)
    if not metrics:
        return Outcome((), empty=ONE_KIND)
    images = {each.product.name: len(each.defect) for each in products}
    scores = []
    for metric in metrics:
        mean = float(np.mean([each[metric] for each in values.values() if metric in each]))
        scores.append(Score(metric, mean, sum(images.values()), "images"))
    if len(products) > 1:
        scores += [
            Score(f"{metric} {name}", value, images[name], "images")
            for name, of_product in values.items()
            for metric, value in of_product.items()
        ]
    missing = {} if "AU-PRO" in metrics else dict.fromkeys(("pixel AUROC", "AU-PRO"), NO_MASKS)
    if not any(columns.values()):
        return Outcome(tuple(scores), missing={"AUROC": ONE_KIND, **missing})
    compared = [each for each in products if columns[each.product.name]]
    items = _items(compared, _by_metric(compared, columns, several=len(products) > 1))
    known = {score.metric for score in scores}
    defect = np.concatenate([each.defect for each in compared])
    for metric, column in items.values.items():
        if metric not in known:  # of a kind of defect
            mean = float(np.nanmean(column[defect]))
            scores.append(Score(metric, mean, int(np.isfinite(column).sum()), "images"))
    return Outcome(tuple(scores), items, missing=missing)


def _by_metric(
    products: Sequence[ScoredProduct], columns: Mapping[str, Mapping[str, Floats]], *, several: bool
) -> dict[str, dict[str, Floats]]:
    """Columns of AUROCs by metric and product: those of all, then of each product and kind of defect."""
    every: dict[str, dict[str, Floats]] = {}
    parts: dict[str, dict[str, Floats]] = {}
    for each in products:
        name = each.product.name
        for metric, column in columns[name].items():
            every.setdefault(metric, {})[name] = column
            parts |= {f"{metric} {name}": {name: column}} if several else {}
        for kind, column in each.by_kind().items():
            parts[f"AUROC {name}/{kind}" if several else f"AUROC {kind}"] = {name: column}
    return every | parts


def _items(products: Sequence[ScoredProduct], columns: Mapping[str, Mapping[str, Floats]]) -> Items:
    """An item an image, good ones and defects of each product apart; NaN where a metric has no column."""
    keys = tuple(image.sample.key for each in products for image in each.product.images)
    strata = tuple(
        f"{each.product.name}/{'defect' if defect else 'good'}" for each in products for defect in each.defect
    )
    nothing = {each.product.name: np.full(len(each.defect), np.nan) for each in products}
    values = {}
    for metric, by_product in columns.items():
        values[metric] = np.concatenate([by_product.get(name, column) for name, column in nothing.items()])
    statistics = {metric: Statistic(metric, "ranks") for metric in values}
    return Items("images", keys, keys, strata, values, statistics)
