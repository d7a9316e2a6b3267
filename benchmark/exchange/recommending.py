"""What to use, from the records of an output folder: scores, costs and what the registry knows."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from benchmark.exchange.comparison import records_of
from benchmark.exchange.export import chosen
from benchmark.request.recommending import RecommendRequest
from leaderboards.choices.honest import choices
from leaderboards.choices.licences import NOTE
from leaderboards.choices.limits import FACTS, Limits, allowed, candidates_of, exclusions
from leaderboards.choices.picks import Pick, least_loss, picks_of
from leaderboards.choices.possible import Possible, may_be_best, pareto_front
from leaderboards.choices.selection import Column, columns_of
from leaderboards.display import score_text
from leaderboards.recommendation import Recommendation
from leaderboards.scores.costs import find_device, layer_costs, without_cost
from tasks.registry import TASKS
from zoo.errors import InputError, unknown
from zoo.registry import all_specs
from zoo.spec import BackboneSpec, Layer, entry_name, split_size

Candidates = Mapping[Column, pd.DataFrame]


def recommended(request: RecommendRequest) -> Recommendation:
    """The backbones and layers that may be the best in every task within the limits, cheapest first.

    Raises:
        InputError: There are no records, no such task, backbone or device, no times where they are limited,
            or nothing within the limits.
    """
    records = chosen(records_of(request.output), request.backbones)
    columns = _columns(records, request.tasks)
    device = find_device(records, request.device)
    costs, facts = layer_costs(records, device), _facts(records)
    every = {column: candidates_of(records, column, costs, facts) for column in columns}
    command = _measuring(every, request.output)
    if command and request.max_ms is not None and all(rows["ms"].isna().all() for rows in every.values()):
        raise InputError(f"--max-ms needs times, and none were measured; `{command}` measures them")
    limits = Limits(
        request.max_ms, request.max_dim, request.max_parameters, commercial=request.licence == "commercial"
    )
    within = {column: _within(column, rows, limits) for column, rows in every.items()}
    items = request.output / "items"
    possible = {column: may_be_best(rows, column, items) for column, rows in within.items()}
    picks = picks_of(possible) or tuple(filter(None, [least_loss(within)]))
    if not picks:
        raise InputError("no backbone within the limits has a score in every task; name fewer with --task")
    return Recommendation(
        picks,
        possible,
        {column: pareto_front(rows) for column, rows in within.items()},
        device or "",
        (*_limited(every, limits), *_said(records, possible, device, command), *_warnings(limits, columns)),
        tuple(code_of(pick) for pick in picks),
    )


def _columns(records: pd.DataFrame, tasks: Sequence[str]) -> tuple[Column, ...]:
    """The columns of some tasks, or of all; raises InputError for a task that has none."""
    columns = columns_of(records)
    names = list(dict.fromkeys(column.task for column in columns))
    for task in tasks:
        if task not in names:
            raise unknown("task", task, names)
    found = tuple(column for column in columns if not tasks or column.task in tasks)
    if not found:
        raise InputError("no backbone has a score of a task that ranks; `python -m benchmark run` gives some")
    return found


def _facts(records: pd.DataFrame) -> pd.DataFrame:
    """What the registry knows of the backbones of some records, columns `FACTS`."""
    known = {str(name): spec for name in set(records["backbone"]) if (spec := _spec(str(name)))}
    rows = [
        (name, index, spec.stage_of(Layer(index)).width, spec.parameters, spec.licence)
        for name, spec in sorted(known.items())
        for index in range(1, spec.depth + 1)
    ]
    return pd.DataFrame(rows, columns=FACTS)


def _within(column: Column, rows: pd.DataFrame, limits: Limits) -> pd.DataFrame:
    """The candidates within the limits; where there are none, InputError says what each limit leaves out."""
    if rows.empty:
        raise InputError(f"no backbone has a score in {column.heading}")
    left = allowed(rows, limits)
    if left.empty:
        raise InputError(
            f"nothing is within the limits for {column.heading}: {'; '.join(exclusions(rows, limits))}"
        )
    return left


def _measuring(every: Candidates, output: Path) -> str:
    """The command that measures what no cost is known of; "" where nothing lacks."""
    names = sorted({name for rows in every.values() for name in without_cost(rows)})
    if not names:
        return ""
    words = ["--tasks", "cost", "--backbones", *names, "-o", str(output)]
    return f"python -m benchmark run {shlex.join(words)}"


def _limited(every: Candidates, limits: Limits) -> Iterator[str]:
    """What the limits leave out, column by column."""
    for column, rows in every.items():
        for sentence in exclusions(rows, limits):
            yield f"{column.heading}: {sentence}." if len(every) > 1 else f"{sentence}."


def _said(
    records: pd.DataFrame, possible: Mapping[Column, Possible], device: str | None, command: str
) -> Iterator[str]:
    """On what the recommendation rests."""
    if device:
        yield f"Milliseconds are of one image on {device}, up to the layer."
    if command:
        lacking = "Some times are not known" if device else "No times are known: sorted by weights and depth"
        yield f"{lacking}; `{command}` measures them."
    for column, one in possible.items():
        name, choice = str(one.best["backbone"]), choices(records, column).get(str(one.best["backbone"]))
        if choice is not None:
            yield (
                f"{column.heading}: the best layer of {name} was found on what scores it, which is "
                f"optimistic; chosen on one half and scored on the other it has {score_text(choice.score)}."
            )
        if one.untested:
            places = ", ".join(f"{backbone} layer {layer}" for backbone, layer in one.untested)
            yield f"{column.heading}: not tested against the best, for want of the same items: {places}."


def _warnings(limits: Limits, columns: Sequence[Column]) -> Iterator[str]:
    if len(columns) > 1:
        yield f"What may be the best is said with 95 % for each of the {len(columns)} columns by itself."
    if any(column.partial for column in columns):
        yield "†: on a part of the dataset."
    if limits.commercial:
        yield NOTE


def code_of(pick: Pick) -> str:
    """Lines of Python that load a pick, cut after its layers, and give the vectors of ``images``."""
    calls: dict[str, list[Column]] = {}
    for column, row in pick.rows.items():
        calls.setdefault(_call(pick.backbone, column, row), []).append(column)
    lines = ["import benchmark", ""]
    for number, (call, columns) in enumerate(calls.items(), start=1):
        ending = f"_{number}" if len(calls) > 1 else ""
        row = pick.rows[columns[0]]
        what = "images rows columns" if row["pooling"] == "grid" else "images"
        size = "" if pd.isna(row["dim"]) else f" {row['dim']:.0f}"
        named = ", ".join(dict.fromkeys(column.task for column in columns))
        lines += [
            f"encode{ending} = {call}  # for {named}",
            f"vectors{ending} = encode{ending}(images)  # images of Pillow to float32 [{what}{size}]",
        ]
    return "\n".join(lines)


def _call(name: str, column: Column, row: pd.Series) -> str:
    """The call that loads one layer as the task showed images to it."""
    entry, size = split_size(name)
    words = [repr(entry), f"layer={row['layer']}", f"pooling={str(row['pooling'])!r}"]
    known = any(task.name == column.task for task in TASKS)  # not those of somebody's own
    if known and (row["pooling"] == "grid" or column.task == "retrieval"):
        words.append(f"task={column.task!r}")
    if column.protocol != "standard":
        words.append(f"protocol={column.protocol!r}")
    spec = _spec(name)
    if size or (spec is not None and spec.input_size != int(row["input_size"])):
        words.append(f"input_size={row['input_size']}")
    return f"benchmark.load({', '.join(words)})".replace("'", '"')


def _spec(name: str) -> BackboneSpec | None:
    """The entry of a backbone, whatever the input size in its name; None where the registry has none."""
    return next((spec for spec in all_specs() if spec.name == entry_name(name)), None)
