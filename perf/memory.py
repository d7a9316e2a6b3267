"""Peak memory of a pass in fresh processes: bounded by the batch, not by the layers or the images.

``python -m perf.memory PASS SIZE BATCH BATCHES`` prints the peak of its own process, in MiB.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from perf.networks import noise, random_vit, show
from perf.passes import vectors
from perf.rounds import Setting
from perf.rows import Budget, Row

STATUS = Path("/proc/self/status")


def memory_rows(setting: Setting) -> Iterator[Row]:
    """A pass over the bare forward, and four batches over one."""
    layers = "peak memory of a pass that keeps every layer, over the bare forward"
    batches = "peak memory of a pass over four batches, over one batch"
    if not STATUS.is_file() or setting.device.type != "cpu":
        for what in (layers, batches):
            yield Row(what, None, budget=Budget(1.1), note="peaks are those of a Linux process on a CPU")
        return
    size, batch = ("ViT-S/16", 2) if setting.quick else ("ViT-B/16", setting.batch)
    tries = 1 if setting.quick else 3
    bare, one, four = (
        min(_peak(mode, size, batch, count) for _ in range(tries))  # what the allocator keeps varies
        for mode, count in (("bare", 1), ("pass", 1), ("pass", 4))
    )
    note = f"{size}, batch {batch}; the least of {tries} processes"
    said = "{:,.0f} MiB over {:,.0f} MiB; " + note
    yield Row(layers, one / bare, budget=Budget(1.1), note=said.format(one, bare))
    yield Row(batches, four / one, budget=Budget(1.1), note=said.format(four, one))


def _peak(mode: str, size: str, batch: int, batches: int) -> float:
    words = ["perf.memory", mode, size, str(batch), str(batches)]
    run = subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True, text=True)
    return float(run.stdout)


def _measure(mode: str, size: str, batch: int, batches: int) -> float:
    setting = Setting()
    backbone, pixels = random_vit(size, setting), noise(batch, setting)
    keeps = mode == "pass"
    Path("/proc/self/clear_refs").write_text("5")  # the peak of loading does not count
    for _ in range(batches):
        show(backbone, pixels, [vectors(backbone, batch)] if keeps else [])
    return int(STATUS.read_text().split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    """Print the peak of this process."""
    mode, size, batch, batches = sys.argv[1:]
    print(_measure(mode, size, int(batch), int(batches)))


if __name__ == "__main__":
    main()
