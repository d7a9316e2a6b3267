"""Workflows, actions and the image run what was reviewed, with no more rights than they need."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = [*(ROOT / ".github" / "workflows").glob("*.yml"), *(ROOT / ".github" / "actions").rglob("*.yml")]
STUB = """#!/bin/sh
for argument in "$@"; do printf '%s|' "$argument"; done
echo
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_actions_are_pinned_to_commits_and_say_their_version(path: Path) -> None:
    lines = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


@pytest.mark.skipif(os.name == "nt", reason="the action runs bash")
def test_the_guard_takes_its_inputs_as_values_alone(tmp_path: Path) -> None:
    action = yaml.safe_load(
        (ROOT / ".github/actions/layerboard-guard/action.yml").read_text(encoding="utf-8")
    )
    (script,) = (step["run"] for step in action["runs"]["steps"] if "BACKBONE" in step.get("env", {}))
    (tmp_path / "layerboard").write_text(STUB, encoding="utf-8")
    (tmp_path / "layerboard").chmod(0o755)
    inputs = {
        "BACKBONE": "-o/etc",
        "TASKS": "knn * --data",
        "IMAGES": "-i",
        "BASELINE": "--",
        "TOLERANCE": "-1",
    }
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["bash", "-e", "-c", script]
    done = subprocess.run(
        command, cwd=tmp_path, env=path | inputs, capture_output=True, text=True, check=True
    )
    run, check = done.stdout.splitlines()
    assert run.startswith("run|--backbones=-o/etc|--tasks=knn|--tasks=*|--tasks=--data|--images=-i|-o|")
    assert "|--baseline=--|" in check
    assert check.endswith("|--backbones=-o/etc|--tolerance=-1|")


def test_the_image_does_not_run_as_root() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users[-1:] not in ([], ["root"], ["0"])
