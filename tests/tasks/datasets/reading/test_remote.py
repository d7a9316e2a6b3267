"""Images at addresses of fsspec, in its file system in memory and on a local server."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from tarfile import TarFile
from threading import Thread
from zipfile import ZipFile

import fsspec
import pytest
from PIL import Image

from layerboard.tasks.datasets.catalogue import read_own
from layerboard.tasks.datasets.reading.archives import unpacked
from layerboard.tasks.datasets.reading.remote import fetched
from layerboard.zoo.errors import InputError, MissingDataError


def png(shade: int) -> bytes:
    buffer = BytesIO()
    Image.new("RGB", (6, 5), (shade, 0, 0)).save(buffer, "png")
    return buffer.getvalue()


FILES = {f"{name}/{number}.png": png(40 * number) for name in ("oak", "elm") for number in range(3)}


@pytest.fixture
def bucket() -> Iterator[str]:
    system = fsspec.filesystem("memory")
    for name, content in {**FILES, ".hidden/1.png": png(9)}.items():
        system.pipe(f"/bucket/photos/{name}", content)
    yield "memory://bucket/photos"
    system.rm("/bucket", recursive=True)


def test_a_folder_is_copied_once_and_again_when_it_changes(bucket: str, tmp_path: Path) -> None:
    folder = Path(fetched(bucket, tmp_path))
    assert {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.png")} == FILES
    data = read_own(str(folder))
    assert data.name == "photos"
    stamp = (folder / "oak" / "0.png").stat().st_mtime_ns
    assert fetched(bucket, tmp_path) == str(folder)
    assert (folder / "oak" / "0.png").stat().st_mtime_ns == stamp
    fsspec.filesystem("memory").pipe("/bucket/photos/oak/9.png", png(200))
    assert fetched(bucket, tmp_path) != str(folder)
    assert unpacked(str(folder), tmp_path) == str(folder)


def test_an_archive_at_an_address_is_unpacked(tmp_path: Path) -> None:
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    fsspec.filesystem("memory").pipe("/bucket/leaves.zip", buffer.getvalue())
    folder = Path(unpacked("memory://bucket/leaves.zip", tmp_path))
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.png")} == {*FILES}


def test_a_local_server(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    place = tmp_path / "served"
    for name, content in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(place)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        folder = Path(fetched(f"{address}/", tmp_path / "cache"))
        assert {str(path.relative_to(folder)) for path in folder.rglob("*.png")} == {*FILES}
        for number, name in enumerate(("oak", "elm")):
            with TarFile(place / f"s-{number}.tar", "w") as shard:
                shard.add(place / name, name)
        folder = Path(unpacked(f"{address}/s-{{0..1}}.tar", tmp_path / "cache"))
        assert {str(path.relative_to(folder)) for path in folder.rglob("*.png")} == {*FILES}
        with pytest.raises(InputError, match=r"cannot copy http://127.0.0.1:\d+/s-2.tar"):
            unpacked(f"{address}/s-{{0..2}}.tar", tmp_path / "cache")
    finally:
        server.shutdown()
        server.server_close()


def test_what_cannot_be_copied_is_refused_in_a_sentence(bucket: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no file"):
        fetched(f"{bucket}/of/nothing", tmp_path)
    fsspec.filesystem("memory").pipe("/bucket/evil/..\\x.png", png(1))
    with pytest.raises(InputError, match="a file below the dataset's folder"):
        fetched("memory://bucket/evil", tmp_path)
    with pytest.raises(MissingDataError, match="takes a folder on this machine, found nowhere://a; download"):
        fetched("nowhere://a", tmp_path)
    assert fetched("photos", tmp_path) == "photos"
    assert not [*tmp_path.glob("**/*evil*")]
