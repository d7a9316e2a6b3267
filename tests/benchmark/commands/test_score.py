"""The options of ``score``: numbers that decide a score belong to the protocols."""

import subprocess
import sys
from typing import Any

import pytest
from typer.main import get_command

from layerboard.benchmark.commands.app import app

COMMANDS: dict[str, Any] = vars(get_command(app))["commands"]["score"].commands


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_has_a_number_of_its_own(name: str) -> None:
    numbers = {
        one.name: one.default
        for one in COMMANDS[name].params
        if isinstance(one.default, int | float | tuple | list) and not isinstance(one.default, bool)
    }
    assert not numbers


def test_its_options_are_known_without_a_heavy_library() -> None:
    heavy = "{'numpy', 'torch'}"
    code = f"import sys, benchmark.commands.score; print({heavy} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
