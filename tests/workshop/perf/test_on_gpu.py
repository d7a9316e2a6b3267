"""The steps that a machine with a graphics card is asked."""

import json
import sys
from pathlib import Path

import pytest
import torch

from workshop.perf import on_gpu
from workshop.perf.__main__ import main as perf
from workshop.perf.on_gpu import main, steps


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


@pytest.mark.slow
def test_each_step_is_run_and_its_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = {
        "fine": (60, (python("print(1)"), python("print(2)"))),
        "broken": (60, (python("raise SystemExit(3)"), python("print('never')"))),
        "slow": (1, (python("import time; time.sleep(60)"),)),
    }
    monkeypatch.setattr(on_gpu, "steps", lambda output, batch: planned)
    assert main(["--output", str(tmp_path)]) == 1
    ended = json.loads((tmp_path / "summary.json").read_text())
    assert [(one["step"], one["code"]) for one in ended] == [("fine", 0), ("broken", 3), ("slow", None)]
    assert (tmp_path / "fine.log").read_text().split() == ["1", "2"]
    assert (tmp_path / "broken.log").read_text() == ""
    assert main(["--output", str(tmp_path), "slow"]) == 0


def test_unknown_steps_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--output", str(tmp_path), "mine"])
    assert "there is no step mine" in capsys.readouterr().err


def test_the_options_of_its_commands_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only where there is a card do they begin to work."""
    every = [words for _, commands in steps(tmp_path, 8).values() for words in commands]
    assert {words[2] for words in every} == {"pytest", "workshop.perf", "layerboard", "workshop.pretrain"}
    if not torch.cuda.is_available():
        (budgets,) = [words[3:] for words in every if words[2] == "workshop.perf"]
        assert perf(budgets) == 2
        assert "this machine has 0 CUDA devices" in capsys.readouterr().err
