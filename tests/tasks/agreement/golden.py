"""Reads the reference cases of ``tests/reference``."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.reference import inputs, recipes

FOLDER = Path(__file__).parents[2] / "reference"


def cases(name: str) -> dict[str, Any]:
    """Cases of a reference file by name."""
    return {case["name"]: case for case in json.loads((FOLDER / f"{name}.json").read_text())["cases"]}


def build(case: dict[str, Any], module: Any = None) -> dict[str, NDArray[Any]]:
    """Input arrays of a case by a module of ``tests.reference``, checked against their digests."""
    arrays: dict[str, NDArray[Any]] = module.build(case) if module else inputs.build(case, str(FOLDER))
    assert {key: recipes.digest(array) for key, array in arrays.items()} == case["inputs"]
    return arrays


def digest(array: NDArray[np.uint8]) -> str:
    """SHA-256 of an array's bytes."""
    return str(recipes.digest(array)["sha256"])
