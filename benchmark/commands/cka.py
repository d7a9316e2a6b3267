"""CKA of arrays, or of the layers of backbones that were run: `layerboard.cka`."""

import math
from dataclasses import KW_ONLY, dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from layerboard.benchmark.commands.command import drawn, records_of, require_run
from layerboard.benchmark.commands.result import Result
from layerboard.benchmark.forms.option import Form, OnePath, Option, Plain, called_with
from layerboard.zoo.errors import InputError, ensure, require_known, shortened
from layerboard.zoo.spec import Layer

if TYPE_CHECKING:
    import pandas as pd

    from layerboard.benchmark.exported.arrays import Array

CkaEstimator = Literal["unbiased", "biased", "paper"]

POOLINGS = ("cls", "mean", "patch")  # poolings that a run compares; the first one available is the default


class CkaCall(Form, kw_only=False):
    """Options of `layerboard.cka`."""

    first: Plain[Any] = Option(..., "An array [samples ...], an .npy file, or a backbone that was run.")
    second: Plain[Any] = Option(..., "Another one, of the same kind.")
    _: KW_ONLY
    output: OnePath = Option("results", "For backbones: output folder of their run.")
    dataset: Plain[str | None] = Option(None, "For backbones: the dataset.", usual="the only one there is")
    pooling: Plain[str | None] = Option(
        None, "For backbones: cls, mean or patch.", usual="the first of these that was compared"
    )
    estimator: Plain[CkaEstimator] = Option("unbiased", "For arrays: HSIC estimator.")
    batch_size: Plain[int | None] = Option(None, "For arrays: samples per batch.", least=4, usual="all")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Similarity(Result):
    """CKA of two representations, or of all layers of two backbones."""

    matrix: "pd.DataFrame"  # from 0 to 1; one row per layer of the first, one column per layer of the second

    def __float__(self) -> float:
        if self.matrix.size != 1:
            raise TypeError(f"this is CKA of {self.matrix.size} pairs of layers, not a number; see matrix")
        return float(self.matrix.to_numpy(dtype=float)[0, 0])


@called_with(CkaCall)
def cka(call: CkaCall) -> Similarity:
    """Compare two representations, or all layers of two backbones, by centred kernel alignment (CKA).

    Arrays must have the same samples in the same order; their CKA is computed here in float64 (Kornblith et
    al., arXiv:1905.00414; by default with the unbiased estimator of HSIC). CKA of backbones is read from a
    run of the task ``cka``. ``matrix`` has CKA from 0 to 1; ``float(result)`` is the number for two arrays;
    ``frame`` has one row per pair.

    Example:
        >>> import layerboard
        >>> import numpy as np
        >>> values = np.random.default_rng(0).standard_normal((50, 8))
        >>> round(float(layerboard.cka(values, 3 * values + 1)), 6)
        1.0
        >>> layerboard.cka("mini-dino", "mini-resnet", output="results").matrix.shape
        (13, 12)
    """
    first, second = _backbone(call.first), _backbone(call.second)
    if first is None and second is None:
        return _of_arrays(call)
    if first is None or second is None:
        raise InputError(
            "cka takes two arrays (or .npy files), or the names of two backbones; found "
            f"{shortened(call.first)} and {shortened(call.second)}"
        )
    return _of_backbones(call, first, second)


def _backbone(given: Any) -> str | None:  # noqa: ANN401  # a network, a name or an array of any library
    """The name of a backbone; None for an array or an .npy file."""
    if hasattr(given, "spec"):
        return str(given.spec.name)
    return given if isinstance(given, str) and Path(given).suffix not in (".npy", ".npz") else None


def _of_arrays(call: CkaCall) -> Similarity:
    import pandas as pd

    from layerboard.benchmark.exported.cka import compare_arrays

    given = {"the first array": call.first, "the second array": call.second}
    names = [str(each) if isinstance(each, str | Path) else name for name, each in given.items()]
    arrays = list(map(_array, given.values(), names))
    matrix, _, used = compare_arrays(arrays, names, call.estimator, call.batch_size)
    if math.isnan(value := float(matrix[0, 1])):
        raise InputError(f"within batches {names[0]} or {names[1]} does not vary")
    row = {"first": names[0], "second": names[1], "samples": used, "cka": value}
    table = pd.DataFrame([[value]], index=[names[0]], columns=[names[1]])
    return _similarity(f"CKA ({call.estimator}) of {used:,} samples", pd.DataFrame([row]), table)


def _similarity(title: str, frame: "pd.DataFrame", matrix: "pd.DataFrame") -> Similarity:
    table = matrix.map("{:.3f}".format).rename_axis(None, axis="columns").reset_index(names="CKA")
    return Similarity(title=title, frame=frame, table=table, matrix=matrix)


def _array(given: Any, name: str) -> "Array":  # noqa: ANN401  # arrays of any library
    import numpy as np

    from layerboard.benchmark.exported.arrays import read_array

    if isinstance(given, str | Path):
        return read_array(Path(given), mapped=True)
    given = given.detach().cpu() if hasattr(given, "detach") else given
    try:
        array: Array = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is none: {error}") from error
    if array.dtype == object:
        raise InputError(f"{name} should hold numbers; found Python objects, such as {shortened(given)}")
    return array


def _of_backbones(call: CkaCall, first: str, second: str) -> Similarity:
    """CKA that a run measured between two backbones; rows are layers of the first, in forward order."""
    import pandas as pd

    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.board.frames import latest

    rows = latest(_compared(call.output, first, second))
    rows = rows[rows["dataset"] == call.dataset] if call.dataset is not None else rows
    data = sorted(set(zip(rows["dataset"], rows["data"], rows["protocol"], strict=True)))
    if len(data) != 1:
        names = ", ".join(" ".join(each) for each in data) or f"none called {call.dataset}"
        raise InputError(f"{first} and {second} were compared on these: {names}; say which one by dataset=")
    poolings = sorted(set(rows["pooling"]))
    pooling = call.pooling or next(each for each in (*POOLINGS, *poolings) if each in poolings)
    require_known("compared pooling", [pooling], poolings)
    rows = rows[rows["pooling"] == pooling]
    sides = {"layer": "tap", "other_layer": "other_tap"}.items()
    layers = {name: list(map(Layer, map(int, rows[name]), rows[tap])) for name, tap in sides}
    by_place = attrgetter("place")
    frame = pd.DataFrame({**layers, "cka": rows["value"].astype(float).tolist()})
    frame = frame.sort_values([*layers], key=lambda column: column.map(by_place), ignore_index=True)
    matrix = frame.pivot_table(index="layer", columns="other_layer", values="cka")
    order, other_order = (sorted(axis, key=by_place) for axis in (matrix.index, matrix.columns))
    similarity = _similarity(
        f"CKA of {first} (rows) and {second} (columns), {pooling}",
        frame.assign(**{name: frame[name].map(str) for name in layers}),
        matrix.loc[order, other_order].rename(index=str, columns=str),
    )
    return replace(similarity, draw=drawn(Board.of(rows), ["cka-*"]))


def _compared(output: Path, first: str, second: str) -> "pd.DataFrame":
    """The records of the comparison of two backbones, in whichever order the run named them."""
    from layerboard.leaderboards.board.frames import between
    from layerboard.leaderboards.records.key import COMPARISON_TASK

    records = records_of(output)
    pairs = records[(records["task"] == COMPARISON_TASK) & records["value"].notna()]
    known = sorted({*pairs["backbone"], *pairs["other"]})
    ensure(known, f"no run of the task {COMPARISON_TASK} is in {output}; run it with --tasks cka")
    require_run("backbone", (first, second), sorted(set(records["backbone"])), output)
    require_known("compared backbone", (first, second), known)
    compared = between(pairs, first, second)
    ensure(not compared.empty, f"{first} and {second} were not compared with each other; run them together")
    return compared
