"""Cards on the Hugging Face Hub: the best layers of a backbone as evaluation results.

Of evaluation results two forms are current, and `huggingface_hub` writes and parses both: ``model-index`` in
the front matter of the card, for any dataset, and ``.eval_results/*.yaml`` beside it, for datasets of the Hub
that are registered as benchmarks with tasks of their own.
"""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
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
    return {
        str(name): _checked(str(name), [_eval_result(row) for row in rows.to_dict("records")])
        for name, rows in _trained(board).groupby("backbone", sort=False)
    }


def eval_results(board: Board, benchmarks: Mapping[str, tuple[str, str]]) -> dict[str, dict[str, str]]:
    """The contents of the ``.eval_results/*.yaml`` of each trained backbone, by file name.

    ``benchmarks`` map datasets to ids of Hub benchmarks, ``owner/name``, and tasks, as in the ``eval.yaml``
    there. Raises InputError if a dataset has no scores.
    """
    rows = _trained(board)
    for name in benchmarks:
        if name not in set(rows["dataset"]):
            known = ", ".join(sorted({str(dataset) for dataset in rows["dataset"]}))
            raise InputError(f"there are no scores on the dataset {name!r}; there are some on {known}")
    files: dict[str, dict[str, str]] = {}
    for row in rows[rows["dataset"].isin(list(benchmarks))].to_dict("records"):
        file = f"{row['task']}.{row['dataset']}.{row['protocol']}.yaml"
        files.setdefault(str(row["backbone"]), {})[file] = _entry(row, *benchmarks[str(row["dataset"])])
    return files


def _trained(board: Board) -> pd.DataFrame:
    """The best layers of trained backbones."""
    return board.best[board.best["trained"].astype(bool)]


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


def _entry(row: Mapping[Any, Any], dataset: str, task: str) -> str:
    """One score as the content of a file of ``.eval_results``."""
    try:
        from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml, parse_eval_result_entries
    except ImportError as error:
        raise InputError(
            "the installed huggingface_hub knows no .eval_results; install a newer one, or leave "
            "--benchmarks out"
        ) from error
    features = f"frozen features of layer {row['layer']} ({row['pooling']})"
    entry = EvalResultEntry(
        dataset_id=dataset,
        task_id=task,
        value=round(float(row["value"]), DIGITS),
        date=str(row["date"]),
        notes=f"{features}, {row['task']}, {row['protocol']} protocol",
    )
    text = str(yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False, allow_unicode=True))
    if parse_eval_result_entries(yaml.safe_load(text)) != [entry]:
        raise InputError(f"the Hub would not read the result of {row['backbone']} as it is meant")
    return text
