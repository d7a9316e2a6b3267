"""The folders of a run."""

import os
import time
from pathlib import Path

from layerboard.benchmark.plan.folders import require_writable


def test_what_killed_runs_left_is_removed(tmp_path: Path) -> None:
    old = time.time() - 2 * 24 * 3600
    left = tmp_path / "features" / "mini-fs" / ".partial-abc"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    os.utime(left, (old, old))
    require_writable(tmp_path / "out", tmp_path)
    assert not left.exists()
