"""Every network of timm that a suite or a page names opens with random weights, smaller than it is."""

import importlib
import re
from typing import Any

import pytest
from torch import nn

from layerboard.benchmark.plan.suites import SUITES
from layerboard.zoo.own.timm_models import timm_network
from workshop.site.pages import DOCS

timm = pytest.importorskip("timm", exc_type=ImportError)

PAGES = "\n".join(path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md")))
NAMED = {name for suite in SUITES for name in suite.backbones if name.startswith("timm:")}
NAMED |= {*re.findall(r"\btimm:[a-z]\w+(?:\.\w+)?", PAGES)}
OTHERS = ()
