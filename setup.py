"""One import name: the folders of the checkout are installed as parts of the package ``layerboard``."""

from setuptools import find_packages, setup

PARTS = ("benchmark", "leaderboards", "mini", "tasks", "zoo")
INSIDE = [f"layerboard.{name}" for name in find_packages() if name.partition(".")[0] in PARTS]

setup(
    packages=["layerboard", *INSIDE, "benchmark"],
    package_dir={f"layerboard.{part}": part for part in PARTS} | {"benchmark": "layerboard/shim"},
)
