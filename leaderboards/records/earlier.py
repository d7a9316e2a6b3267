"""Results of a training that was begun again under its name: moved out of the way, not lost."""

from collections.abc import Iterable
from itertools import count
from pathlib import Path

from layerboard.leaderboards.records.files import safe_name
from layerboard.zoo.spec import Variant

EARLIER = "earlier"  # folder in the output folder, which no page reads
_FOLDERS = ("records", "items", "arrays", "examples")


def steps_of(output: Path, training: str) -> dict[int, str]:
    """The backbones of a training that have records in an output folder, by step, ascending."""
    steps: dict[int, str] = {}
    for folder in (output / "records").glob(f"{safe_name(training)}@step*"):
        name = folder.name.replace(safe_name(training), training, 1)
        series, step = Variant.of(name).checkpoint
        if str(series) == training:
            steps[step] = name
    return dict(sorted(steps.items()))


def set_aside(output: Path, names: Iterable[str]) -> str:
    """Move the results of backbones to `EARLIER`, where no page finds them; returns what to say of it."""
    listed = [*names]
    places = (output / EARLIER / str(number) for number in count(1))
    aside = next(each for each in places if not each.exists())
    for name in listed:
        for folder in _FOLDERS:
            if (there := output / folder / safe_name(name)).exists():
                (aside / folder).mkdir(parents=True, exist_ok=True)
                there.rename(aside / folder / safe_name(name))
    verb = "is" if len(listed) == 1 else "are"
    return f"{', '.join(listed)} {verb} of an earlier training of this name, and left out: moved to {aside}"
