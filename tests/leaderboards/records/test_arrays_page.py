"""The documentation of arrays: its example runs, and what is planted and drawn is named there."""

import re
import subprocess
import sys
from pathlib import Path

from PIL import Image

from tests.leaderboards.planted import arrays, metrics, plant

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "arrays.md"


def test_the_example_draws_a_head(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    plant(tmp_path / "results" / "arrays", "attention-maps", {"mini-dino": "DINO"}, depth=2, heads=2, grid=4)
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "'aaam': (2, 2, 7, 7)" in done.stdout
    with Image.open(tmp_path / "head.png") as drawn:
        assert drawn.size == (300, 300)


def test_every_array_that_is_drawn_is_named_with_its_axes() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in lines if line.startswith("|")]
    named, task = {}, ""
    for first, names, axes in rows:
        task = first.strip("`").split("`")[0] or task
        for name in re.findall(r"`(\w+)`", names):
            named[task, name] = 0 if axes == "none" else len(axes.split(";")[0].split(","))
    for task in metrics():
        for name, array in arrays(task, depth=2, heads=1, grid=2).items():
            key = ("any", name) if name == "block" else (task, name)
            assert named[key] == array.ndim, key
