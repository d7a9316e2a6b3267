"""CKA of arrays that anybody has, and of the layers of backbones that were run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.exchange.comparison import records_of
from benchmark.request.calls import CkaCall
from benchmark.scores.exported.arrays import Array, read_array
from benchmark.scores.exported.cka import compare_arrays
from benchmark.scores.exported.options import Estimator
from leaderboards.choices.selection import newest
from leaderboards.display import COMPARISON_TASK
from zoo.errors import InputError, shortened, unknown
from zoo.spec import Layer

POOLINGS = ("cls", "mean", "patch")
"""Representations that a run compares, the first of them that is there if none is named."""


@dataclass(frozen=True, slots=True)
class Alike:
    """How alike representations are.

    Attributes:
        title: What was compared, in a line.
        matrix: CKA from 0 to 1, a row for each of the first, a column for each of the second.
        frame: One row a pair.
        notes: What is missing.
    """

    title: str
    matrix: pd.DataFrame
    frame: pd.DataFrame
    notes: tuple[str, ...] = ()


def similarity(call: CkaCall) -> Alike:
    """CKA of two arrays, two files or two backbones.

    Raises:
        InputError: They are of two kinds, something about the arrays is wrong, or no run has compared the
            backbones.
    """
    given = (call.first, call.second)
    kinds = {_is_array(one) for one in given}
    if len(kinds) > 1:
        raise InputError(
            "cka takes two arrays (or .npy files), or the names of two backbones; found "
            f"{shortened(given[0])} and {shortened(given[1])}"
        )
    return _of_arrays(call, given) if kinds.pop() else _of_backbones(call, *map(_name, given))


def _is_array(given: object) -> bool:
    """Whether something is an array or a file of one; all other words are names of backbones."""
    if isinstance(given, str | Path):
        return Path(given).suffix in (".npy", ".npz") or isinstance(given, Path)
    return not hasattr(given, "spec")


def _name(given: Any) -> str:  # noqa: ANN401  # a name or a network
    return given if isinstance(given, str) else str(given.spec.name)


def _of_arrays(call: CkaCall, given: Sequence[Any]) -> Alike:
    places = zip(given, ("first", "second"), strict=True)
    names = [str(one) if isinstance(one, str | Path) else f"the {place} array" for one, place in places]
    arrays = [_array(one, name) for one, name in zip(given, names, strict=True)]
    found = compare_arrays(arrays, names, Estimator(call.estimator), call.batch_size)
    if not found.matrix.defined[0, 1]:
        raise InputError(f"within batches {names[0]} or {names[1]} does not vary")
    value = float(found.matrix.value[0, 1])
    row = {"first": names[0], "second": names[1], "samples": found.used, "cka": value}
    return Alike(
        f"CKA ({call.estimator}) of {found.used:,} samples",
        pd.DataFrame([[value]], index=[names[0]], columns=[names[1]]),
        pd.DataFrame([row]),
    )


def _array(given: Any, name: str) -> Array:  # noqa: ANN401  # arrays of any library
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


def _of_backbones(call: CkaCall, first: str, second: str) -> Alike:
    """What a run has measured of two backbones, the first one's layers as rows."""
    records = records_of(call.output)
    pairs = records[(records["task"] == COMPARISON_TASK) & records["value"].notna()]
    known = sorted({*pairs["backbone"], *pairs["other"]})
    if not known:
        raise InputError(f"no run of the task {COMPARISON_TASK} is in {call.output}; run it with --tasks cka")
    for name in (first, second):
        if name not in known:
            raise unknown("compared backbone", name, known)
    straight = pairs[(pairs["backbone"] == first) & (pairs["other"] == second)]
    turned = pairs[(pairs["backbone"] == second) & (pairs["other"] == first)]
    sides = {"backbone": "other", "layer": "other_layer", "tap": "other_tap"}
    swap = sides | {new: old for old, new in sides.items()}
    both = [part for part in (straight, turned.rename(columns=swap)[pairs.columns]) if len(part)]
    if not both:
        raise InputError(f"{first} and {second} were not compared with each other; run them together")
    found = newest(pd.concat(both, ignore_index=True))
    found = found[found["dataset"] == call.dataset] if call.dataset is not None else found
    places = sorted(set(zip(found["dataset"], found["data"], found["protocol"], strict=True)))
    if len(places) != 1:
        names = ", ".join(" ".join(place) for place in places) or f"none called {call.dataset}"
        raise InputError(f"{first} and {second} were compared on these: {names}; say which one by dataset=")
    poolings = set(found["pooling"])
    if call.pooling is not None and call.pooling not in poolings:
        raise unknown("compared pooling", call.pooling, sorted(poolings))
    pooling = call.pooling or next(one for one in (*POOLINGS, *sorted(poolings)) if one in poolings)
    found = found[found["pooling"] == pooling]
    return _matrix(found, f"CKA of {first} (rows) and {second} (columns), {pooling}")


def _matrix(found: pd.DataFrame, title: str) -> Alike:
    """Layers of both in the order of a forward."""
    frame = pd.DataFrame(
        {
            "layer": _layers(found, ""),
            "other_layer": _layers(found, "other_"),
            "cka": found["value"].astype(float).tolist(),
        }
    ).sort_values(["layer", "other_layer"], key=lambda layers: layers.map(_place), ignore_index=True)
    matrix = frame.pivot_table(index="layer", columns="other_layer", values="cka")
    rows, columns = (sorted(layers, key=_place) for layers in (matrix.index, matrix.columns))
    words = frame.assign(layer=frame["layer"].map(str), other_layer=frame["other_layer"].map(str))
    return Alike(title, matrix.loc[rows, columns].rename(index=str, columns=str), words)


def _layers(found: pd.DataFrame, side: str) -> list[Layer]:
    places = zip(found[f"{side}layer"], found[f"{side}tap"], strict=True)
    return [Layer(int(index), tap) for index, tap in places]


def _place(layer: Layer) -> tuple[object, ...]:
    return layer.place
