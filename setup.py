"""One import name: the folders of the checkout are installed as parts of the package ``layerboard``."""

from setuptools import find_packages, setup

PARTS = ("benchmark", "leaderboards", "mini", "tasks", "zoo")
FOLDERS = {f"layerboard.{part}": part for part in PARTS}

setup(
    packages=[
        "layerboard",
        *(f"layerboard.{name}" for name in find_packages() if name.partition(".")[0] in PARTS),
    ],
    py_modules=["benchmark"],  # for `python -m benchmark`
    package_dir={"": "layerboard/shim", "layerboard": "layerboard"} | FOLDERS,
)
