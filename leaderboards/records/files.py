"""Where the records and the per-item measurements of a backbone's task are, below their folders."""

from pathlib import Path


def task_key(task: str, dataset: str, protocol: str) -> str:
    """Name of a task's files, without an ending."""
    return f"{task}.{dataset}.{protocol}"


def scored_path(key: str, *backbones: str, ending: str = "parquet") -> Path:
    """Path of a file of records, items or arrays below its folder; ``key`` is what `task_key` gives."""
    return Path("--".join(safe_name(name) for name in backbones)) / f"{key}.{ending}"


def safe_name(name: str) -> str:
    """A backbone's name as a file name; Hub ids and paths contain slashes."""
    return name.strip("/").replace("/", "__").replace("\\", "__")
