"""Recommend backbones and layers from an output folder: the command `recommend` and `layerboard.recommend`.

Scores, costs and facts of the registry are combined.
"""

import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import chain
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from layerboard.benchmark.commands.command import (
    command,
    drawn,
    records_of,
    require_run,
    rows_of,
    run_backbones,
    say,
    say_json,
)
from layerboard.benchmark.commands.result import SCREEN, Result
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import ByName, Option, Plain, Words
from layerboard.benchmark.forms.request import JsonOption, ResultsOptions
from layerboard.leaderboards.blocks.display import MAX_LOSS, task_display
from layerboard.zoo.errors import InputError, counted, fitting, require_known, some
from layerboard.zoo.registry.find import all_specs, as_path, read_local_names
from layerboard.zoo.spec import Variant
from layerboard.zoo.spec.origin import origin_by_mark

if TYPE_CHECKING:
    import pandas as pd

    from layerboard.leaderboards.answer.answer import Answer
    from layerboard.leaderboards.answer.candidates import Candidate
    from layerboard.leaderboards.answer.choice import Choice
    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.board.column import Column

MOST_PUBLISHED = 3  # networks of each group of published numbers in an answer
UNTIMED = (
    "{some} latencies are known: without one, weights up to a layer are about an equal share a block, and "
    "candidates are sorted by these and by depth; `{command}` measures them."
)
LIMITS: Mapping[str, Callable[[Any], Any]] = {  # parsers of `--within`, by attribute of a candidate
    "loss": parsers.not_negative,
    "ms": parsers.positive,
    "dim": partial(parsers.whole, least=1),
    "bytes": partial(parsers.whole, least=1),
    "parameters": parsers.count,
}


class RecommendRequest(JsonOption, ResultsOptions, kw_only=False):
    """Options of `recommend`: the tasks, and the limits."""

    tasks: Words = Option(
        (), "Tasks to choose for.", parsers.run_tasks, also="--task -t", usual="all that were run"
    )
    _: KW_ONLY
    backbones: Words = Option((), "Names or patterns ('dino-*') to choose from.", also="-b", usual="all")
    within: ByName = Option(
        (),
        "Limits, NAME=MOST. loss: points that may be lost against the best of all that were measured, with "
        "95 % confidence; ms: latency per image, and parameters (such as 100M), up to the chosen layer; dim: "
        "dimension of a vector; bytes: of a stored vector (compressed ones, run --compress, are candidates, "
        "too).",
        partial(parsers.of_names, kinds=LIMITS),
        keys=LIMITS,
        usual=f"loss={MAX_LOSS:g}",
    )
    licence: Plain[Literal["any", "commercial"]] = Option(
        "any", "commercial: only licences whose name permits commercial use (no legal advice)."
    )
    details: Plain[bool] = Option(
        False, "Also print the reason for each task, the Pareto fronts, all notes, and the lines of Python."
    )
    markdown: Plain[bool] = Option(
        False, "Print the first recommendation alone, as six lines of Markdown for a ticket.", only="command"
    )
    literature: Plain[bool] = Option(
        False, "Answer from published numbers, with their sources: without a run, times and intervals."
    )
    device: Plain[str | None] = Option(
        None, "Device whose latencies count: cpu, cuda, or part of its name.", usual="the last measured"
    )

    @property
    def max_loss(self) -> float:
        """Points that may be lost against the best."""
        return float(self.within.get("loss", MAX_LOSS))


@command("recommend", RecommendRequest)
def recommend_command(request: RecommendRequest) -> None:
    """Recommend backbones and layers, the cheapest first.

    They score nearly as well as the best: a backbone is recommended if it is shown, with 95 % confidence, to
    lose at most two points in every task (`--within loss=2`). Scores come from a run, latencies from its task
    `cost`. Each recommendation comes with its reason, and for one task, or with `--details`, with lines of
    Python that load the backbone, cut after the layer. With `--literature`, it answers from published
    numbers.

    Example: `layerboard recommend --tasks knn spair --within loss=1 ms=10 --licence commercial`
    """
    others = ("json", "details", "literature")
    if request.markdown and (beside := [name for name in others if getattr(request, name)]):
        raise InputError(f"--markdown takes no --{beside[0]}: it prints six lines alone")
    if request.literature:
        answer = from_literature(request)
        if request.json:
            say_json({"published": rows_of(answer.frame), "notes": answer.notes})
        else:
            say(answer.text())
        return
    advice = recommended(request, short=not (request.details or request.json))
    if request.json:
        content = {"recommended": rows_of(advice.frame), "pareto": rows_of(advice.pareto)}
        say_json({**content, "device": advice.device, "notes": advice.caveats, "python": advice.code})
        return
    if request.markdown:
        say(ticket(advice, request.max_loss))
        return
    several = len(advice.answers) > 1
    say(advice.text())
    if request.details or not several:
        say(f"\nThe first of them in Python:\n\n{advice.code[0]}\n")
    if not request.details:
        more = "each task, its Pareto front, and the lines of Python" if several else "the Pareto front"
        say(f"`recommend --details` adds other columns and {more}.")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Advice(Result):
    """Recommended backbones with layers, the cheapest first."""

    pareto: "pd.DataFrame"  # for each task the Pareto-optimal layers in score and latency
    code: tuple[str, ...] = ()  # for each recommendation, lines of Python that give its vectors
    choices: tuple["Choice", ...] = ()  # what is recommended
    answers: tuple["Answer", ...] = ()  # of each task, with the candidates that limits leave
    device: str = ""  # of the latencies; "" without any
    caveats: tuple[str, ...] = ()  # those of its notes that give no reason


@recommend_command.python
def recommend(request: RecommendRequest) -> Advice:
    """``frame`` has one row per recommendation and task: ``leaderboards.answer.choice.RECOMMENDED``.

    One of them is ``reason``. With ``literature``, ``frame`` has the best published numbers, and the other
    attributes are empty. ``pareto`` has the layers that no other beats in score without taking longer;
    ``code`` has, for each recommendation, the lines of Python that load the backbone cut after that layer.

    Example:
        >>> import layerboard
        >>> found = layerboard.recommend("knn", output="results", within={"dim": 768})
        >>> print(found.code[0].splitlines()[0])
        import layerboard
    """
    return from_literature(request) if request.literature else recommended(request)


def from_literature(request: RecommendRequest) -> Advice:
    """The best published numbers of each group that ranks frozen networks, of the tasks' main metrics.

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

    if given := [name for name in ("within", "device") if getattr(request, name)]:
        raise InputError(f"--literature takes no --{given[0]}: that needs a run")
    rows, facts = literature(all_published(), known_depths()), known_facts()
    rows = rows[rows["task"].isin(request.tasks or [task.name for task in TASKS])]
    rows = rows[(rows["networks"] > 1) & rows["frozen"]]
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
    return Advice(title=title, frame=rows, table=table, notes=notes, pareto=pd.DataFrame())


def recommended(request: RecommendRequest, *, short: bool = False) -> Advice:
    """The backbones and layers within the limits that lose little in every task, cheapest first.

    ``short``: of several tasks, only the reason of that in which most may be lost, and no caveats of one.
    Raises InputError if there are no records, if a task, backbone or device is unknown, if latency is limited
    but was not measured, or if nothing is within the limits.
    """
    from layerboard.benchmark.plan.facts import known_facts
    from layerboard.leaderboards.answer.answer import answers_of, unscored
    from layerboard.leaderboards.answer.choice import choose
    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.board.costs import disturbed_notes, find_measured_device
    from layerboard.tasks.framework.registry import COST

    board = Board.of(records_of(request.output), items=request.output / "items")
    names = run_backbones(request.backbones or "*", {*board.labels}, request.output)
    own = board.only(board.records[board.records["backbone"].isin(names)])
    require_run("task", request.tasks, sorted(set(board.records["task"])), request.output)
    columns = _columns(board, names, request.tasks)
    device = find_measured_device(own.costs.records, request.device) or ""
    compressed = board.compressed if "bytes" in request.within else None
    every = answers_of(board, known_facts(), columns=columns, device=device, compressed=compressed)
    offered = [answer.only(names) for answer in every]
    candidates = [each for answer in offered for each in answer.candidates]
    command = _measuring(candidates, request.output)
    tasks = [column.task for column in columns]
    of_tasks = own.only(own.records[own.records["task"].isin(tasks)])
    drawn_from = board.only(board.records[board.records["task"].isin([*tasks, COST])])
    reasons = unscored(of_tasks)
    if command and "ms" in request.within and all(isnan(each.ms) for each in candidates):
        raise InputError(f"a limit of ms needs times, and none were measured; `{command}` measures them")
    answers, left_out = _limited([answer for answer in offered if answer.candidates], request)
    if not answers:
        raise InputError(" ".join(reasons).removesuffix(".") or "no backbone has a score")
    choices = choose(answers, request.max_loss)
    if not choices:
        raise InputError("no backbone within the limits has a score in every task; name fewer tasks")
    caveats = (
        *of_tasks.warnings,
        *_caveats(answers, choices[0], request.max_loss, short=short),
        *reasons,
        *_limit_notes(candidates, request, compressed),
        *disturbed_notes(own.costs.records, device),
        *([UNTIMED.format(some="Not all" if device else "No", command=command)] if command else ()),
        *left_out,
    )
    draw = drawn(drawn_from, ["*-cost-ms", "*-cost-*"], [*names & drawn_from.labels.keys()])
    return replace(_advice(choices, answers, request, caveats, short=short), device=device, draw=draw)


def _advice(
    choices: "tuple[Choice, ...]",
    answers: "Sequence[Answer]",
    request: RecommendRequest,
    caveats: tuple[str, ...],
    *,
    short: bool,
) -> Advice:
    """Choices as a result: their table, the reason of each, and what each task has to choose from."""
    from layerboard.leaderboards.answer.choice import explain, pareto_of, recommended_frame, recommended_table

    headings, lost = ", ".join(answer.column.heading for answer in answers), request.max_loss
    if len(answers) > 1:
        headings = f"all of {headings}; `layerboard show` has the best of each"
    texts = (explain(each, answers, lost, short=short) for each in choices)
    numbered = enumerate(zip(choices, texts, strict=True), start=1)
    fronts = [pareto_of(answer) for answer in answers]
    parts = (
        Result(
            title=f"Pareto front, score against time, {answer.column.heading}",
            frame=recommended_frame(front),
            table=recommended_table(front, [answer]),
        )
        for answer, front in zip(answers, fronts, strict=True)
        if front and request.details
    )
    return Advice(
        title=f"recommended for {headings}",
        frame=recommended_frame(choices, [explain(each, answers, lost) for each in choices]),
        table=recommended_table(choices, answers, short=short),
        width=SCREEN if short else sys.maxsize,
        notes=(*(f"{rank}. {each.backbone}: {text}." for rank, (each, text) in numbered), *caveats),
        parts=tuple(parts),
        pareto=recommended_frame([*chain.from_iterable(fronts)]),
        code=tuple(code_of(each, read_local_names(request.output)) for each in choices),
        choices=choices,
        answers=tuple(answers),
        caveats=caveats,
    )


def ticket(advice: Advice, max_loss: float) -> str:
    """The first recommendation in six lines of Markdown.

    They say what to take, its score in each task, why, what it costs, what is best in each task, and the
    statements of Python that load it.
    """
    from layerboard.leaderboards.answer.choice import explain, price
    from layerboard.leaderboards.answer.phrases import cannot_rank, lead, named, notes, scored_text
    from layerboard.leaderboards.writers.markdown import code_span, plain

    choice, answers = advice.choices[0], advice.answers
    taken = choice.candidates.items()
    tasks = dict[str, list[str]]()
    for column, each in taken:
        tasks.setdefault(named(each).removeprefix(f"{each.backbone} "), []).append(column.task)
    places = [f"{layer} ({', '.join(names)})" if len(tasks) > 1 else layer for layer, names in tasks.items()]
    scores = (
        f"{task_display(column.task).title}, {column.heading} "
        f"{scored_text(each)} ({counted(each.n, each.unit)})"
        for column, each in taken
    )
    clause = lead if len(answers) == 1 else cannot_rank
    best = [[f"{each.column.heading} {named(each.best)}", clause(each)] for each in answers]
    statements = [line.partition("  #")[0] for line in advice.code[0].splitlines()]
    facts = {
        "Score": " ".join(["; ".join(scores), *notes(answers, ("partial",))]),
        "Reason": explain(choice, answers, max_loss, short=True),
        "Cost": price(choice) or "not measured",
        "Best": "; ".join(", ".join(filter(None, words)) for words in best),
    }
    lines = [f"**Take {plain(choice.backbone)}: {plain(', '.join(places))}**"]
    lines += [f"- {name}: {plain(text)}" for name, text in facts.items()]
    code = "; ".join(line for line in statements if line.startswith(("encode", "compress")))
    return "\n".join([*lines, f"- Python: {code_span(code)}"])


def _limited(answers: "Sequence[Answer]", request: RecommendRequest) -> "tuple[list[Answer], list[str]]":
    """The answers with the candidates within the limits, and what each limit leaves out.

    Raises InputError if none remains.
    """
    from layerboard.leaderboards.answer.candidates import apply_limits

    ceilings = {name: most for name, most in request.within.items() if name != "loss"}
    limited, left_out = [], list[str]()
    for answer in answers:
        commercial = request.licence == "commercial"
        left, reasons = apply_limits(answer.candidates, ceilings, commercial=commercial)
        heading = answer.column.heading
        if not left:
            raise InputError(f"nothing is within the limits for {heading}: {'; '.join(reasons)}")
        limited.append(replace(answer, candidates=left))
        left_out += [f"{f'{heading}: ' * (len(answers) > 1)}{reason}." for reason in reasons]
    return limited, left_out


def _caveats(answers: "Sequence[Answer]", first: "Choice", max_loss: float, *, short: bool) -> Iterator[str]:
    """Caveats of the tasks: all of them, or in ``short`` and of several those that concern all."""
    from layerboard.leaderboards.answer.choice import price, undecided_text
    from layerboard.leaderboards.answer.phrases import notes

    yield from notes(answers, ("baselines", "loss", "ms", "untested", "partial"))
    if len(first.timed) > 1 and price(first):
        yield f"{first.backbone} takes {price(first)}."
    if not short or len(answers) == 1:
        yield from notes(answers, ("held-out score",))
        texts = (undecided_text(each, first.candidates[each.column], max_loss) for each in answers)
        yield from filter(None, texts)


def _limit_notes(
    candidates: "Sequence[Candidate]", request: RecommendRequest, compressed: "pd.DataFrame | None"
) -> Iterator[str]:
    """Sentences on limits that cannot be applied to every candidate, and on licences."""
    from layerboard.leaderboards.answer.candidates import MOST_NAMED, exempt
    from layerboard.leaderboards.findings.facts import NOTE

    if (most := request.within.get("ms")) is not None and any(exempt(each, most) for each in candidates):
        names = some(sorted({each.backbone for each in candidates if exempt(each, most)}), MOST_NAMED)
        yield f"ms={most:g} is not applied to times that other work disturbed, of {names}."
    if compressed is not None and compressed.empty:
        yield "No compressed vectors were scored; `run --compress pca:64+int8` scores some."
    if request.licence == "commercial":
        yield NOTE


def _columns(board: "Board", names: Collection[str], tasks: Sequence[str]) -> "tuple[Column, ...]":
    """The columns of a board that have rows of some backbones, of some tasks or of all."""
    columns = [column for column in board.columns if column.rows["backbone"].isin(names).any()]
    require_known("ranking task", tasks, [*dict.fromkeys(column.task for column in columns)])
    if not columns:
        raise InputError(
            "no backbone has a score in a ranking task; `layerboard run` measures some, with --copies also "
            "for images without labels"
        )
    return tuple(column for column in columns if not tasks or column.task in tasks)


def _measuring(candidates: "Sequence[Candidate]", output: Path) -> str:
    """The command that measures missing costs; "" if none is missing."""
    untimed = sorted({each.backbone for each in candidates if isnan(each.ms)})
    names = [as_path(name, read_local_names(output)) for name in untimed]
    words = ["--tasks", "cost", "--backbones", *names, "-o", str(output)]
    return f"layerboard run {shlex.join(words)}" if names else ""


def code_of(choice: "Choice", local: Collection[str] = ()) -> str:
    """Lines of Python that load a choice, cut after its layers, and compute the vectors of ``images``.

    ``local`` are names of directories and files, which are loaded by their paths; records do not hold these.
    """
    calls: dict[tuple[str, str], list[Column]] = {}
    for column, candidate in choice.candidates.items():
        calls.setdefault((_call(column, candidate, local), candidate.transform), []).append(column)
    lines = ["import layerboard", ""]
    names = [re.sub(r"\W", "_", "_".join(["", *(each.task for each in own)])) for own in calls.values()]
    if len({*names}) < len(names):  # one task in several columns
        names = [f"_{number}" for number in range(1, len(names) + 1)]
    for name, ((call, transform), columns) in zip(names, calls.items(), strict=True):
        ending = name if len(calls) > 1 else ""
        first = choice.candidates[columns[0]]
        shape = "images rows columns" if first.pooling == "grid" else "images"
        shape += f" {first.dim:.0f}]" if first.dim >= 0 else "]"
        named = ", ".join(dict.fromkeys(column.task for column in columns))
        made = f"encode{ending}(images)"
        lines += [f"encode{ending} = {call}  # for {named}"]
        if transform:
            fit = f'compress{ending} = layerboard.compression("{transform}", encode{ending}(known))'
            lines += [f"{fit}  # images that are there before queries come"]
            made, shape = (f"compress{ending}({made})", f"images numbers], {first.bytes:.0f} bytes each")
        lines += [f"vectors{ending} = {made}  # images of Pillow to float32 [{shape}"]
        texts = {column.heading: choice.candidates[column].thresholds for column in columns}
        lines += [f"# {heading}, {text}" for heading, text in texts.items() if text]
    return "\n".join(lines)


def _call(column: "Column", candidate: "Candidate", local: Collection[str]) -> str:
    from layerboard.tasks.framework.protocols import PROTOCOLS
    from layerboard.tasks.framework.registry import TASKS

    variant, pooling = Variant.of(candidate.backbone), candidate.pooling
    name = str(replace(variant, entry=as_path(variant.entry, local)))
    words = [repr(name), f"layer={candidate.layer}", f"pooling={pooling!r}"]
    known = any(task.name == column.task for task in TASKS)  # not those of a user's own backbone
    usual = all(rules.covers("knn") for rules in PROTOCOLS if rules.name == column.protocol)
    if known and (pooling == "grid" or column.task == "retrieval" or not usual):
        words.append(f"task={column.task!r}")
    if column.protocol != "standard":
        words.append(f"protocol={column.protocol!r}")
    spec = next((spec for spec in all_specs() if spec.name == variant.entry), None)
    origin = spec.origin if spec else origin_by_mark(variant.entry)
    takes_files = origin is not None and origin.takes_weights and not origin.supply
    if takes_files and variant.entry not in local and candidate.revision.startswith("sha256:"):
        # not the weights of the Hub
        words.append("weights='PATH'")
    return f"layerboard.load({', '.join(words)})".replace("'", '"')
