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


def test_every_package_is_pinned_with_its_hashes() -> None:
    """`make lock` writes them; pip refuses a file that lacks one."""
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        assert len(lines) > 10
        for line in lines:
            assert re.match(r"[\w.\[\],-]+==[\w.]+ ", line), line
            assert "--hash=sha256:" in line, line


def test_the_image_installs_nothing_unpinned_and_runs_as_nobody_special() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    installs = [step for line in text.splitlines() for step in line.split("&&") if "pip install" in step]
    assert len(installs) == 3
    assert all("--require-hashes" in step or "--no-index" in step for step in installs)
    assert all("--no-deps" in step for step in installs), "a lock is whole: nothing else may be looked up"
    last = text.rpartition("\nFROM ")[2]
    assert re.search(r"useradd --uid 6432 .*--shell /usr/sbin/nologin hushql", last)
    assert last.index("USER hushql") < last.index("ENTRYPOINT")
    assert not re.search(r"^(ADD|ARG) ", text, re.MULTILINE), "nothing from elsewhere, no secret of a build"


def test_no_install_from_a_lock_looks_up_what_packages_want() -> None:
    """A requirement with an extra, as `coverage[toml]>=7`, makes pip look at releases that are newer than the lock."""
    for name in ("tools/venv.sh", ".ci/run", "Dockerfile"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            assert "--require-hashes" not in line or "--no-deps" in line, (name, line)
