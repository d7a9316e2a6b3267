"""What a run says at its end."""

from pathlib import Path

import typer

from benchmark.api import RunSummary
from benchmark.cli.show import in_words
from benchmark.engines.progress import Terminal
from benchmark.exchange.answering import answers_of
from leaderboards.display import page_name

MOST_NAMED = 5
"""Images that could not be read and are named one by one."""


def show(summary: RunSummary, report: Terminal) -> int:
    """Print what was done, what is missing and where the tables are; gives the exit code.

    0: done; 1: something failed, the rest is done and kept; 2: all that failed did so for bad input.
    """
    plan, done = summary.plan, summary.done
    backbones, tasks = len(plan.backbones), len(plan.tasks.every)
    images = counted(plan.images, "image") + (" each" if backbones > 1 else "")
    report.say(f"{counted(backbones, 'backbone')}, {images}, {counted(tasks, 'task')}")
    if done.images:
        shown = counted(done.images, "image")
        report.say(f"{shown} through backbones, and scored, in {summary.seconds:.0f} s")
    else:
        report.say("no image went through a backbone: all features were there")
    for absent in plan.tasks.absent:
        report.say(f"left out: {absent}")
    for line in done.unreadable[:MOST_NAMED]:
        report.say(f"left out: {line}")
    if len(done.unreadable) > MOST_NAMED:
        further = counted(len(done.unreadable) - MOST_NAMED, "further image")
        report.say(f"left out: {further} that cannot be decoded")
    partial = {task.dataset: task.coverage for task in plan.tasks.every if task.coverage.partial}
    for name, coverage in sorted(partial.items()):
        report.say(f"partial: {name}: {coverage}")
    for failure in done.failures:
        report.say(f"failed: {failure}")
    for page in summary.pages:
        report.say(f"wrote {_short(page)}")
    _answer(summary)
    if not done.failures:
        return 0
    return 2 if all(failure.bad_input for failure in done.failures) else 1


def _answer(summary: RunSummary) -> None:
    """Print the best of each task, and where more is; on standard output, as what was asked for."""
    found = answers_of(summary.records, summary.suite, summary.ties) if len(summary.records) else None
    if found and found.answers:
        pages = [page for page in summary.pages if page.name == f"{page_name(summary.suite)}.md"]
        where = f"{_short(pages[0])} has every layer" if pages else ""
        typer.echo(f"\n{in_words(found)}\nRead on: {where}; `python -m benchmark show` prints this again.")


def counted(count: int, noun: str) -> str:
    """A count with its noun: ``1 backbone``, ``2 backbones``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
