"""Cards on the Hugging Face Hub: the best layers of a backbone as evaluation results.

They are the ``model-index`` in the front matter of the card, which `huggingface_hub` writes and parses.
"""

import math
from collections.abc import Mapping
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCardData

from layerboard.leaderboards.blocks.display import task_display
from layerboard.leaderboards.board.board import Board
from layerboard.zoo.errors import InputError

TASK_TYPE = "image-feature-extraction"  # Hub task of a frozen backbone
METRICS = {"top-1": "accuracy"}  # metrics with another name on the Hub
DIGITS = 4


def model_indices(board: Board) -> dict[str, str]:
    """The YAML of the ``model-index`` of each trained backbone: its best layer in each primary metric."""
    trained = board.best[board.best["trained"].astype(bool)]
    return {
        str(name): _checked(str(name), [_eval_result(row) for row in rows.to_dict("records")])
        for name, rows in trained.groupby("backbone", sort=False)
    }


def _eval_result(row: Mapping[Any, Any]) -> EvalResult:
    dataset = {"data": row["data"]} if row["data"] else {}
    dataset |= {"partial": row["coverage"]} if row["partial"] else {}
    facts: dict[str, Any] = {"layer": int(row["layer"]), "pooling": str(row["pooling"])}
    if not math.isnan(row["ci_low"]):
        facts["confidence_interval_95"] = [round(float(row[end]), DIGITS) for end in ("ci_low", "ci_high")]
    return EvalResult(
        task_type=TASK_TYPE,
        task_name=task_display(str(row["task"])).title,
        dataset_type=str(row["dataset"]),
        dataset_name=str(row["dataset"]),
        # the Hub puts results of one dataset and configuration together, as if of one task
        dataset_config=", ".join(filter(None, (row["task"], row["protocol"], row["data"]))),
        dataset_split=str(row["split"]),
        dataset_args=dataset or None,
        metric_type=METRICS.get(row["metric"], str(row["metric"])),
        metric_name=f"{row['metric']}, best of {row['depth']} layers, frozen ({row['protocol']} protocol)",
        metric_value=round(float(row["value"]), DIGITS),
        metric_args=facts | {"n": int(row["n"]), "unit": str(row["unit"]), "revision": str(row["revision"])},
    )


def _checked(name: str, results: list[EvalResult]) -> str:
    """The YAML of some results, verified by reading it back with the classes of the Hub."""
    text = f"{ModelCardData(model_name=name, eval_results=results).to_yaml()}\n"
    again = ModelCardData(**yaml.safe_load(text))
    # metrics of one configuration come back together, so the order may change
    if again.model_name != name or sorted(map(repr, again.eval_results or [])) != sorted(map(repr, results)):
        raise InputError(f"the Hub would not read the results of {name} as they are meant")
    return text
