"""Which frozen vision backbone, and which of its layers, is best for which task?

From Python as from the command line (``python -m benchmark run``): `run` shows every image to every backbone
once, scores every layer on every task, and writes leaderboards; `best`, `recommend`, `compare` and `cka` read
what runs have written; `load` gives a backbone cut after a layer, `from_module` makes one of any network of
your own. Results show themselves as tables, and have the numbers as data frames (``.frame``).
"""

import inspect
from collections.abc import Callable
from textwrap import fill, indent

from benchmark.calls.reading import best, cka, compare, list_backbones, recommend, show
from benchmark.calls.running import features, forecast, from_module, load, run
from benchmark.calls.writing import export, merge, report
from leaderboards.records.version import VERSION

__all__ = [
    "__version__",
    "best",
    "cka",
    "compare",
    "export",
    "features",
    "forecast",
    "from_module",
    "list_backbones",
    "load",
    "merge",
    "recommend",
    "report",
    "run",
    "show",
]

__version__ = VERSION


def _described(function: Callable[..., object]) -> str:
    """Name, options with their defaults, and documentation of a public function, as text."""
    signature = inspect.signature(function)
    shown = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    options = str(signature.replace(parameters=shown, return_annotation=signature.empty))
    call = fill(f"{function.__name__}{options}", 100, subsequent_indent=" " * 4)
    return f"{call}\n\n{indent(inspect.getdoc(function) or '', ' ' * 4)}"


_PUBLIC: tuple[Callable[..., object], ...] = (
    *(run, best, recommend, show, compare, cka),
    *(forecast, load, from_module, list_backbones, features, merge, export, report),
)

__doc__ = "\n\n".join([(__doc__ or "").rstrip(), *map(_described, _PUBLIC)])
