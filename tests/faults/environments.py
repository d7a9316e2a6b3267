"""Commands in foreign environments: closed and full streams, no home, odd variables, broken libraries."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from tests.faults.trials import Effort, Trial

SECONDS = 60
"""After which an answer is too late."""

LIGHT = (
    *("--version", "--help", "list tasks", "list backbones --json", "list suites", "run --help", "nonsense"),
    *("list backbones mini-dino", "list backbones nothing", "score knn --help", "run -b mini-dnio"),
)
"""Commands that import nothing heavy."""

MIDDLING = (
    *("check --images photos", "check --images nowhere", "show -o nowhere", "leaderboard -o nowhere"),
    *("score knn --features features.npz", "compare mini-fs mini-dino -o nowhere", "recommend -o nowhere"),
    *("export csv -o nowhere --to pages", "merge nowhere nowhere --output pages", "report -o nowhere"),
)
"""Commands that read something, or would."""

HEAVY = ("run --images photos -b mini-random -t knn --no-floor --layers 1 --workers 1 -o out", "check")
"""Commands that import all libraries."""

SHELLS = {
    "stdout closed": "{} >&-",
    "stderr closed": "{} 2>&-",
    "stdin closed": "{} <&-",
    "all closed": "{} <&- >&- 2>&-",
    "no reader": "{} | true",
    "one line read": "{} | head -1",
    "stdout full": "{} >/dev/full",
    "stderr full": "{} 2>/dev/full",
    "both full": "{} >/dev/full 2>&1",
    "few files": "ulimit -n 16; {}",
    "small files": "ulimit -f 8; {}",
    "no core, small stack": "ulimit -s 1024; {}",
    "working folder gone": "mkdir -p gone; cd gone; rmdir ../gone; {}",
    "working folder cannot be written": "cd /proc; {}",
    "background": "{} & wait $!",
    "umask 0777": "umask 0777; {}",
}
"""How a shell starts it."""

VARIABLES = {
    "no home": {"HOME": None},
    "home nowhere": {"HOME": "/nowhere"},
    "home cannot be written": {"HOME": "/proc", "LAYERBOARD_CACHE": None},
    "cache is a file": {"LAYERBOARD_CACHE": "/dev/null/cache"},
    "empty home": {"HOME": "", "LAYERBOARD_CACHE": None},
    "no temporary files": {"TMPDIR": "/nowhere"},
    "ASCII": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    "POSIX": {"LC_ALL": "POSIX", "LANG": "nonsense"},
    "strict ASCII": {"PYTHONIOENCODING": "ascii:strict"},
    "UTF-16": {"PYTHONIOENCODING": "utf-16"},
    "dumb": {"TERM": "dumb"},
    "no terminal": {"TERM": None, "COLUMNS": "1", "LINES": "1"},
    "one column": {"COLUMNS": "1"},
    "no columns": {"COLUMNS": "0"},
    "columns abc": {"COLUMNS": "abc", "LINES": "-1"},
    "colours": {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"},
    "foreign threads": {"OMP_NUM_THREADS": "abc", "MKL_NUM_THREADS": "-1"},
    "warnings are errors": {"PYTHONWARNINGS": "error"},
    "no docstrings": {"PYTHONOPTIMIZE": "2"},
    "no assertions": {"PYTHONOPTIMIZE": "1"},
    "development mode": {"PYTHONDEVMODE": "1"},
    "unbuffered": {"PYTHONUNBUFFERED": "1"},
    "hash seed": {"PYTHONHASHSEED": "0"},
    "no zone": {"TZ": "nonsense/nowhere"},
    "no path": {"PATH": ""},
    "foreign Ray": {"RAY_ADDRESS": "nowhere:1", "RAY_AUTH_MODE": "disabled"},
    "foreign CUDA": {"CUDA_VISIBLE_DEVICES": "99,abc"},
    "Hub offline": {"HF_HUB_OFFLINE": "yes", "HF_HOME": "/proc/hub"},
}
"""What is in the environment, None: absent."""

BREAKS = {
    "torch": "raise ImportError('libtorch_cuda.so: undefined symbol: ncclX')",
    "torchvision": "raise RuntimeError('operator torchvision::nms does not exist')",
    "transformers": "def (",
    "faiss": "raise ModuleNotFoundError('No module named numpy.core', name='numpy.core')",
    "numpy": "1 / 0",
    "pandas": "raise ValueError('numpy.dtype size changed')",
    "PIL": "import no_such_module",
    "scipy": "raise OSError('libopenblas.so.0: cannot open shared object file')",
}
"""Libraries whose import breaks, and how."""


def try_environments(folder: Path, effort: Effort) -> Iterator[Trial]:
    """Start two drawn commands in each environment, a light one and another.

    What is wanted: within a minute, exit code 0, 1 or 2 without a traceback.
    """
    draw = effort.draw()
    _write_inputs(folder)
    environments: list[tuple[str, str, dict[str, str | None]]] = [
        *((name, shell, {}) for name, shell in SHELLS.items()),
        *((name, "{}", variables) for name, variables in VARIABLES.items()),
        *((f"broken {name}", "{}", {"PYTHONPATH": _broken(folder, name)}) for name in BREAKS),
    ]
    kinds = (MIDDLING, MIDDLING, HEAVY)
    cases = [(draw.choice(words), *each) for each in environments for words in (LIGHT, draw.choice(kinds))]
    for words, name, shell, variables in cases[:: effort.every**2]:
        problem = _problem(folder, words, shell, variables)
        yield Trial("commands in foreign environments", f"{words}, {name}", problem)


def _broken(folder: Path, name: str) -> str:
    """A folder in which the import of a library breaks."""
    place = folder / f"broken-{name}"
    (place / name).mkdir(parents=True)
    (place / name / "__init__.py").write_text(BREAKS[name])
    return str(place)


def _write_inputs(folder: Path) -> None:
    """Photos of three classes, with names that are no ASCII, and features."""
    pixels = np.random.default_rng(0)
    for name in ("cat", "Hündin", "猫"):
        (folder / "photos" / name).mkdir(parents=True)
        for number in range(3):
            image = Image.fromarray(pixels.integers(0, 256, (32, 32, 3), np.uint8))
            image.save(folder / "photos" / name / f"{name} {number}.png")
    labels = np.repeat(np.arange(3), 4)
    np.savez(folder / "features.npz", features=pixels.normal(size=(12, 4)).astype("float32"), labels=labels)


def _problem(folder: Path, words: str, shell: str, variables: dict[str, str | None]) -> str:
    """What is wrong with how a command ends; "" for nothing."""
    usual = {**os.environ, "LAYERBOARD_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"} | variables
    command = f"{shlex.quote(sys.executable)} -m layerboard {words}"
    try:
        done = subprocess.run(
            ["/bin/bash", "-c", f"set -o pipefail; {shell.format(command)}"],
            cwd=folder,
            env={name: value for name, value in usual.items() if value is not None},
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end in {SECONDS} seconds"
    said = (done.stdout + done.stderr).replace(b"\0", b"").decode(errors="replace")
    if "Traceback" in said or "Exception ignored" in said:
        return f"a traceback: {said.strip().splitlines()[-1][:150]}"
    return "" if done.returncode in (0, 1, 2) else f"exit code {done.returncode}: {said[-150:]!r}"
