"""Rendering of the mini suite's datasets into the package: ``python -m workshop.render``."""

from filecmp import cmpfiles
from pathlib import Path
from tempfile import TemporaryDirectory

from layerboard.benchmark.commands.command import command, ended_by_signals, say
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Form, OnePath, Option, Plain
from layerboard.benchmark.forms.request import Cache, Workers, cache_option
from layerboard.mini.packs import DATA
from layerboard.zoo.errors import InputError, some
from workshop.command import run_by_arguments
from workshop.render.packs import pack_data, rendered_data


class RenderRequest(Form):
    """Options of the rendering."""

    to: OnePath = Option(str(DATA), "Folder of the packs.", usual="that of the package")
    check: Plain[bool] = Option(
        False, "Write nothing there; say whether the packs would have the same bytes."
    )
    cache: Cache = cache_option("Folder of rendered images, which later calls reuse.")
    workers: Workers = Option(
        None,
        "Processes for rendering.",
        least=1,
        instead=parsers.default_workers,
        usual="number of processors",
    )


@command("render", RenderRequest)
def render_command(request: RenderRequest) -> None:
    """Render the mini suite's datasets and pack them for the package.

    Equal sources give equal bytes on one kind of machine; mathematical functions may differ in the last bit
    on another. Packs that are there are kept: remove them first if pixels have changed.

    Example: `python -m workshop.render --check`
    """
    with ended_by_signals("interrupted; run again to go on") as report:
        rendered = rendered_data(request.cache, request.workers, report)
        if request.check:
            with TemporaryDirectory() as folder:
                pack_data(rendered, Path(folder, "packs"))
                require_same_bytes(Path(folder, "packs"), request.to)
        else:
            pack_data(rendered, request.to)
    say(request.to)


def require_same_bytes(packs: Path, others: Path) -> None:
    """Raise InputError unless two folders have the same files, byte for byte."""
    names = {path.relative_to(root) for root in (packs, others) for path in root.rglob("*") if path.is_file()}
    _, unlike, missing = cmpfiles(packs, others, sorted(map(str, names)), shallow=False)
    if unlike or missing:
        raise InputError(f"expected the same files in {others}, found others: {some([*unlike, *missing])}")


def main() -> None:
    """Render by the arguments of the process."""
    run_by_arguments(render_command)


if __name__ == "__main__":
    main()
