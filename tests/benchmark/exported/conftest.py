"""Scorers as a user calls them."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmark.runs import Cli

Scores = Callable[..., Any]


@pytest.fixture
def says(cli: Cli) -> Cli:
    """What ``score`` says to a command line."""
    return partial(cli, "score")


@pytest.fixture(scope="session")
def printed() -> set[object]:
    """Scorers whose tables were printed; that of every second call would say nothing else."""
    return set()


@pytest.fixture
def scores(says: Cli, printed: set[object]) -> Scores:
    """The JSON object of ``score``, after a table of the same scorer was printed once."""

    def score(*arguments: object) -> Any:
        if arguments[0] not in printed:
            printed.add(arguments[0])
            table = says(*arguments)
            assert table.code == 0, table.err
            assert "protocol: " in table.out
        said = says(*arguments, "--json")
        assert said.code == 0, said.err
        found = json.loads(said.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
        assert found["command"] == f"score {arguments[0]}"
        assert {"protocol", "parameters", "n", "unit", "scale", "scores", "details"} <= set(found)
        return found

    return score


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    """Writes arrays into an .npz file."""

    def write(name: str = "given.npz", **arrays: object) -> Path:
        np.savez(tmp_path / name, **arrays)  # type: ignore[arg-type]
        return tmp_path / name

    return write
