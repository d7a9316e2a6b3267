"""The version of this package, which every record tells."""

from importlib.metadata import PackageNotFoundError, version


def _version() -> str:
    try:
        return version("layerboard")
    except PackageNotFoundError:
        return "0+source"


VERSION = _version()
"""Version of this package; "0+source" where it runs without being installed."""
