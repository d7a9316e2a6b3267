"""Options of the command that says what to use, each declared once."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Literal, get_args

from benchmark.request import parsers
from benchmark.request.option import Option

Licences = Literal["any", "commercial"]

Texts = str | Sequence[str]


@dataclass(frozen=True)
class RecommendRequest:
    """For which tasks, and within which limits; the command ``recommend`` has exactly these options."""

    tasks: Option[Texts, tuple[str, ...]] = Option(
        (),
        "Tasks that one backbone is wanted for.",
        parsers.names,
        short="-t",
        also=("--task",),
        several=True,
        shown="all that were run",
    )
    _: KW_ONLY
    output: Option[str | Path, Path] = Option(
        "results", "Folder of records and per-item files.", parsers.path, short="-o"
    )
    backbones: Option[Texts, tuple[str, ...]] = Option(
        (), "Names or patterns ('dino-*').", parsers.names, short="-b", several=True, shown="all"
    )
    max_ms: Option[float | None, float | None] = Option(
        None, "Most milliseconds of one image, up to the layer.", parsers.positive
    )
    max_dim: Option[int | None, int | None] = Option(
        None, "Most numbers of a vector.", parsers.whole, least=1
    )
    max_parameters: Option[int | str | None, int | None] = Option(
        None, "Most weights up to the layer, such as 100M.", parsers.count
    )
    licence: Option[Licences, Licences] = Option(
        "any",
        "commercial: licences alone whose names allow it; no legal advice.",
        parsers.choice,
        choices=get_args(Licences),
    )
    device: Option[str | None, str | None] = Option(
        None, "Times of this device: cpu, cuda, or a part of its name.", parsers.text, shown="the latest"
    )
    json: Option[bool, bool] = Option(False, "For machines.", parsers.switch)
