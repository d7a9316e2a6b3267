"""The command line, the plan and the passes: wires everything.

``benchmark.run(...)`` does from Python what ``python -m benchmark run`` does, and gives the records as a data
frame.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmark.api import run

__all__ = ["run"]


def __getattr__(name: str) -> object:
    """Load the Python call when it is first asked for, so that ``list`` and ``--help`` stay quick."""
    if name == "run":
        from benchmark.api import run

        return run
    raise AttributeError(f"module 'benchmark' has no attribute {name!r}")
