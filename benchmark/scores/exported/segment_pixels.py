"""Mean IoU of exported features by a vote of pixels, as the protocol ``capi`` of `segment`."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from benchmark.scores.exported.arrays import Floats
from benchmark.scores.exported.report import Json, ScoreReport
from benchmark.scores.exported.segment import Judged, numbers_of, read_features, report_of
from tasks.metrics.arrays import VOID, Integers, Labels
from tasks.protocols import CAPI
from tasks.segmentation.capi import CapiConfig, pixels_of
from tasks.segmentation.pixel_measurers import confusion_of, kept_of
from tasks.segmentation.pixel_memory import PixelMemories, PixelMemory, Pixels
from zoo.errors import InputError
from zoo.spec import WHOLE_BACKBONE

DEVICE = torch.device("cpu")


def exported_rule(k: int | None) -> CapiConfig:
    """The protocol's numbers; with so many voters, if that is said."""
    rule = CAPI.segmentation
    assert isinstance(rule, CapiConfig)
    return rule if k is None else replace(rule, electorate=replace(rule.electorate, ks=(k,)))


def score_by_pixels(features: Path, judged: Judged, rule: CapiConfig, memory: int) -> ScoreReport:
    """Mean IoU, over what truth or prediction shows, and accuracies in percent.

    Args:
        features: Archive as of `score_features`; masks have a whole number of pixels a cell, the same in
            train and test.
        judged: Classes and labels that are not judged; 255 is none.
        rule: How pixels vote; its view is not used. Images are drawn, and held out, by their places.
        memory: Cells that are remembered at most.

    Raises:
        InputError: Something about the file is wrong, or there is nothing to remember or to choose on.
    """
    (train, test), (known, truth) = read_features(features)
    if len(parts := {_pixels_a_cell(*pair) for pair in ((train, known), (test, truth))}) > 1 or None in parts:
        raise InputError(
            f"expected masks with a whole number of pixels a cell, the same in train and test of {features}, "
            f"found {known.shape[1:]} and {truth.shape[1:]} pixels of {train.shape[1:3]} and "
            f"{test.shape[1:3]} cells; resize them as the images that the features are of"
        )
    classes, keys = judged.count([known, truth]), [str(number) for number in range(len(train))]
    pixels = pixels_of(keys, rule, classes, frozenset((*judged.ignored, VOID)), memory)
    try:
        voters = _memory(train, known, pixels, rule)
    except ValueError as error:
        raise InputError(f"cannot score {features}: {error}") from error
    numbers: dict[str, Json] = {
        "features": str(features),
        "k": voters.k,
        "distance": voters.distance,
        "memory": memory,
        "seed": rule.seed,
        "cells": len(voters.rows),
        "held_out": sorted(map(int, pixels.held_out)),
        **numbers_of(judged, classes),
    }
    note = f"{voters.k} cells vote, found by {voters.distance}, as fits held-out images of train best."
    tables = [_labelled(grid, mask, voters, pixels) for grid, mask in zip(test, truth, strict=True)]
    return report_of(tables, CAPI.name, numbers, (note,))


def _pixels_a_cell(grids: Floats, masks: Labels) -> tuple[int, int] | None:
    """Pixels of a cell's sides; None where they are not whole."""
    (height, width), (rows, columns) = masks.shape[1:], grids.shape[1:3]
    return None if height % rows or width % columns else (height // rows, width // columns)


def _memory(grids: Floats, masks: Labels, pixels: Pixels, rule: CapiConfig) -> PixelMemory:
    """What is remembered, and the vote that was chosen; raises ValueError where that cannot be."""
    left = []
    for number, (grid, mask) in enumerate(zip(grids, masks, strict=True)):
        key = str(number)
        chosen = pixels.of(mask, (grid.shape[0], grid.shape[1]), key)
        kept = kept_of(torch.from_numpy(grid), *chosen, held_out=key in pixels.held_out)
        left.append({name: array.numpy() for name, array in kept.items()})
    return PixelMemories({WHOLE_BACKBONE: left}, {}, pixels, rule.electorate).of(WHOLE_BACKBONE, DEVICE)


def _labelled(grid: Floats, mask: Labels, voters: PixelMemory, pixels: Pixels) -> Integers:
    """Confusion matrix of one image."""
    given = voters.vote(torch.from_numpy(grid).float().flatten(0, 1))
    return np.asarray(confusion_of(mask, given.view(*grid.shape[:2], -1), pixels))
