"""Functions that read what runs have written, or the registry."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmark.calls.result import Advice, Comparison, Result, Similarity
from benchmark.request.calls import CkaCall, ListCall
from benchmark.request.exchange import CompareRequest
from benchmark.request.option import called_with
from benchmark.request.pages import ShowRequest
from benchmark.request.recommending import RecommendRequest

if TYPE_CHECKING:
    import pandas as pd

    from benchmark.exchange.answering import Answered


@called_with(ShowRequest, without=("json",))
def best(request: ShowRequest) -> Result:
    """Give the best backbone, layer and vectors of each task, how sure that is, and what it costs.

    Says what ``python -m benchmark show`` says, with the same options. Needs no backbone and no data: what a
    run has written is enough.

    Returns:
        ``frame`` has one row a task and dataset, with the columns of ``leaderboards.answer.answer_frame``
        after ``suite``: scores in percent with 95 % intervals, the honest score, and what the data cannot
        tell from the best (``rivals``, ``layers``).

    Raises:
        zoo.errors.InputError: There are no records, or none of a suite or task that was named.

    Example:
        >>> import benchmark
        >>> found = benchmark.best(output="results", tasks="knn")
        >>> found.frame[["task", "metric", "depth"]].values.tolist()
        [['knn', 'top-1', 12]]
    """
    from benchmark.exchange.answering import answered

    title, frame, table, notes = shown_answers(answered(request))
    return Result(title=title, frame=frame, table=table, notes=tuple(notes))


@called_with(RecommendRequest, without=("json",))
def recommend(request: RecommendRequest) -> Advice:
    """Say which backbones and layers the data cannot tell from the best, the cheapest first.

    Says what ``python -m benchmark recommend`` says, with the same options. With several tasks a backbone
    must do for every one of them.

    Returns:
        ``frame`` has one row a recommendation and task, with the columns of
        ``leaderboards.recommendation.PICK``, its ``reason`` among them; ``pareto`` the layers above which
        none scores that takes no longer; ``code``, for each recommendation, the lines of Python that load
        the backbone cut after that layer.

    Raises:
        zoo.errors.InputError: There are no records, times are limited and none were measured, or nothing is
            within the limits.

    Example:
        >>> import benchmark
        >>> found = benchmark.recommend("knn", output="results", max_dim=768)
        >>> print(found.code[0].splitlines()[0])
        import benchmark
    """
    from benchmark.exchange.recommending import recommended
    from leaderboards.recommendation import pick_table

    found = recommended(request)
    names = ", ".join(dict.fromkeys(column.heading for column in found.possible))
    return Advice(
        title=f"recommended for {names}",
        frame=found.frame,
        table=pick_table(found),
        notes=(*(f"{one.backbone}: {found.reason(one)}." for one in found.picks), *found.notes),
        pareto=found.pareto,
        code=found.code,
    )


@called_with(ShowRequest, without=("json",))
def show(request: ShowRequest) -> None:
    """Print the best backbone, layer and vectors of each task, as the end of a run does.

    Does what ``python -m benchmark show`` does, with the same options.

    Raises:
        zoo.errors.InputError: There are no records, or none of a suite or task that was named.

    Example:
        >>> import benchmark
        >>> benchmark.show(output="results")
        suite images-photos-...
        <BLANKLINE>
        task       best backbone    layer    vectors    score ...
        ...
        knn top-1  mini-... ± ...
    """
    import sys

    from benchmark.cli.show import in_words
    from benchmark.exchange.answering import answered

    sys.stdout.write("\n\n".join(in_words(one) for one in answered(request)) + "\n")


@called_with(CompareRequest, without=("json",))
def compare(request: CompareRequest) -> Comparison:
    """Compare two backbones that were run, paired, on every task that both ran on the same images.

    Does what ``python -m benchmark compare`` does, with the same options.

    Returns:
        ``frame`` has one row a comparison, with the columns of ``leaderboards.versus.match_frame``:
        differences in points with 95 % intervals, p-values, and those corrected for all of the table. What
        the numbers show, in words, is ``conclusion``; what could not be compared, and why, ``left_out``.

    Raises:
        zoo.errors.InputError: Something that was given is wrong, or nothing can be compared.

    Example:
        >>> import benchmark
        >>> found = benchmark.compare("mini-dino", "mini-resnet", output="results", tasks="knn")
        >>> found.frame[["task", "metric"]].values.tolist()
        [['knn', 'top-1']]
        >>> found.conclusion
        'At 5 %...'
    """
    from benchmark.exchange.comparison import matched
    from leaderboards.versus import conclusion, match_frame, match_table

    found = matched(request)
    said = conclusion(found)
    return Comparison(
        title=f"{found.names[0]} and {found.names[1]}, paired",
        frame=match_frame(found),
        table=match_table(found),
        notes=(*(f"Left out: {one}" for one in found.left_out), said),
        conclusion=said,
        left_out=tuple(found.left_out),
    )


@called_with(CkaCall)
def cka(call: CkaCall) -> Similarity:
    """Compare two representations, or all layers of two backbones, by centred kernel alignment.

    Of arrays with the same samples in the same order it is computed here (Kornblith et al.,
    arXiv:1905.00414, with the unbiased estimator of HSIC unless told otherwise), in float64. Of backbones it
    is what a run of the task ``cka`` has written.

    Returns:
        ``matrix`` has CKA from 0 to 1; of two arrays ``float(result)`` is the number. ``frame`` has a row a
        pair.

    Raises:
        zoo.errors.InputError: Something about the arrays is wrong, or no run has compared the backbones.

    Example:
        >>> import benchmark
        >>> import numpy as np
        >>> values = np.random.default_rng(0).standard_normal((50, 8))
        >>> round(float(benchmark.cka(values, 3 * values + 1)), 6)
        1.0
        >>> benchmark.cka("mini-dino", "mini-resnet", output="results").matrix.shape
        (13, 12)
    """
    from benchmark.exchange.similarity import similarity

    found = similarity(call)
    shown = found.matrix.map("{:.3f}".format).rename_axis(None, axis="columns").reset_index(names="CKA")
    return Similarity(
        title=found.title, frame=found.frame, table=shown, notes=found.notes, matrix=found.matrix
    )


@called_with(ListCall)
def list_backbones(call: ListCall) -> Result:
    """Give the backbones of the registry that pass all filters.

    Lists what ``python -m benchmark list backbones`` lists. Brings no torch along.

    Returns:
        ``frame`` has one row a backbone, with all that is known of it.

    Raises:
        zoo.errors.InputError: There is no such family, or nothing passes.

    Example:
        >>> import benchmark
        >>> found = benchmark.list_backbones(family="dino", max_parameters="30M")
        >>> found.frame[["name", "depth", "licence"]].head(2)
                name  depth     licence
        0   dino-s16     12  Apache-2.0
        1    dino-s8     12  Apache-2.0
    """
    import pandas as pd

    from benchmark.cli.listing import Filter, brief, facts, parse_count, parse_families, select

    wanted = Filter(
        families=parse_families(call.family),
        supervision=call.supervision or "",
        licence=call.licence or "",
        max_parameters=None if call.max_parameters is None else parse_count(call.max_parameters),
        gated=call.gated,
    )
    found = select(wanted)
    return Result(
        title=f"{len(found)} {'backbone' if len(found) == 1 else 'backbones'}",
        frame=pd.DataFrame([facts(spec) for spec in found]),
        table=pd.DataFrame([brief(spec) for spec in found]),
    )


def shown_answers(
    found: Sequence["Answered"],
) -> tuple[str, "pd.DataFrame", "pd.DataFrame", list[str]]:
    """Title, numbers, texts and notes of the answers of some suites."""
    import pandas as pd

    from leaderboards.answer import answer_cells, answer_frame, answer_notes

    found = [one for one in found if one.answers]
    frames, tables, notes = [], [], dict[str, None]()
    for one in found:
        frame, table = answer_frame(one.answers), answer_cells(one.answers, one.labels)
        frame.insert(0, "suite", one.suite)
        if len(found) > 1:
            table.insert(0, "suite", one.suite)
        frames.append(frame)
        tables.append(table)
        notes |= dict.fromkeys(answer_notes(one.answers))
    if not found:
        return "no scores", answer_frame(()), answer_frame(()), []
    names = ", ".join(one.suite for one in found)
    shown = pd.concat(tables, ignore_index=True).fillna("")
    return f"suite {names}", pd.concat(frames, ignore_index=True), shown, list(notes)
