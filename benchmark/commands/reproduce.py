"""The command `reproduce`: compares measured scores with published ones."""

import fnmatch
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from layerboard.benchmark.commands.command import command, records_of, rows_of, say, say_json
from layerboard.benchmark.commands.result import table_text
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Option, Plain, Words
from layerboard.benchmark.forms.request import ResultsOptions
from layerboard.zoo.errors import ensure, unknown

if TYPE_CHECKING:
    from layerboard.leaderboards.published.literature import Published


class ReproduceRequest(ResultsOptions):
    """Options of `reproduce`: the published numbers to compare with."""

    backbones: Words = Option((), "Names or patterns ('dino-*') to show.", also="-b", usual="all")
    tasks: Words = Option((), "Tasks to show.", parsers.run_tasks, also="-t", usual="all")
    format: Plain[Literal["table", "csv", "json"]] = Option("table", "A table, or everything as CSV or JSON.")
    all: Plain[bool] = Option(False, "Also show what was not run or is not comparable; needs no run.")


@command("reproduce", ReproduceRequest)
def reproduce_command(request: ReproduceRequest) -> int:
    """Compare measured scores with published ones.

    A published score agrees if it lies within the 95 % interval of the measured one. The exit code is 1 if a
    score does not agree.

    Example: `layerboard reproduce -b 'dino-*' -t knn`
    """
    from layerboard.leaderboards.blocks.csv import csv_text
    from layerboard.leaderboards.findings.reproduce import answered, counts, reproduce
    from layerboard.leaderboards.published.literature import all_published
    from layerboard.leaderboards.sections.published import published_table
    from layerboard.zoo.registry.find import all_specs

    chosen = _chosen(all_published(), request)
    records = records_of(request.output, empty=True, missing=request.all)
    frame = reproduce(records, chosen, {spec.name for spec in all_specs()})
    verdicts = counts(frame)
    if request.format == "csv":
        say(csv_text(frame).removesuffix("\n"))
    elif request.format == "json":
        say_json({"counts": verdicts, "numbers": rows_of(frame)})
    else:
        rows = frame if request.all else answered(frame, chosen, records)
        text = f"{table_text(published_table(rows))}\n" if len(rows) else ""
        say(text or "No published number matches the run; --all lists them.")
    summary = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items() if number)
    say(f"{len(frame)} published numbers: {summary}", err=request.format != "table")
    return 1 if verdicts["off"] else 0


def _chosen(published: "Sequence[Published]", request: ReproduceRequest) -> "tuple[Published, ...]":
    """The published numbers that were asked for; raises InputError for unknown names, or if none is left."""
    chosen = tuple(published)
    for what, names in (("backbone", request.backbones), ("task", request.tasks)):
        fits = fnmatch.fnmatchcase if what == "backbone" else operator.eq
        known = sorted({getattr(number, what) for number in published})
        for name in names:
            if name not in known and not any(fits(each, name) for each in known):
                raise unknown(f"published number of the {what}", name, known)
        if names:
            chosen = tuple(each for each in chosen if any(fits(getattr(each, what), name) for name in names))
    ensure(chosen, "no published number passes all filters; leave one out")
    return chosen
