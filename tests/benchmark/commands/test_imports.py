"""Help, lists, wrong names and what reads an output folder wait for no library that takes seconds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import layerboard
from tests.benchmark.conftest import BACKBONES, Whole, copy_results

ALWAYS = ["torch", "transformers", "faiss", "ray"]
FRAMES = [*ALWAYS, "pandas", "sklearn"]
ARRAYS = [*FRAMES, "numpy", "PIL", "huggingface_hub"]
"""What may not be imported yet: by nothing that reads results, by no wrong name, by no help."""

FUNCTIONS = """
import json, sys
def tell(what, heavy):
    print("ended", json.dumps([what, sorted({*heavy} & {*sys.modules})]))
import layerboard
tell("package", arrays)
from layerboard.benchmark.forms.request import Request
Request("mini-fs", ["knn", "davis"], output="out")
tell("request", arrays)
import layerboard.benchmark.commands.score
tell("options of score", arrays)
from layerboard.benchmark.commands.list import BackboneFilters, brief, facts
[(brief(spec), facts(spec)) for spec in BackboneFilters().select]
tell("facts", arrays)
"""

COMMANDS = """
import typer
from layerboard.benchmark.commands.app import main
def first(line, err):
    print("said", line)
    sys.exit()
for line, code, heavy in lines:
    sys.argv, echo = ["layerboard", *line], typer.echo
    try:
        typer.echo = first if line[:2] == ["run", "--data"] else echo
        main()
    except SystemExit as stop:
        typer.echo = echo
        assert (stop.code or 0) == code, (line, stop.code)
        tell(" ".join(line), heavy)
    if line == lines[-7][0]:
        from layerboard.leaderboards.charts import engine
        engine.render_chart = lambda *_: '<svg xmlns="http://www.w3.org/2000/svg"></svg>'
"""
"""Of the first line that a run says; charts are not drawn: that imports nothing, and takes long."""


@pytest.mark.slow  # a process of its own imports torch
def test_what_is_heavy_is_imported_by_what_needs_it(whole: Whole, tmp_path: Path) -> None:
    out = str(copy_results(whole, tmp_path / "out", "knn", "spair", "cka"))
    light = [["--help"], ["list", "backbones", "--json"], ["list", "tasks", "--json"]]
    light += [["run", "--data", "here", "-b", "mini-fs", "-t", "knn", "davis"]]
    wrong = [
        *(["run", "-t", "knm"], ["run", "-b", "mini-dnio"], ["run", "--suite", "minni"]),
        *(["run", "-b", "mini-fs", "--layers", "99"], ["run", "--protocol", "papre"]),
        *(["features", "-b", "mini-fs", "--layers", "99"], ["run", "--poolings", "gem"]),
        *(["look", "photos", "-b", "mini-dnio"], ["export", "onnx", "mini-dnio"]),
    ]
    reading = [
        *(["show", "-o", out], ["recommend", "-o", out], ["compare", *BACKBONES, "-o", out]),
        *(["reproduce", "-o", out], ["leaderboard", "-o", out, "--tables", "tables"]),
        ["report", "-o", out, "--to", "report"],
    ]
    lines = [(line, 0, ARRAYS) for line in light]
    lines += [(["list", "suites", "--json"], 0, FRAMES), *((line, 2, FRAMES) for line in wrong)]
    lines += [(line, 0, ALWAYS) for line in reading]
    (tmp_path / "photos").mkdir()
    code = f"arrays, lines = {ARRAYS}, {lines}\n{FUNCTIONS}{COMMANDS}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = [line.partition(" ") for line in done.stdout.splitlines()]
    ends = [json.loads(rest) for word, _, rest in told if word == "ended"]
    every = ["package", "request", "options of score", "facts", *(" ".join(line) for line, *_ in lines)]
    assert ends == [[what, []] for what in every]
    said = f"layerboard {layerboard.__version__}: suite standard on here; mini-fs; knn, davis"
    assert f"said {said}" in done.stdout.splitlines()
    assert "knn top-1" in done.stdout


def test_a_name_that_is_not_there_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'LayerEncodr'"):
        layerboard.LayerEncodr  # noqa: B018
