"""A pack's card: what people and ``datasets`` read of it on the Hub."""

from pathlib import PurePosixPath

from tasks.datasets.packs.manifest import Manifest

CARD = "README.md"
"""Name of the file."""


def card_of(manifest: Manifest) -> str:
    """The card, Markdown behind YAML that names the shards of each dataset and split."""
    lines = ["---", "configs:"]
    for name, dataset in sorted(manifest.items()):
        lines += [f"- config_name: {name}", "  data_files:"]
        splits = {
            PurePosixPath(shard.name).name.rpartition("-of-")[0].rpartition("-")[0]
            for shard in dataset.shards
        }
        for split in sorted(splits):
            lines += [f"  - split: {split}", f"    path: {name}/{split}-*.parquet"]
    lines += ["---", "", "# Datasets in their official layouts", ""]
    lines += ["Each row is a file: its path below the data folder, and its bytes. Read it with", ""]
    lines += ["    python -m benchmark run --data hf:THIS", "", "| dataset | what is there | files | bytes |"]
    lines += ["|---|---|---|---|"]
    rows = sorted(manifest.items())
    lines += [f"| {name} | {one.coverage} | {one.files:,} | {one.bytes:,} |" for name, one in rows]
    lines += ["", "Licences are those of the datasets; not all of them may be handed on.", ""]
    return "\n".join(lines)
