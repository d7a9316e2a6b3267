"""What a run says at its end."""

from pathlib import Path

from benchmark.api import RunSummary
from benchmark.engines.progress import Terminal

MOST_NAMED = 5
"""Images that could not be read and are named one by one."""


def show(summary: RunSummary, report: Terminal) -> int:
    """Print what was done, what is missing and where the tables are; gives the exit code.

    0: done; 1: something failed, the rest is done and kept; 2: all that failed did so for bad input.
    """
    passes, failures = summary.result.passes, summary.failures
    plan, tasks = summary.plan, len(summary.bound.tasks)
    report.say(f"{len(plan.backbones)} backbones, {plan.backbones[0].images:,} images each, {tasks} tasks")
    if passes.images:
        report.say(f"{passes.images:,} images through backbones, and scored, in {passes.seconds:.0f} s")
    else:
        report.say("no image went through a backbone: all features were there")
    for absent in summary.bound.absent:
        report.say(f"left out: {absent}")
    for line in passes.unreadable[:MOST_NAMED]:
        report.say(f"left out: {line}")
    if len(passes.unreadable) > MOST_NAMED:
        report.say(f"left out: {len(passes.unreadable) - MOST_NAMED} further images that cannot be decoded")
    partial = {task.dataset: task.coverage for task in summary.bound.tasks if task.coverage.partial}
    for name, coverage in sorted(partial.items()):
        report.say(f"partial: {name}: {coverage}")
    for failure in failures:
        report.say(f"failed: {failure}")
    for page in summary.pages:
        report.say(f"wrote {_short(page)}")
    if not failures:
        return 0
    return 2 if all(failure.bad_input for failure in failures) else 1


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
