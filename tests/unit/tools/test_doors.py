"""Does the door check find a violation planted in each forbidden place, and leave the doors themselves alone?"""

from __future__ import annotations

import ast

import pytest

from tools import doors
from tools.sources import Source


def found(path: str, text: str) -> list[str]:
    return [finding.text for finding in doors.findings(Source(path, text, ast.parse(text)))]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("proxy/session/x.py", "import random\nrandom.random()"),
        ("proxy/dp/samplers.py", "import numpy as np\nnp.random.normal()"),
        ("proxy/server/x.py", "import secrets"),
        ("proxy/server/x.py", "from os import urandom"),
        ("proxy/server/x.py", "import os\nos.urandom(8)"),
        ("proxy/ledger/x.py", "import uuid\nuuid.uuid4()"),
        ("proxy/dp/quantiles.py", "import opendp.prelude as dp"),
        ("proxy/plan/x.py", "from sqlglot import exp"),
        ("proxy/admin/x.py", "import importlib\nimportlib.import_module('random')"),
        ("proxy/admin/x.py", "__import__('random')"),
        ("proxy/wire/x.py", "import socket"),
        ("proxy/sql/x.py", "from time import monotonic"),
        ("proxy/policy/x.py", "open('p.yaml')"),
        ("proxy/policy/x.py", "from pathlib import Path"),
        ("proxy/dp/x.py", "import threading"),
        ("proxy/analysis/x.py", "import logging"),
        ("proxy/plan/x.py", "from datetime import datetime\ndatetime.now()"),
        ("proxy/plan/x.py", "import datetime as d\nd.date.today()"),
        ("proxy/plan/x.py", "import os\nos.environ"),
        ("proxy/plan/charge.py", "Reserved(1)"),
        ("proxy/session/x.py", "from proxy.plan.charge import Reserved as R\nR(1)"),
        ("proxy/session/x.py", "make = Reserved"),
        ("proxy/session/x.py", "class Fake(Reserved): ..."),
        ("proxy/session/x.py", "from proxy.release import model\nmodel.Release()"),
        ("proxy/front/x.py", "def f(x: RawResult) -> None: ..."),
        ("proxy/release/x.py", "RawResult()"),
    ],
)
def test_a_planted_violation_is_found(path: str, text: str) -> None:
    assert found(path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("proxy/dp/samplers.py", "import os, threading\nimport opendp.prelude as dp\nos.urandom(8)"),
        ("proxy/admin/demo/data.py", "import numpy as np\nnp.random.default_rng(1)"),
        ("proxy/admin/demo/survey.py", "import numpy as np\nnp.random.default_rng(1)"),
        ("proxy/sql/syntax/parse.py", "import sqlglot\nsqlglot.parse_one('x')"),
        ("proxy/ledger/sqlite/ledger.py", "import sqlite3, os\nfrom proxy.plan.charge import Reserved\nReserved(1)"),
        ("proxy/release/x.py", "def f(x: RawResult) -> Release:\n    return Release()"),
        ("proxy/engines/x.py", "RawResult()"),
        ("proxy/session/x.py", "def f(x: Reserved, y: Release) -> None: ..."),
        ("proxy/sql/x.py", "import re\nre.compile('x')\nfrom datetime import datetime\ndatetime(2020, 1, 1)"),
        ("proxy/policy/x.py", "from pathlib import PurePath"),
        ("tests/unit/x.py", "import random\nReserved(1)"),
    ],
)
def test_what_is_allowed_is_left_alone(path: str, text: str) -> None:
    assert not found(path, text)


def test_each_finding_is_told_once_with_its_line_and_reason() -> None:
    text = "import socket\nx = 1\nsocket.socket(), socket.socket()"
    findings = list(doors.findings(Source("proxy/wire/x.py", text, ast.parse(text))))
    assert [(f.line, f.text.split(":")[0]) for f in findings] == [(1, "socket"), (3, "socket.socket")]
