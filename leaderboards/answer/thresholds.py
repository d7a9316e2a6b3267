"""Cosine thresholds of a layer: from which cosine on two images are taken to show the same thing."""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from layerboard.leaderboards.blocks.display import cosine_text, score_text, task_display

PLACE = ("backbone", "layer", "tap", "pooling", "transform")  # fields that identify the vectors of a record
COSINE, RECALL = "cosine at precision ", "recall at precision "  # metrics, followed by the precision
UNKNOWN = "not known for this layer"


def threshold_text(scores: pd.DataFrame, task: str, record: Mapping[Hashable, Any] | pd.Series) -> str:
    """The thresholds of the vectors of a record in words, for each precision with its recall.

    ``scores`` are records of one column by all metrics. A threshold holds for that layer, pooling and
    compression alone: another layer has other cosines. "" for a task without thresholds.
    """
    levels = [name.removeprefix(COSINE) for name in task_display(task).at_best if name.startswith(COSINE)]
    for name in PLACE if levels else ():
        scores = scores[scores[name] == record[name]]
    values = dict(zip(scores["metric"], scores["value"].astype(float), strict=True))
    reasons = dict(zip(scores["metric"], scores["reason"], strict=True))
    texts = []
    for level in levels:
        cosine, recall = values.get(COSINE + level, math.nan), values.get(RECALL + level, math.nan)
        if math.isnan(cosine):
            texts.append(f"for precision {level} {reasons.get(COSINE + level) or UNKNOWN}")
        else:
            texts.append(f"{cosine_text(cosine)} for precision {level} (recall {score_text(recall)} %)")
    return f"cosine threshold: {', '.join(texts)}" if texts else ""
