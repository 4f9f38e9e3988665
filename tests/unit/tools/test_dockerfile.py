"""Does the image's build stage get everything that the wheel is made of?"""

from __future__ import annotations

import re
import tomllib

from tools.sources import ROOT


def wanted() -> set[str]:
    """The files and folders that building the wheel reads."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    return {"pyproject.toml", project["project"]["readme"], *wheel["packages"], *wheel["force-include"]}


def test_the_wheel_is_more_than_the_package() -> None:
    assert {"proxy", "policies", "README.md"} <= wanted()


def test_the_dockerfile_copies_what_the_wheel_is_made_of() -> None:
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert wanted() <= {name for line in lines for name in line.split()}


def test_docker_is_allowed_to_see_it() -> None:
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert wanted() <= {line.removeprefix("!") for line in kept if line.startswith("!")}
