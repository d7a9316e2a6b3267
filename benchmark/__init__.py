"""The command line, the plan and the passes: wires everything."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def run(
    backbones: Sequence[str] = (),
    tasks: Sequence[str] = (),
    *,
    suite: str | None = None,
    data: str | Path | None = None,
    images: str | None = None,
    output: str | Path = "results",
    cache: str | Path | None = None,
    device: str = "auto",
    dtype: str = "float32",
    batch_size: int = 64,
    workers: int | None = None,
    layers: str = "all",
    taps: Sequence[str] = ("block",),
    input_size: int | None = None,
    interpolation: str = "huggingface",
    limit: int | None = None,
    floor: bool = True,
    protocol: str | None = None,
    weights: Mapping[str, str | Path] | None = None,
) -> "pd.DataFrame":
    """Run backbones through tasks and give the records of this output folder's suite.

    Arguments mean what the options of ``python -m benchmark run`` of the same names do. Work that is done
    already is not done again.

    Returns:
        One row a number, with the columns of ``leaderboards.records.record.Record``. Failures of single
        backbones or tasks do not raise; they are sentences in ``frame.attrs["failures"]``.

    Raises:
        InputError: Something that was given is wrong.

    Example:
        >>> import benchmark
        >>> records = benchmark.run(["mini-dino"], ["knn"], output="results")  # doctest: +SKIP
    """
    from benchmark.api import carry_out
    from benchmark.engines.progress import Silent
    from benchmark.request import Request, default_cache, default_workers, parse_interpolation, parse_taps

    request = Request(
        output=Path(output),
        cache=Path(cache) if cache else default_cache(),
        device=device,
        dtype=dtype,  # type: ignore[arg-type]
        batch_size=batch_size,
        workers=workers or default_workers(),
        layers=layers,
        taps=parse_taps(taps),
        suite=suite,
        backbones=tuple(backbones),
        tasks=tuple(tasks),
        data=Path(data) if data else None,
        images=images,
        limit=limit,
        floor=floor,
        protocol=protocol,
        weights={name: Path(path) for name, path in (weights or {}).items()},
        input_size=input_size,
        interpolation=parse_interpolation(interpolation),
    )
    summary = carry_out(request, Silent())
    frame = summary.records
    frame.attrs["failures"] = [str(failure) for failure in summary.done.failures]
    return frame
