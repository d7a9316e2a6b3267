"""What `list` shows. Imports no torch."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from benchmark.plan.facts import teachers
from leaderboards.choices.licences import fits_licence
from zoo.errors import InputError, shortened
from zoo.registry import all_specs
from zoo.seen import DATASETS
from zoo.spec import FAMILIES, BackboneSpec

Row = dict[str, object]

NOT_PINNED = "not pinned: the newest is taken when the backbone is loaded, and recorded"
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which backbones to list; None and the empty string let all through.

    Attributes:
        families: Families, in any case.
        supervision: Part of what they learned from, or of their data, in any case.
        licence: What the licence must be (`leaderboards.choices.licences.fits_licence`).
        max_parameters: Most weights.
        gated: Whether their terms must be accepted.
    """

    families: tuple[str, ...] = ()
    supervision: str = ""
    licence: str = ""
    max_parameters: int | None = None
    gated: bool | None = None

    def admits(self, spec: BackboneSpec) -> bool:
        """Whether an entry passes."""
        learned = f"{teachers(spec)}; {spec.supervision}; {spec.data}".lower()
        return (
            (not self.families or spec.family.lower() in self.families)
            and self.supervision.lower() in learned
            and fits_licence(spec.licence, self.licence)
            and (self.max_parameters is None or (spec.parameters or 0) <= self.max_parameters)
            and self.gated in (None, spec.gated)
        )


def parse_families(texts: Sequence[str]) -> tuple[str, ...]:
    """Families of an option, in lower case.

    Raises:
        InputError: There is no such family.
    """
    known = {family.lower(): family for family in FAMILIES}
    for text in texts:
        if text.lower() not in known:
            raise InputError(f"No backbone is of the family {text!r}; {_guess(text, known)}")
    return tuple(text.lower() for text in texts)


def parse_count(text: str) -> int:
    """Number of weights of an option: 86000000, 86M or 1.2G.

    Raises:
        InputError: The text is none.
    """
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?)\s*([KMGkmgBb]?)", text.strip())
    if found is None:
        raise InputError(f"A number of weights is expected, such as 100M or 1.2G, not {shortened(text)}.")
    unit = found[2].upper().replace("B", "G")
    return round(float(found[1]) * UNITS[unit])


def select(wanted: Filter) -> tuple[BackboneSpec, ...]:
    """Backbones of the registry that pass, in its order.

    Raises:
        InputError: None does.
    """
    found = tuple(spec for spec in all_specs() if wanted.admits(spec))
    if not found:
        raise InputError("No backbone of the registry passes all filters; leave one out.")
    return found


def backbone(name: str) -> BackboneSpec:
    """The entry of that name or Hub id.

    Raises:
        InputError: There is none.
    """
    by_name = {spec.name: spec for spec in all_specs()}
    by_repository = {spec.repository: spec for spec in all_specs() if "/" in spec.repository}
    spec = by_name.get(name) or by_repository.get(name)
    if spec is not None:
        return spec
    if "/" in name:
        raise InputError(
            f"{name} is no repository of the registry; 'run --backbones {name}' reads what it is from its "
            "configuration."
        )
    raise InputError(f"No backbone is called {name!r}; {_guess(name, by_name)}")


def _guess(text: str, known: Iterable[str]) -> str:
    names = list(known)
    close = get_close_matches(text.lower(), names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names)}."


def facts(spec: BackboneSpec) -> Row:
    """All that is known of a backbone, for machines."""
    return {
        "name": spec.name,
        "family": spec.family,
        "supervision": spec.supervision,
        "data": spec.data,
        "seen": None if spec.seen is None else {name: spec.seen.mark(name) for name in DATASETS},
        "seen_by": [] if spec.seen is None else list(spec.seen.sources),
        "trained": spec.trained,
        "parameters": spec.parameters,
        "depth": spec.depth,
        "width": spec.width,
        "heads": spec.heads,
        "patch": spec.patch_size,
        "stages": [
            {"blocks": stage.blocks, "width": stage.width, "stride": stage.stride} for stage in spec.stages
        ],
        "input_size": spec.input_size,
        "grids": [spec.input_size // stage.stride for stage in spec.stages],
        "layers": [str(layer) for layer in spec.layers],
        "prefix_tokens": spec.prefix_tokens,
        "class_token": spec.has_cls,
        "final_norm": spec.has_final,
        "mean": list(spec.mean),
        "std": list(spec.std),
        "licence": spec.licence,
        "gated": spec.gated,
        "paper": spec.paper or None,
        "checkpoint": spec.checkpoint,
        "repository": spec.repository or None,
        "original": spec.original or None,
        "revision": spec.revision,
        "revision_policy": revision_policy(spec),
        "load": how_to_load(spec),
    }


def revision_policy(spec: BackboneSpec) -> str:
    """Which version of the weights is taken."""
    if spec.checkpoint == "packaged":
        return "comes with the package"
    if spec.checkpoint == "generated":
        return "comes from a seed"
    if not spec.repository:
        return "the digest of the file that is given"
    return f"pinned: {spec.revision}" if spec.revision else NOT_PINNED


def how_to_load(spec: BackboneSpec) -> str:
    """Command that runs it, after what must be done before."""
    if not spec.repository:
        return f"fetch {spec.original}; run --backbones {spec.name} --weights {spec.name}=FILE"
    command = f"run --backbones {spec.name}"
    if spec.gated:
        return f"accept the terms on huggingface.co/{spec.repository}, 'hf auth login'; {command}"
    return command


def grid(spec: BackboneSpec) -> str:
    """Cells at the input size, 14x14; where stages differ, those a side of the first and the last, 56..7."""
    sides = [spec.input_size // stage.stride for stage in spec.stages]
    return f"{sides[0]}x{sides[0]}" if len(sides) == 1 else f"{sides[0]}..{sides[-1]}"


def count(number: int | None) -> str:
    """A number of weights in three digits, such as 85.8 M."""
    if number is None:
        return "unknown"
    name, unit = next((n, u) for n, u in reversed(UNITS.items()) if number >= u or u == 1)
    scaled = number / unit
    digits = 0 if not name or scaled >= 100 else 1
    return f"{scaled:.{digits}f} {name}".strip()


def brief(spec: BackboneSpec) -> Row:
    """What a table has room for; a star marks a licence whose terms must be accepted."""
    return {
        "name": spec.name,
        "family": spec.family,
        "blocks": f"{spec.depth} x {spec.width}",
        "grid": grid(spec),
        "weights": count(spec.parameters),
        "learned from": teachers(spec),
        "licence": spec.licence.partition(" (")[0] + (" *" if spec.gated else ""),
    }


def details(spec: BackboneSpec) -> Row:
    """All that is known of a backbone, for people."""
    layers = f"0 to {spec.depth}" + (", final" if spec.has_final else "")
    return {
        "name": spec.name,
        "family": spec.family,
        "learned from": spec.supervision if spec.trained else f"{spec.supervision} (untrained)",
        "data": spec.data,
        "has seen": "nobody has said" if spec.seen is None else spec.seen.summary(),
        "who says so": _sources(spec),
        "paper": spec.paper or "none",
        "weights": count(spec.parameters),
        "licence": spec.licence + (" (gated: its terms must be accepted)" if spec.gated else ""),
        "blocks": spec.depth,
        "width": spec.width,
        "heads": spec.heads or "none",
        "stages": "; ".join(
            f"{stage.blocks} blocks of {stage.width} channels, {stage.stride} px a cell"
            for stage in spec.stages
        ),
        "layers": layers,
        "prefix tokens": _prefix(spec),
        "input": f"{spec.input_size} px: {grid(spec)} cells",
        "mean, std": f"{_triple(spec.mean)}, {_triple(spec.std)}",
        "repository": spec.repository or f"none; original file: {spec.original}",
        "revision": revision_policy(spec),
        "format": spec.checkpoint,
        "to run it": how_to_load(spec),
    }


def _sources(spec: BackboneSpec) -> str:
    return "; ".join(spec.seen.sources if spec.seen else ()) or "the paper on its training data"


def _prefix(spec: BackboneSpec) -> str:
    if not spec.prefix_tokens:
        return "none: vectors are averages over the grid"
    if not spec.has_cls:
        return f"{spec.prefix_tokens} registers and no class token: vectors are averages over the grid"
    more = spec.prefix_tokens - spec.has_cls
    return f"{spec.prefix_tokens}: the class token" + (f" and {more} more" if more else "")


def _triple(values: tuple[float, float, float]) -> str:
    return "(" + " ".join(f"{value:.4g}" for value in values) + ")"


def tasks() -> list[Row]:
    """Rows of the tasks; the keys are column titles."""
    from tasks.registry import TASKS

    return [
        {"name": task.name, "what": task.title, "primary metric": task.metric, "standard data": task.data}
        for task in TASKS
    ]


def protocols() -> list[Row]:
    """Rows of the protocols; the keys are column titles."""
    from tasks.protocols import PROTOCOLS  # Its rules bring torch along.

    return [
        {
            "name": one.name,
            "tasks": " ".join(one.tasks or ("all",)),
            "what": one.title,
            "unlike its source": " ".join(one.unlike),
        }
        for one in PROTOCOLS
    ]


def suites() -> list[Row]:
    """Rows of the suites; the keys are column titles."""
    from benchmark.plan.suites import SUITES  # Its datasets bring numpy along.

    return [
        {"name": suite.name, "what": suite.title, "backbones": " ".join((*suite.backbones, suite.floor))}
        for suite in SUITES
    ]
