"""Recommend backbones and layers from an output folder: the command `recommend` and `layerboard.recommend`.

Scores, costs and facts of the registry are combined.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from layerboard.benchmark.commands.command import command, drawn, records_of, rows_of, say, say_json
from layerboard.benchmark.commands.export import chosen
from layerboard.benchmark.commands.result import Result, table_text, wrap_text
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Option, Plain, Words
from layerboard.benchmark.forms.request import JsonOption, ResultsOptions
from layerboard.leaderboards.blocks.display import HELD_OUT, enough_text, score_text
from layerboard.zoo.errors import InputError, counted, fitting, require_known, some
from layerboard.zoo.registry.find import all_specs
from layerboard.zoo.registry.local_names import as_path, read_local_names
from layerboard.zoo.spec import Variant
from layerboard.zoo.spec.origin import origin_by_mark

if TYPE_CHECKING:
    import pandas as pd

    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.board.column import Column
    from layerboard.leaderboards.board.differences import Bounds
    from layerboard.leaderboards.charts.chart import Chart
    from layerboard.leaderboards.findings.recommendation import Compared, Pick, Recommendation

    Candidates = Mapping[Column, pd.DataFrame]

MOST_PUBLISHED = 3  # networks of each group of published numbers in an answer


class RecommendRequest(JsonOption, ResultsOptions, kw_only=False):
    """Options of `recommend`: the tasks, and the limits."""

    tasks: Words = Option(
        (), "Tasks to choose for.", parsers.run_tasks, also="--task -t", usual="all that were run"
    )
    _: KW_ONLY
    backbones: Words = Option((), "Names or patterns ('dino-*') to choose from.", also="-b", usual="all")
    max_loss: Plain[float] = Option(
        2.0, "Maximum loss against the best of all that were measured in points, with 95 % confidence."
    )
    max_ms: Plain[float | None] = Option(
        None, "Maximum latency per image in ms, up to the chosen layer.", parsers.positive
    )
    max_dim: Plain[int | None] = Option(None, "Maximum dimension of a vector.", least=1)
    max_bytes: Plain[int | None] = Option(
        None,
        "Maximum bytes per stored vector; compressed vectors (run --compress) are candidates, too.",
        least=1,
    )
    max_parameters: Option[int | str | None, int | None] = Option(
        None, "Maximum number of parameters up to the chosen layer, such as 100M.", parsers.count
    )
    licence: Plain[Literal["any", "commercial"]] = Option(
        "any", "commercial: only licences whose name permits commercial use (no legal advice)."
    )
    details: Plain[bool] = Option(
        False, "Also print the reason for each task, the Pareto fronts, all notes, and the lines of Python."
    )
    literature: Plain[bool] = Option(
        False, "Answer from published numbers, with their sources: without a run, times and intervals."
    )
    device: Plain[str | None] = Option(
        None, "Device whose latencies count: cpu, cuda, or part of its name.", usual="the last measured"
    )


@command("recommend", RecommendRequest)
def recommend_command(request: RecommendRequest) -> None:
    """Recommend backbones and layers, the cheapest first.

    They score nearly as well as the best: a backbone is recommended if it is shown, with 95 % confidence, to
    lose at most `--max-loss` points in every task. Scores come from a run, latencies from its task `cost`.
    Each recommendation comes with its reason, and for one task, or with `--details`, with lines of Python
    that load the backbone, cut after the layer. With `--literature`, it answers from published numbers.

    Example: `layerboard recommend --tasks knn spair --max-loss 1 --max-ms 10 --licence commercial`
    """
    if request.literature:
        answer = from_literature(request)
        if request.json:
            say_json({"published": rows_of(answer.frame), "notes": answer.notes})
        else:
            say(answer.text())
        return
    advice = recommended(request)
    if request.json:
        content = {"recommended": rows_of(advice.frame), "pareto": rows_of(advice.pareto)}
        notes = (*advice.warnings, *advice.notes, *advice.details)
        say_json({**content, "device": advice.device, "notes": notes, "python": advice.code})
        return
    _say_advice(advice, every=request.details)


def _say_advice(advice: "Recommendation", *, every: bool) -> None:
    """Print the recommendation in words; ``every``: also the reason for each task, fronts and Python."""
    from layerboard.leaderboards.findings.recommendation import pareto_table, pick_table

    for warning in advice.warnings:
        say(wrap_text(warning) + "\n")
    say(table_text(pick_table(advice)) + "\n")
    for rank, pick in enumerate(advice.picks, start=1):
        reason = advice.reason(pick) if every else advice.summary(pick)
        say(wrap_text(f"{rank}. {pick.backbone}: {reason}."))
    for column, front in advice.fronts.items() if every else ():
        if len(front):
            say(f"\nPareto front, score against time, {column.heading}:\n")
            say(table_text(pareto_table(advice, column)))
    short = every or len(advice.columns) == 1
    say(f"\nThe first of them in Python:\n\n{advice.code[0]}\n" if short else "")
    for note in (*advice.notes, *(advice.details if short else ())):
        say(wrap_text(note))
    if not every:
        more = "the Pareto front" if short else "each task, its Pareto front, and the lines of Python"
        say(f"`recommend --details` adds {more}.")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Advice(Result):
    """Recommended backbones with layers, the cheapest first."""

    pareto: "pd.DataFrame"  # for each task the Pareto-optimal layers in score and latency
    code: tuple[str, ...]  # for each recommendation, lines of Python that give its vectors


@recommend_command.python
def recommend(request: RecommendRequest) -> Advice:
    """``frame`` has one row per recommendation and task, with columns ``leaderboards.recommendation.PICK``.

    One of them is ``reason``. With ``literature``, ``frame`` has the best published numbers, and the other
    attributes are empty. ``pareto`` has the layers that no other beats in score without taking longer;
    ``code`` has, for each recommendation, the lines of Python that load the backbone cut after that layer.

    Example:
        >>> import layerboard
        >>> found = layerboard.recommend("knn", output="results", max_dim=768)
        >>> print(found.code[0].splitlines()[0])
        import layerboard
    """
    from layerboard.leaderboards.findings.recommendation import pick_table

    if request.literature:
        return from_literature(request)
    advice = recommended(request)
    names = ", ".join(dict.fromkeys(column.heading for column in advice.columns))
    return Advice(
        title=f"recommended for {names}",
        frame=advice.frame,
        table=pick_table(advice),
        notes=(
            *advice.warnings,
            *(f"{pick.backbone}: {advice.reason(pick)}." for pick in advice.picks),
            *advice.notes,
            *advice.details,
        ),
        pareto=advice.pareto,
        code=advice.code,
        draw=lambda: _charts(request),
    )


def _charts(request: RecommendRequest) -> "Iterator[Chart]":
    """Charts of the tasks and backbones to choose from, first of scores over costs."""
    from layerboard.leaderboards.board.board import Board
    from layerboard.tasks.framework.registry import COST

    records = records_of(request.output)
    if request.tasks:
        records = records[records["task"].isin([*request.tasks, COST])]
    names = {*records["backbone"]}
    board = Board.of(records, items=request.output / "items")
    picked = fitting(names, request.backbones) if request.backbones else names
    return drawn(board, ["*-cost-ms", "*-cost-*"], [*picked])()


def from_literature(request: RecommendRequest) -> Advice:
    """The best published numbers of each group that ranks networks, of the tasks' main metrics.

    ``--details`` adds other metrics and all networks. Raises InputError for limits that need a run, and if
    nothing is published.
    """
    import pandas as pd

    from layerboard.benchmark.plan.facts import known_depths, known_facts
    from layerboard.leaderboards.findings.facts import UNKNOWN, fits_licence
    from layerboard.leaderboards.findings.literature import (
        literature,
        main_rows,
        published_answer,
        published_notes,
    )
    from layerboard.leaderboards.published.literature import all_published
    from layerboard.tasks.framework.registry import TASKS

    usual = RecommendRequest()
    needs = ("max_loss", "max_ms", "max_dim", "max_bytes", "max_parameters", "device")
    if asked := [name for name in needs if getattr(request, name) != getattr(usual, name)]:
        raise InputError(f"--literature takes no --{asked[0].replace('_', '-')}: that needs a run")
    rows, facts = literature(all_published(), known_depths()), known_facts()
    rows = rows[rows["task"].isin(request.tasks or [task.name for task in TASKS]) & (rows["networks"] > 1)]
    if request.backbones:
        rows = rows[rows["backbone"].isin(fitting(rows["backbone"].unique(), request.backbones))]
    licences = rows["backbone"].map(lambda name: facts.get(name, UNKNOWN).licence)
    rows = rows[licences.map(lambda licence: fits_licence(licence, request.licence)).astype(bool)]
    if len(rows) and not request.details:
        rows = main_rows(rows, MOST_PUBLISHED)
    if rows.empty:
        raise InputError("no published numbers of several networks fit; `leaderboard --literature` has all")
    names = ", ".join(dict.fromkeys(rows["task"]))
    table, notes = published_answer(rows), published_notes(rows)
    title = f"published for {names}, the best of each group"
    return Advice(title=title, frame=rows, table=table, notes=notes, pareto=pd.DataFrame(), code=())


def recommended(request: RecommendRequest) -> "Recommendation":
    """The backbones and layers within the limits that lose little in every task, cheapest first.

    Raises InputError if there are no records, if a task, backbone or device is unknown, if latency is limited
    but was not measured, or if nothing is within the limits.
    """
    from layerboard.leaderboards.board.costs import disturbed_notes, pareto_front
    from layerboard.leaderboards.findings.answers import unscored
    from layerboard.leaderboards.findings.recommendation import (
        Recommendation,
        compare_candidates,
        least_loss,
        picks_of,
    )

    if request.max_loss < 0:
        raise InputError(f"--max-loss takes a number of at least 0; found {request.max_loss:g}")
    board, named, device, every, compressed = offer = _offer(request)
    offered = offer.rows
    command = _measuring(offered, request.output)
    tasks = named.records["task"].isin([column.task for column in every])
    reasons = unscored(named.only(named.records[tasks]))
    _require_offers(offered, request.max_ms, command, reasons)
    candidates, details = _within(offered, request)
    compared_columns = {
        column: compare_candidates(rows, every[column], _bounds(board, column, compressed), request.max_loss)
        for column, rows in candidates.items()
    }
    picks = picks_of(compared_columns) or tuple(filter(None, [least_loss(compared_columns)]))
    if not picks:
        raise InputError("no backbone within the limits has a score in every task; name fewer tasks")
    return Recommendation(
        picks,
        compared_columns,
        {column: pareto_front(each.rows) for column, each in compared_columns.items()},
        device or "",
        (
            *reasons,
            *_lacking(offered, request.max_ms, compressed),
            *disturbed_notes(named.costs.records, device),
            *_notes(compared_columns, picks[0], device, command, commercial=request.licence == "commercial"),
        ),
        tuple(code_of(pick, read_local_names(request.output)) for pick in picks),
        (*details, *_details(compared_columns, picks[0])),
        tuple(_warnings([*every], board)),
    )


class _Offer(NamedTuple):
    """What there is to choose from."""

    board: "Board"  # of all backbones that were run
    named: "Board"  # of those to choose from
    device: str | None  # whose times count
    every: "Candidates"  # of all backbones
    compressed: "pd.DataFrame | None"  # scores of compressed vectors; None if they are no candidates

    @property
    def rows(self) -> "Candidates":
        """The candidates of the backbones to choose from."""
        names = {backbone.name for backbone in self.named.backbones}
        return {column: rows[rows["backbone"].isin(names)] for column, rows in self.every.items()}


def _offer(request: RecommendRequest) -> _Offer:
    """What there is to choose from; raises InputError for unknown tasks, backbones or devices."""
    from layerboard.benchmark.plan.facts import known_facts
    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.board.costs import find_measured_device, layer_costs
    from layerboard.leaderboards.findings.limits import candidates_of

    records, items = records_of(request.output), request.output / "items"
    board = Board.of(records, items=items)
    named = Board.of(chosen(records, request.backbones), items=items) if request.backbones else board
    columns = _columns(board, named, request.tasks)
    device = find_measured_device(named.costs.records, request.device)
    compressed = None if request.max_bytes is None else board.compressed
    costs = layer_costs(board.costs.records, device)
    return _Offer(board, named, device, candidates_of(columns, costs, known_facts(), compressed), compressed)


def _require_offers(
    offered: "Candidates", max_ms: float | None, command: str, reasons: Sequence[str]
) -> None:
    """Raise InputError if nothing has a score, or no time although ``max_ms`` limits it."""
    if command and max_ms is not None and all(rows["ms"].isna().all() for rows in offered.values()):
        raise InputError(f"--max-ms needs times, and none were measured; `{command}` measures them")
    if all(rows.empty for rows in offered.values()):
        raise InputError(" ".join(reasons).removesuffix(".") or "no backbone has a score")


def _lacking(offered: "Candidates", max_ms: float | None, compressed: "pd.DataFrame | None") -> Iterator[str]:
    """Sentences on limits that cannot be applied to every candidate."""
    from layerboard.leaderboards.findings.limits import MOST_NAMED, spared

    every = (
        () if max_ms is None else (rows.loc[spared(rows, max_ms), "backbone"] for rows in offered.values())
    )
    if names := sorted({str(name) for part in every for name in part}):
        of_some = some(names, MOST_NAMED)
        yield f"--max-ms {max_ms:g} is not applied to times that other work disturbed, of {of_some}."
    if compressed is not None and compressed.empty:
        yield "No compressed vectors were scored; `run --compress pca:64+int8` scores some."


def _bounds(board: "Board", column: "Column", compressed: "pd.DataFrame | None") -> "Bounds":
    """How far the candidates of a column may be below its best, compressed vectors included if offered."""
    import pandas as pd

    from layerboard.leaderboards.board.differences import bounds_of
    from layerboard.leaderboards.findings.limits import compressed_of

    if compressed is None:
        return board.bounds[column.key]
    rows = pd.concat([column.family, compressed_of(column, compressed)], ignore_index=True)
    return bounds_of(column, rows, board.items)


def _columns(board: "Board", named: "Board", tasks: Sequence[str]) -> "tuple[Column, ...]":
    """The columns of a board in which a named backbone has a score, of some tasks or of all."""
    columns = {column.key: column for column in board.columns}
    scored = [columns[column.key] for column in named.columns]
    names = list(dict.fromkeys(column.task for column in scored))
    require_known("task", tasks, names)
    if not names:
        raise InputError(
            "no backbone has a score in a ranking task; `layerboard run` measures some, with --copies also "
            "for images without labels"
        )
    return tuple(column for column in scored if not tasks or column.task in tasks)


def _warnings(columns: "Sequence[Column]", board: "Board") -> Iterator[str]:
    """Sentences about tests that say little, of all backbones that were run.

    Baselines are not shown to be worse there, or their images have near-duplicates.
    """
    from layerboard.leaderboards.findings.baselines import cannot_rank, equal_baselines

    for column in columns:
        if baselines := equal_baselines(column, board.items):
            yield f"{column.heading}: {cannot_rank(baselines)}."
    tasks = [column.task for column in columns]
    yield from board.only(board.records[board.records["task"].isin(tasks)]).warnings


def _within(every: "Candidates", request: RecommendRequest) -> "tuple[Candidates, list[str]]":
    """The candidates within the limits and what each limit leaves out; raises InputError if none remains."""
    from layerboard.leaderboards.findings.limits import within

    ceilings = {name: getattr(request, f"max_{name}") for name in ("ms", "dim", "parameters", "bytes")}
    candidates, left_out = {}, []
    for column, rows in every.items():
        if rows.empty:  # the notes say why
            continue
        candidates[column], reasons = within(rows, ceilings, commercial=request.licence == "commercial")
        if candidates[column].empty:
            raise InputError(f"nothing is within the limits for {column.heading}: {'; '.join(reasons)}")
        where = f"{column.heading}: " if len(every) > 1 else ""
        left_out += [f"{where}{reason}." for reason in reasons]
    return candidates, left_out


def _measuring(every: "Candidates", output: Path) -> str:
    """The command that measures missing costs; "" if none is missing."""
    names = sorted({str(name) for rows in every.values() for name in rows.loc[rows["ms"].isna(), "backbone"]})
    names = [as_path(name, read_local_names(output)) for name in names]
    words = ["--tasks", "cost", "--backbones", *names, "-o", str(output)]
    return f"layerboard run {shlex.join(words)}" if names else ""


def _notes(
    columns: "Mapping[Column, Compared]", first: "Pick", device: str | None, command: str, *, commercial: bool
) -> Iterator[str]:
    """What the recommendation rests on, and its caveats, one sentence each."""
    from layerboard.leaderboards.findings.facts import NOTE

    if device:
        yield f"Milliseconds are for one image on {device}, up to the layer{_sizes(first)}."
    if command:
        yield (
            f"{'Not all' if device else 'No'} latencies are known: without one, weights up to a layer are "
            "about an equal share a block, and candidates are sorted by these and by depth; "
            f"`{command}` measures them."
        )
    alone = f"; each of the {len(columns)} tasks holds by itself" if len(columns) > 1 else ""
    if any(compared.rows["loss"].notna().any() for compared in columns.values()):
        picked = "also for the one that you pick"
        yield f"The maximum loss holds with 95 % for all layers at once, {picked}{alone}."
    for column, compared in columns.items():
        if compared.untested:
            names = some(compared.untested)
            without = "without per-item scores of the same images"
            yield f"{column.heading}: not compared with {names}, {without}."
    if any(column.partial for column in columns):
        yield "†: on a part of the dataset."
    if commercial:
        yield NOTE


def _sizes(pick: "Pick") -> str:
    """At which sizes the times of a pick are, as the end of a sentence."""
    rows = {column: row for column, row in pick.rows.items() if row["ms"] >= 0}
    shown = [bool(row["timed_at"]) and row["timed_at"] == row["view_size"] for row in rows.values()]
    own = [column.task for column, is_shown in zip(rows, shown, strict=True) if not is_shown]
    texts = []
    if len(own) < len(rows):
        texts.append(f"at the size that the task shows{', one pass for each' if len(pick.timed) > 1 else ''}")
    if own:
        whose = f"of {', '.join(dict.fromkeys(own))} " if texts else ""
        texts.append(
            f"{whose}at the network's own input size, which may be smaller than what the task shows: a run "
            "of the task with cost measures both alike"
        )
    return f", {'; '.join(texts)}" if texts else ""


def _details(columns: "Mapping[Column, Compared]", first: "Pick") -> Iterator[str]:
    """Caveats of single tasks, one sentence each."""
    for column, comparison in columns.items():
        name = str(comparison.best["backbone"])
        choice = column.held_out.get(name)
        rows = comparison.rows
        left = {*rows.loc[rows["backbone"] == name, "layer"]}
        # without the layers that halves of the data chose, another choice would have been made
        if choice and left >= {layer for layer, _ in choice.shares} and not comparison.best["transform"]:
            yield (
                f"{column.heading}: the best layer of {name} was chosen on the test data, which is "
                f"optimistic; held out it scores {score_text(choice.score)} ({HELD_OUT})."
            )
        yield from _undecided(column.heading, comparison, first.rows[column])


def _undecided(heading: str, found: "Compared", pick: "pd.Series") -> Iterator[str]:
    """Sentences about a pick and cheaper layers that may lose too much, and how many items would tell."""
    from layerboard.leaderboards.findings.recommendation import named_layer

    rows = found.undecided(pick)
    if len(rows):
        first = rows.iloc[0]
        items = counted(count := int(first["n"]), unit := str(first["unit"]))
        enough = enough_text(first["enough"], count, unit)
        yield (
            f"{heading}: {items} cannot decide whether more than {found.max_loss:g} points are lost by "
            f"{counted(len(rows), 'layers')} no more expensive and within that of the best. If scores are "
            f"what they seem, it would take {enough} to show it of {named_layer(first)} in 80 % of cases."
        )


def code_of(pick: "Pick", local: Collection[str] = ()) -> str:
    """Lines of Python that load a pick, cut after its layers, and compute the vectors of ``images``.

    ``local`` are names of directories and files, which are loaded by their paths; records do not hold these.
    """
    import pandas as pd

    calls: dict[tuple[str, str], list[Column]] = {}
    for column, row in pick.rows.items():
        calls.setdefault((_call(pick.backbone, column, row, local), row["transform"]), []).append(column)
    lines = ["import layerboard", ""]
    for number, ((call, transform), columns) in enumerate(calls.items(), start=1):
        ending = f"_{number}" if len(calls) > 1 else ""
        row = pick.rows[columns[0]]
        shape = "images rows columns" if row["pooling"] == "grid" else "images"
        shape += "]" if pd.isna(row["dim"]) else f" {row['dim']:.0f}]"
        named = ", ".join(dict.fromkeys(column.task for column in columns))
        made = f"encode{ending}(images)"
        lines += [f"encode{ending} = {call}  # for {named}"]
        if transform:
            fit = f'compress{ending} = layerboard.compression("{transform}", encode{ending}(known))'
            lines += [f"{fit}  # images that are there before queries come"]
            made, shape = (f"compress{ending}({made})", f"images numbers], {row['bytes']:.0f} bytes each")
        lines += [f"vectors{ending} = {made}  # images of Pillow to float32 [{shape}"]
        texts = {column.heading: str(pick.rows[column]["thresholds"]) for column in columns}
        lines += [f"# {heading}, {text}" for heading, text in texts.items() if text]
    return "\n".join(lines)


def _call(name: str, column: "Column", row: "pd.Series", local: Collection[str]) -> str:
    from layerboard.tasks.framework.protocols import PROTOCOLS
    from layerboard.tasks.framework.registry import TASKS

    variant = Variant.of(name)
    name = str(replace(variant, entry=as_path(variant.entry, local)))
    words = [repr(name), f"layer={row['layer']}", f"pooling={str(row['pooling'])!r}"]
    known = any(task.name == column.task for task in TASKS)  # not those of a user's own backbone
    usual = all(rules.covers("knn") for rules in PROTOCOLS if rules.name == column.protocol)
    if known and (row["pooling"] == "grid" or column.task == "retrieval" or not usual):
        words.append(f"task={column.task!r}")
    if column.protocol != "standard":
        words.append(f"protocol={column.protocol!r}")
    spec = next((spec for spec in all_specs() if spec.name == variant.entry), None)
    origin = spec.origin if spec else origin_by_mark(variant.entry)
    takes_files = origin is not None and origin.takes_weights and not origin.supply
    if takes_files and variant.entry not in local and str(row.get("revision", "")).startswith("sha256:"):
        # not the weights of the Hub
        words.append("weights='PATH'")
    return f"layerboard.load({', '.join(words)})".replace("'", '"')
