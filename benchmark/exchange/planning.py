"""What a run would take, as tables and numbers."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pandas as pd

from benchmark.jobs.forecast import Forecast, Step

HEADINGS = ("", "images", "passes", "scores", "disk")


def forecast_frame(found: Forecast) -> pd.DataFrame:
    """One row a step, with the fields of `benchmark.jobs.forecast.Step`."""
    return pd.DataFrame([asdict(step) for step in found.steps], columns=[*Step.__dataclass_fields__])


def forecast_table(found: Forecast) -> pd.DataFrame:
    """One row a backbone, and one for what all do together, as texts."""
    frame = forecast_frame(found)
    names = [name for name in dict.fromkeys(frame["backbone"]) if name]
    rows = [_row(name, frame[frame["backbone"] == name]) for name in names]
    return pd.DataFrame([*rows, _row("together", frame[frame["backbone"] == ""])], columns=list(HEADINGS))


def forecast_lines(found: Forecast) -> Iterator[str]:
    """What it comes to, a sentence each."""
    side = "one after the other" if found.workers == 1 else f"{found.workers} side by side"
    backbones = len({step.backbone for step in found.steps if step.images})
    yield (
        f"{found.images:,} images each; {found.forwards:,} forwards of {backbones} backbones are not stored "
        f"yet, {side} on {found.device}."
    )
    yield (
        f"About {as_time(found.seconds)} in all; {as_size(found.disk)} more in the cache; "
        f"{as_size(found.memory)} of memory. (Found out in {as_time(found.warm_up)}; nothing was kept.)"
    )
    yield from found.notes


def forecast_data(found: Forecast) -> dict[str, Any]:
    """The same for machines: seconds and bytes."""
    return {**asdict(found), "forwards": found.forwards, "disk": found.disk}


def as_time(seconds: float) -> str:
    """Seconds, minutes, hours or days."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def as_size(count: float) -> str:
    """Bytes in decimal units."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e3:.0f} kB"


def _row(name: str, steps: pd.DataFrame) -> list[str]:
    scores = steps["what"].str.startswith(("scoring", "comparing"))
    times = [as_time(float(steps.loc[chosen, "seconds"].sum())) for chosen in (~scores, scores)]
    return [name, f"{int(steps['images'].sum()):,}", *times, as_size(float(steps["disk"].sum()))]
