"""Peak memory of fresh processes: that of a pass is bounded by the batch, not by layers or images.

``python -m perf.memory MODULE:FUNCTION WORD ...`` prints the peak in MiB of the work that the function
returns.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from layerboard.zoo.references import find_object
from perf.measuring import Budget, Row, Setting
from perf.networks import noise, random_network, show_batch
from perf.passes import vector_collector

STATUS = Path("/proc/self/status")
BUDGET = Budget(1.1)


def peak(work: str, *words: object) -> float:
    """Peak memory in MiB of a process that runs ``work``.

    The work is the function without arguments that ``module:function`` returns, called with the words as
    text.
    """
    command = [sys.executable, "-m", "perf.memory", work, *map(str, words)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def memory_rows(setting: Setting) -> Iterator[Row]:
    """A pass against the bare forward pass, and four batches against one."""
    layers = "peak memory of a pass that keeps every layer, over the bare forward"
    batches = "peak memory of a pass over four batches, over one batch"
    if setting.device.type != "cpu" or not STATUS.is_file():
        note = "peaks are those of a Linux process on a CPU"
        yield from (Row(name, None, budget=BUDGET, note=note) for name in (layers, batches))
        return
    size, batch = ("ViT-S/16", 2) if setting.quick else ("ViT-B/16", setting.batch)
    tries = 1 if setting.quick else 3
    bare, single, four = (
        min(peak("perf.memory:passes", mode, size, batch, count) for _ in range(tries))  # allocators vary
        for mode, count in (("bare", 1), ("pass", 1), ("pass", 4))
    )
    note = f"{size}, batch {batch}; the least of {tries} processes"
    figures = "{:,.0f} MiB over {:,.0f} MiB; " + note
    yield Row(layers, single / bare, budget=BUDGET, note=figures.format(single, bare))
    yield Row(batches, four / single, budget=BUDGET, note=figures.format(four, single))


def passes(mode: str, size: str, batch: str, batches: str) -> Callable[[], None]:
    """A pass over some batches that keeps every layer's vectors, or nothing (mode ``bare``)."""
    setting, images = Setting(), int(batch)
    backbone, pixels = random_network(size, setting), noise(images, setting)

    def work() -> None:
        for _ in range(int(batches)):
            show_batch(backbone, pixels, [vector_collector(backbone, images)] if mode == "pass" else [])

    return work


def main() -> None:
    """Print the peak of this process."""
    reference, *words = sys.argv[1:]
    prepare = find_object(reference)
    assert callable(prepare)
    work = prepare(*words)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of loading does not count
    work()
    print(int(STATUS.read_text().split("VmHWM:")[1].split()[0]) / 1024)


if __name__ == "__main__":
    main()
