"""The words of an answer: each fact as a clause, a cell or a note; surfaces name which of them they print."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import isnan

import pandas as pd

from layerboard.leaderboards.answer.answer import Answer
from layerboard.leaderboards.answer.candidates import Candidate
from layerboard.leaderboards.blocks import display
from layerboard.zoo.errors import some

MOST_NAMED = 3  # backbones named in a clause; of more than that, only the number is given


# clauses on one candidate


def named(candidate: Candidate) -> str:
    """Backbone, layer and vectors of a candidate: ``mini-clip layer 8 cls``."""
    compression = f" by {candidate.transform}" if candidate.transform else ""
    return f"{candidate.backbone} layer {candidate.layer} {candidate.pooling}{compression}"


def scored_text(candidate: Candidate) -> str:
    """The score of a candidate with its interval: ``61.2 ± 0.8``."""
    return display.score_text(candidate.value, candidate.ci_low, candidate.ci_high)


def layer_in_words(candidate: Candidate) -> str:
    """Layer and vectors of a candidate in words: ``layer 8 of 12, class token``."""
    return f"layer {candidate.layer} of {candidate.depth}, {display.pooling_name(candidate.pooling)}"


def disturbed_text(*candidates: Candidate) -> str:
    """That other work disturbed the time of one of some candidates, in brackets; "" if it did not."""
    noisy = any(each.disturbed and each.ms >= 0 for each in candidates)
    return " (other work disturbed the timing)" if noisy else ""


def weights_text(candidate: Candidate) -> str:
    """Weights up to the layer; only about if they were not measured, as times were not; "" if unknown."""
    text = display.count_text(candidate.parameters)
    return f"about {text}" if candidate.parameters >= 0 and isnan(candidate.ms) else text


def speed_text(candidate: Candidate, on: str = "") -> str:
    """The time of an image and the size at which it was shown; "" if it is unknown."""
    at = f" at {candidate.timed_at}" if candidate.timed_at else ""
    text = f"{display.ms_text(candidate.ms)} ms an image{at}{on}{disturbed_text(candidate)}"
    return text if candidate.ms >= 0 else ""


def costs_text(answer: Answer) -> str:
    """What the best costs: time, size of a vector and weights, as far as they are known."""
    candidate, on = answer.best, f" on {answer.device}" if answer.device else ""
    dimension = f"{candidate.dim:,.0f}-dimensional vectors" if candidate.dim >= 0 else ""
    size = f"{weights_text(candidate)} parameters up to it" if candidate.parameters >= 0 else ""
    return ", ".join(filter(None, [speed_text(candidate, on), dimension, size]))


def _saving(candidate: Candidate, best: Candidate) -> str:
    """What one candidate costs instead of another: time, or if unknown, weights, or its layer."""
    for unit, text in (("ms", lambda each: display.ms_text(each.ms)), ("parameters", weights_text)):
        cost, other = getattr(candidate, unit), getattr(best, unit)
        if cost >= 0 and other >= 0 and cost != other:
            than = "instead of" if cost < other else "against"
            noisy = disturbed_text(candidate, best) * (unit == "ms")
            return f"{text(candidate)} {unit} {than} {text(best)}{noisy}"
    return f"layer {candidate.layer} of {candidate.depth}"


# clauses on one candidate of an answer


def loss(answer: Answer, candidate: Candidate) -> str:
    """How far the candidate may be below the true best; "" if that was not tested."""
    if isnan(candidate.loss):
        return ""
    if candidate.loss:
        return f"loses at most {display.loss_text(candidate.loss)} points against the true best"
    return f"shown to be the best{' of those compared' * bool(answer.untested)}"


def reason(answer: Answer, candidate: Candidate, *, risk: bool = True) -> str:
    """Why to choose a candidate: its score against the highest one, what it costs, and the ``risk`` of it."""
    best, lost = answer.best, loss(answer, candidate) if risk else ""
    if not candidate.difference:
        compression = f" by {candidate.transform}" if candidate.transform else ""
        clauses = [f"scores best{compression}, {scored_text(candidate)}", lost, speed_text(candidate)]
    else:
        below = f"{display.fixed(-candidate.difference, 1)} points below {named(best)}"
        out = "which the limits leave out" if answer.lowered else ""
        clauses = [lost, f"scores {below} ({scored_text(best)})", out, _saving(candidate, best)]
    return ", ".join(filter(None, [*clauses, candidate.thresholds]))


# clauses on the best of an answer


def cannot_rank(answer: Answer) -> str:
    """Baselines that may be as good, as a sentence without its full stop; "" for none."""
    if not answer.baselines:
        return ""
    *names, last = answer.baselines
    several = "are" if names or last.startswith("raw pixels") else "is"
    which = f"{', '.join(names)}{' and ' * bool(names)}{last} {several}"
    return f"{which} {display.NOT_WORSE} than the best: this test cannot rank"


def others_text(answer: Answer) -> str:
    """What may be the best in its place: backbones, its other layers, those of other poolings last."""
    names = [answer.column.labels[name] for name in answer.rivals]
    if len(names) > MOST_NAMED:
        names = [f"{len(names)} of {answer.compared} others"]
    places = {"": answer.layers}
    places |= {f" ({display.pooling_name(name)})": each for name, each in answer.elsewhere.items()}
    own = answer.column.labels[answer.best.backbone]  # else layers seem to be of the last one named
    texts = (f"{own} layer {display.ranges_text([*each])}{name}" for name, each in places.items() if each)
    return "; ".join([*names, *texts])


def lead(answer: Answer) -> str:
    """How the best stands to baselines, to other backbones and to its other layers."""
    others, count = others_text(answer), answer.compared
    first = cannot_rank(answer)
    if not (first or answer.rivals or answer.untested):
        better = f"shown to be better than the {'other' if count == 1 else f'{count} others'} (95 %)"
        first = better if count else "the only backbone with a score here"
    others = f"{display.NOT_WORSE}: {others}" if others else ""
    missing = f"{len(answer.untested)} not compared" if answer.untested else ""
    return "; ".join(filter(None, [first, others, missing]))


def untested_text(answer: Answer) -> str:
    """Which backbones were not compared with the best, and why; "" if all were."""
    names = some(answer.column.labels[name] for name in answer.untested)
    return f"not compared with {names}, without per-item scores of the same images" if names else ""


def held_out_text(answer: Answer, start: str = "") -> str:
    """The score with the layer chosen on other data, after a start; "" without such a choice."""
    text = f"{start}held out {display.fixed(answer.held_out, 1)} % ({display.HELD_OUT})"
    return text if answer.held_out >= 0 else ""


def too_few_text(answer: Answer) -> str:
    """That the interval of the best is too wide to be printed; "" if it is not."""
    low, high = answer.best.ci_low, answer.best.ci_high
    wide = not isnan(low) and not display.narrow(low, high)
    return display.TOO_FEW.format(units=answer.units or answer.best.unit) if wide else ""


def details(answer: Answer) -> list[str]:
    """Everything that a card tells below its answer."""
    names = ", ".join(answer.column.labels[name] for name in answer.rivals)
    clauses = [
        f"{display.NOT_WORSE}: {names}" if len(answer.rivals) > MOST_NAMED else "",
        untested_text(answer),
        too_few_text(answer),
        held_out_text(answer),
        answer.best.thresholds,
        costs_text(answer),
    ]
    return [*filter(None, clauses)]


# notes: how to read what a table tells of some answers


def _partial(answers: Sequence[Answer]) -> Iterator[str]:
    if any(answer.column.partial for answer in answers):
        yield f"†: {display.ON_A_PART}."


def _loss(answers: Sequence[Answer]) -> Iterator[str]:
    if any(each.loss >= 0 for answer in answers for each in answer.candidates):
        done = "compared" if any(answer.untested for answer in answers) else "measured"
        yield f"Loses at most: so many points below the true best of all that were {done} (95 %)."


def _milliseconds(answers: Sequence[Answer]) -> Iterator[str]:
    if timed := [answer for answer in answers if any(each.ms >= 0 for each in answer.candidates)]:
        every = [each for answer in timed for each in answer.candidates if each.ms >= 0]
        own = "" if all(each.timed_at == each.view_size for each in every) else " or else the network's own"
        size = f" at the task's size{own},"
        if not any(each.timed_at for each in every):
            size = " at the network's own input size, which may be smaller than what the task shows,"
        yield f"ms: latency of one image up to that layer,{size} on {timed[0].device}."


def _by_task(clause: Callable[[Answer], str]) -> Callable[[Sequence[Answer]], Iterator[str]]:
    """One note for each clause on some answers, behind the names of their tasks."""

    def noted(answers: Sequence[Answer]) -> Iterator[str]:
        headings: dict[str, list[str]] = {}
        for answer in answers:
            headings.setdefault(clause(answer), []).append(answer.column.heading)
        return (f"{', '.join(names)}: {text}." for text, names in headings.items() if text)

    return noted


NOTES: Mapping[str, Callable[[Sequence[Answer]], Iterator[str]]] = {
    "baselines": _by_task(cannot_rank),
    "loss": _loss,
    "held-out score": _by_task(lambda answer: held_out_text(answer, f"{answer.best.backbone}, the best, ")),
    "too few": _by_task(too_few_text),
    "ms": _milliseconds,
    "untested": _by_task(untested_text),
    "thresholds": _by_task(
        lambda answer: answer.best.thresholds and f"{named(answer.best)}, {answer.best.thresholds}"
    ),
    "partial": _partial,
}
SHOWN = ("baselines", "too few", "loss", "ms", "thresholds", "partial")  # below `answer_table`


def notes(answers: Sequence[Answer], facts: Sequence[str] = SHOWN) -> tuple[str, ...]:
    """The sentences on some facts of answers, by the keys of `NOTES`, in this order."""
    return tuple(chain.from_iterable(NOTES[fact](answers) for fact in facts))


# tables


CELLS: Mapping[str, Callable[[Answer, Candidate], str]] = {
    "task": lambda answer, _: answer.column.heading,
    "best backbone": lambda answer, each: answer.column.labels[each.backbone],
    "backbone": lambda _, each: each.backbone,
    "layer": lambda _, each: f"{each.layer}/{each.depth}",
    "vectors": lambda _, each: each.pooling,
    "score": lambda _, each: scored_text(each),
    "loses at most": lambda _, each: display.loss_text(each.loss),
    "ms": lambda _, each: display.ms_text(each.ms) + " (disturbed)" * bool(disturbed_text(each)),
    "at, px": lambda _, each: each.timed_at,
    "weights": lambda _, each: weights_text(each),
    "dim": lambda _, each: display.fixed(each.dim, 0),
    "compression": lambda _, each: each.transform,
    "a vector": lambda _, each: display.bytes_text(each.bytes),
    "an image": lambda _, each: display.bytes_text(each.image_bytes),
    "licence": lambda _, each: each.licence,
}
FIRST = ("layer", "vectors", "score", "loses at most", "ms")  # cells that fit a screen


def answer_table(answers: Sequence[Answer]) -> pd.DataFrame:
    """One row per answer, on its best, as text; empty columns are left out."""
    return candidate_table([(answer, answer.best) for answer in answers], ("task", "best backbone", *FIRST))


def candidate_table(
    candidates: Iterable[tuple[Answer, Candidate]], cells: Iterable[str] = CELLS.keys() - {"best backbone"}
) -> pd.DataFrame:
    """One row per candidate, as text: some of `CELLS`; empty columns are left out."""
    names = [name for name in CELLS if name in {*cells}]
    rows = [{name: CELLS[name](*pair) for name in names} for pair in candidates]
    table = pd.DataFrame(rows, columns=names)
    return table.loc[:, [(table[name] != "").any() for name in table]]
