"""Paths of records and of what belongs to them, results that are set aside, and this package's version."""

import re
from collections.abc import Iterable
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path

from layerboard.zoo.spec import Variant

RESULTS_VERSION = 1  # raise it when any number of a record changes for the same weights and data

LONGEST = 150  # maximum bytes of a file name, which leaves room for extensions
NEAR_DUPLICATES = "near-duplicates.csv"  # table in the output folder
NEAR_DUPLICATE_PAIRS = "near-duplicate-pairs.csv"  # the pairs behind it

EARLIER = "earlier"  # folder in the output folder, which no page reads
_FOLDERS = ("records", "items", "arrays", "examples")

OWN_ENDING = 9  # characters at the end of the name of own data: a hyphen, and a digest of their content


def is_own_name(dataset: str) -> bool:
    """Whether a dataset in records is the user's own: its name ends with a digest of its content."""
    return re.fullmatch(rf".*-[0-9a-f]{{{OWN_ENDING - 1}}}", dataset, re.DOTALL) is not None


def task_key(task: str, dataset: str, protocol: str, transform: str = "", sets: bool = False) -> str:
    """Name of a task's files, without an extension, such as ``knn.imagenet.standard+whiten+sets``.

    A dataset of the catalogue has one such name, complete or not: the last measurement on it replaces others.
    The user's own images have a digest of their content in ``dataset``.
    """
    parts = [f"{task}.{dataset}.{protocol}", transform.replace(":", "-"), "sets" if sets else ""]
    return "+".join(filter(None, parts))


def scored_path(key: str, *backbones: str, ending: str = "parquet") -> Path:
    """Path of a file of records, items or arrays below its folder; ``key`` comes from `task_key`."""
    return Path("--".join(safe_name(name) for name in backbones)) / f"{safe_name(key)}.{ending}"


def safe_name(name: str) -> str:
    """A backbone's name as a file name, visible and valid on all systems; Hub ids contain slashes.

    A name that is not valid (``./own-vit``, ``timm:vit``) loses the offending characters and gets a digest of
    the whole name, so that it shares no file with another.
    """
    flat = name.strip("/").replace("/", "__").replace("\\", "__")
    plain = re.sub(r"^\.+_*|[\x00-\x1f\x7f<>:\"|?*]|[. ]+$", "", flat)
    if plain and plain == flat and len(flat.encode()) <= LONGEST:
        return flat
    cut = plain.encode()[: LONGEST - 9].decode(errors="ignore")
    return f"{cut or 'unnamed'}-{blake2b(name.encode(), digest_size=4).hexdigest()}"


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


def version_of(library: str) -> str:
    """The version of a library; "" if it is not installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


VERSION = version_of("layerboard") or "0+source"  # a checkout is not installed
