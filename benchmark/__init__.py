"""Which frozen vision backbone, and which of its layers, is best for which task?

From Python as from the command line (``python -m benchmark run``): `run` shows every image to every backbone
once, scores every layer on every task, writes leaderboards and gives the records as a data frame.
"""

import inspect
from collections.abc import Callable
from textwrap import fill, indent
from typing import TYPE_CHECKING

from benchmark.request import Request
from benchmark.request.exchange import CompareRequest
from benchmark.request.loading import LoadRequest
from benchmark.request.option import called_with
from leaderboards.records.version import VERSION

if TYPE_CHECKING:
    import pandas as pd

    from zoo.look.cut import CutBackbone

__all__ = ["__version__", "compare", "load", "run"]

__version__ = VERSION


@called_with(Request)
def run(request: Request) -> "pd.DataFrame":
    """Run backbones through tasks and give the records of this output folder's suite.

    Does what ``python -m benchmark run`` does, with the same options. Work that is done already is not done
    again. Without options: the mini suite, offline, in one to two minutes.

    Returns:
        One row a number, with the columns of ``leaderboards.records.record.Record``. Failures of single
        backbones or tasks do not raise; they are sentences in ``frame.attrs["failures"]``.

    Raises:
        zoo.errors.InputError: Something that was given is wrong.

    Example:
        >>> import benchmark
        >>> records = benchmark.run("mini-dino", ["knn", "davis"], output="results")  # doctest: +SKIP
    """
    from benchmark.api import carry_out
    from benchmark.engines.progress import Silent

    summary = carry_out(request, Silent())
    frame = summary.records
    frame.attrs["failures"] = [str(failure) for failure in summary.done.failures]
    return frame


@called_with(CompareRequest, without=("json",))
def compare(request: CompareRequest) -> "pd.DataFrame":
    """Compare two backbones that were run, paired, on every task that both ran on the same images.

    Does what ``python -m benchmark compare`` does, with the same options.

    Returns:
        One row a comparison, with the columns of ``leaderboards.versus.match_frame``. What the numbers show,
        in words, is ``frame.attrs["conclusion"]``; what could not be compared, and why,
        ``frame.attrs["left_out"]``.

    Raises:
        zoo.errors.InputError: Something that was given is wrong, or nothing can be compared.

    Example:
        >>> import benchmark
        >>> benchmark.compare("mini-fs", "mini-dino", output="results")  # doctest: +SKIP
    """
    from benchmark.exchange.comparison import matched
    from leaderboards.versus import conclusion, match_frame

    found = matched(request)
    frame = match_frame(found)
    frame.attrs |= {"conclusion": conclusion(found), "left_out": list(found.left_out)}
    return frame


@called_with(LoadRequest)
def load(request: LoadRequest) -> "CutBackbone":
    """Load a backbone that ends after a layer: a function from images to vectors.

    Blocks after the layer are never run and their weights not kept, so that it costs what the table of costs
    says of that depth. Images are shown as the run shows them.

    Returns:
        An object that maps one image of Pillow, several, or uint8 pixels [images 3 height width] to vectors
        [images dim] (grids [images rows columns dim] with ``pooling="grid"``), float32 on its device. It has
        ``spec``, ``layer``, ``dim`` and ``parameters``.

    Raises:
        zoo.errors.InputError: There is no such backbone or layer, or its files cannot be had.

    Example:
        >>> import benchmark
        >>> encode = benchmark.load("mini-dino", layer=8, pooling="cls")  # doctest: +SKIP
        >>> vectors = encode(images)  # doctest: +SKIP
    """
    from benchmark.exchange.loading import loaded

    return loaded(request)


def _described(function: Callable[..., object]) -> str:
    """Name, options with their defaults, and documentation of a public function, as text."""
    signature = inspect.signature(function)
    shown = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    options = str(signature.replace(parameters=shown, return_annotation=signature.empty))
    call = fill(f"{function.__name__}{options}", 100, subsequent_indent=" " * 4)
    return f"{call}\n\n{indent(inspect.getdoc(function) or '', ' ' * 4)}"


_PUBLIC: tuple[Callable[..., object], ...] = (run, compare, load)

__doc__ = "\n\n".join([(__doc__ or "").rstrip(), *map(_described, _PUBLIC)])
