"""Peak memory of fresh processes: that of a pass is bounded by the batch, not by layers or images.

``python -m workshop.perf.memory MODE SIZE BATCH BATCHES`` prints the peak in MiB of a pass over so many
batches of noise, which keeps every layer's vectors or, in mode ``bare``, nothing.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from workshop.perf.measuring import Budget, Row, Setting
from workshop.perf.networks import noise, random_network, show_batch
from workshop.perf.passes import vector_collector

STATUS = Path("/proc/self/status")
BUDGET = Budget(1.1)


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

    def peak(mode: str, count: int) -> float:
        command = [sys.executable, "-m", "workshop.perf.memory", mode, size, str(batch), str(count)]
        ended = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(tries)]
        return min(float(process.stdout) for process in ended)  # allocators vary

    bare, single, four = peak("bare", 1), peak("pass", 1), peak("pass", 4)
    note = f"{size}, batch {batch}; the least of {tries} processes"
    figures = "{:,.0f} MiB over {:,.0f} MiB; " + note
    yield Row(layers, single / bare, budget=BUDGET, note=figures.format(single, bare))
    yield Row(batches, four / single, budget=BUDGET, note=figures.format(four, single))


def forget_peak() -> float:
    """Let this process's peak memory begin anew; returns what it holds, in MiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def peak_memory() -> float:
    """Most memory of this process since `forget_peak`, in MiB."""
    return int(STATUS.read_text().split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    """Print the peak of this process."""
    mode, size, batch, batches = sys.argv[1:]
    setting, images = Setting(), int(batch)
    backbone, pixels = random_network(size, setting), noise(images, setting)
    forget_peak()  # that of loading
    for _ in range(int(batches)):
        show_batch(backbone, pixels, [vector_collector(backbone, images)] if mode == "pass" else [])
    print(peak_memory())


if __name__ == "__main__":
    main()
