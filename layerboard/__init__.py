"""Which frozen vision backbone, and which of its layers, is best for which task?

Python has the same functions as the command line (``layerboard run``). `run` shows every image to every
backbone once, scores every layer on every task, and writes leaderboards; `best`, `recommend`, `compare`
and `cka` read what runs have written; `load` returns a backbone cut after a layer, and
`LayerEncoder` is one for pipelines of scikit-learn; `from_module` makes a backbone of your own network, and
`Callback` scores it while it is trained.
Results display themselves as tables, and have the numbers as data frames (``.frame``).
"""

import inspect
import warnings
from collections.abc import Callable
from importlib import import_module
from textwrap import fill, indent

from layerboard.zoo.errors import InputError
from layerboard.zoo.libraries import end_command

# what libraries say in a notebook without widgets, which progress here does without
warnings.filterwarnings("ignore", message="IProgress not found")

try:
    from layerboard.benchmark.commands.check import check
    from layerboard.benchmark.commands.cka import cka
    from layerboard.benchmark.commands.compare import compare
    from layerboard.benchmark.commands.cost import cost
    from layerboard.benchmark.commands.export import export
    from layerboard.benchmark.commands.features import features
    from layerboard.benchmark.commands.from_module import from_module
    from layerboard.benchmark.commands.list import list_backbones
    from layerboard.benchmark.commands.load import compression, load
    from layerboard.benchmark.commands.look import look
    from layerboard.benchmark.commands.merge import merge
    from layerboard.benchmark.commands.recommend import recommend
    from layerboard.benchmark.commands.report import report
    from layerboard.benchmark.commands.run import forecast, run
    from layerboard.benchmark.commands.show import best, show
    from layerboard.leaderboards.records.files import VERSION
except Exception as error:  # of a library that even the help needs
    end_command(error)
    raise

__all__ = [  # noqa: RUF022  # in the order in which they are described
    "run",
    "best",
    "recommend",
    "show",
    "compare",
    "cka",
    "forecast",
    "load",
    "compression",
    "LayerEncoder",
    "from_module",
    "Callback",
    "list_backbones",
    "cost",
    "features",
    "merge",
    "export",
    "report",
    "look",
    "check",
    "InputError",
    "__version__",
]

__version__ = VERSION


def __getattr__(name: str) -> object:
    """The classes for scikit-learn and for trainers, imported where they are used: that takes seconds."""
    if module := {"LayerEncoder": "encoder", "Callback": "callback"}.get(name):
        return getattr(import_module(f"layerboard.benchmark.commands.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _described(function: Callable[..., object]) -> str:
    """Name, options with defaults, and documentation of a public function, as text."""
    signature = inspect.signature(function)
    parameters = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    options = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    call = fill(f"{function.__name__}{options}", 100, subsequent_indent=" " * 4)
    return f"{call}\n\n{indent(inspect.getdoc(function) or '', ' ' * 4)}"


_FUNCTIONS = [globals()[name] for name in __all__ if name[0].islower()]
__doc__ = "\n\n".join([(__doc__ or "").rstrip(), *map(_described, _FUNCTIONS)])
