"""The best layers of a backbone as the evaluation results of a model card on the Hugging Face Hub.

Two forms are current, and `huggingface_hub` writes and parses both: ``model-index`` in the front matter of
the card, for any dataset, and ``.eval_results/*.yaml`` beside it, for datasets of the Hub that are registered
as benchmarks with tasks of their own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import yaml
from huggingface_hub import EvalResult, ModelCardData

from leaderboards.board import Board
from leaderboards.display import task_display
from zoo.errors import InputError

TASK_TYPE = "image-feature-extraction"  # task of the Hub that a frozen backbone does
METRICS = {"top-1": "accuracy"}  # metrics whose name on the Hub is another one
DIGITS = 4


@dataclass(frozen=True, slots=True)
class HubBenchmark:
    """A benchmark of the Hub that a dataset of ours is."""

    dataset: str  # its id, ``owner/name``
    task: str  # its task, as the dataset's ``eval.yaml`` calls it


def model_indices(board: Board) -> dict[str, str]:
    """For each trained backbone the YAML of its ``model-index``: its best layer in each primary metric.

    Raises:
        InputError: `huggingface_hub` does not read it as it was meant.
    """
    return {
        name: _checked(name, [_eval_result(row) for row in rows.to_dict("records")])
        for name, rows in _shown(board).groupby("backbone", sort=False)
        if isinstance(name, str)
    }


def eval_results(board: Board, benchmarks: Mapping[str, HubBenchmark]) -> dict[str, dict[str, str]]:
    """For each trained backbone its ``.eval_results/*.yaml``, of datasets that are benchmarks of the Hub.

    Args:
        board: Its best layers.
        benchmarks: By name of our dataset.

    Returns:
        Content by name of the file, by backbone.

    Raises:
        InputError: The installed `huggingface_hub` is too old for them, or none of the datasets is there.
    """
    rows = _shown(board)
    for name in benchmarks:
        if name not in set(rows["dataset"]):
            known = ", ".join(sorted({str(dataset) for dataset in rows["dataset"]}))
            raise InputError(f"there are no scores on the dataset {name!r}; there are some on {known}")
    files: dict[str, dict[str, str]] = {}
    for row in rows[rows["dataset"].isin(list(benchmarks))].to_dict("records"):
        at = benchmarks[str(row["dataset"])]
        file = f"{row['task']}.{row['dataset']}.{row['protocol']}.yaml"
        files.setdefault(str(row["backbone"]), {})[file] = _entry({str(k): v for k, v in row.items()}, at)
    return files


def _shown(board: Board) -> pd.DataFrame:
    """The best layers of trained backbones, with what the records say of split and units."""
    best = pd.concat([column.best for column in board.columns] or [board.scores])
    ranks = {backbone.name: rank for rank, backbone in enumerate(board.backbones)}
    return best[best["trained"].astype(bool)].sort_values(
        "backbone", key=lambda names: names.map(ranks), kind="stable"
    )


def _eval_result(row: Mapping[Any, Any]) -> EvalResult:
    """One score as the Hub has it."""
    task = task_display(str(row["task"]))
    dataset = {"data": row["data"]} if row["data"] else {}
    if row["partial"]:
        dataset["partial"] = row["coverage"]
    return EvalResult(
        task_type=TASK_TYPE,
        task_name=task.title,
        dataset_type=str(row["dataset"]),
        dataset_name=str(row["dataset"]),
        dataset_split=str(row["split"]),
        dataset_args=dataset or None,
        metric_type=METRICS.get(row["metric"], str(row["metric"])),
        metric_name=f"{row['metric']}, best of {row['depth']} layers, frozen ({row['protocol']} protocol)",
        metric_value=round(float(row["value"]), DIGITS),
        metric_args=_settings(row),
    )


def _settings(row: Mapping[Any, Any]) -> dict[str, Any]:
    """What must be known of a number: its layer, its interval, what it is a mean of."""
    facts: dict[str, Any] = {"layer": int(row["layer"]), "pooling": str(row["pooling"])}
    if not math.isnan(row["ci_low"]):
        facts["confidence_interval_95"] = [round(float(row[end]), DIGITS) for end in ("ci_low", "ci_high")]
    return facts | {"n": int(row["n"]), "unit": str(row["unit"]), "revision": str(row["revision"])}


def _checked(name: str, results: list[EvalResult]) -> str:
    """The YAML of some results, which the Hub's own classes read back as they were meant."""
    text = f"{ModelCardData(model_name=name, eval_results=results).to_yaml()}\n"
    again = ModelCardData(**yaml.safe_load(text))
    # results of one task and dataset come back together, so the order may be another
    if again.model_name != name or sorted(map(repr, again.eval_results or [])) != sorted(map(repr, results)):
        raise InputError(f"the Hub would not read the results of {name} as they are meant")
    return text


def _entry(row: Mapping[str, Any], at: HubBenchmark) -> str:
    """One score as the content of a file of ``.eval_results``."""
    try:
        from huggingface_hub import (
            EvalResultEntry,
            eval_result_entries_to_yaml,
            parse_eval_result_entries,
        )
    except ImportError as error:
        raise InputError(
            "the installed huggingface_hub knows no .eval_results; install a newer one, or leave "
            "--benchmarks out"
        ) from error
    where = f"layer {row['layer']} ({row['pooling']})"
    notes = f"frozen features of {where}, {row['task']}, {row['protocol']} protocol"
    entry = EvalResultEntry(
        dataset_id=at.dataset,
        task_id=at.task,
        value=round(float(row["value"]), DIGITS),
        date=str(row["date"]),
        notes=notes,
    )
    text = str(yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False, allow_unicode=True))
    if parse_eval_result_entries(yaml.safe_load(text)) != [entry]:
        raise InputError(f"the Hub would not read the result of {row['backbone']} as it is meant")
    return text
