"""Does a file speak of something that is not the project?

Paths of somebody's machine, numbers of a tracker, hosts of registries and left-over markers have no place in the
sources, the documents or the examples. Spelling and style are not looked at.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.sources import ROOT, Finding, project_files, report

#: Each pattern is spelled so that it does not match its own source.
FORBIDDEN = (
    (
        re.compile(r"(?<![\w.$}\"*-])[/](?:work\b(?![-\w])|root[/]\w|home[/]\w+[/]|Users[/]\w+[/])"),
        "one machine's path",
    ),
    (re.compile(r"(?<![\w.$}*-])[/]opt[/](?:pypi|wheels)"), "one machine's path"),
    (re.compile(r"(?i)\bissues?\s+#?\s*\d+|\b(?:fixes|closes|resolves)\s+#?\d+\b"), "a tracker's number"),
    (re.compile(r"(?<![\w&/#])[#]\d{1,5}\b(?=[\s.,;:)]|$)"), "a tracker's number"),
    (re.compile(r"(?i)pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|\w+\.debian\.org"), "a registry's host"),
    (re.compile(r"(?i)repo\d*\.maven|proxy\.golang\.org|static\.crates\.io|registry-1\.docker"), "a registry's host"),
    (re.compile(r"\b(?:T[O]DO|F[I]XME|H[A]CK)\b"), "a left-over marker"),
)

#: Files whose content is not ours to word, with the reason.
EXEMPT = {
    "requirements.lock": "written by the lock tool",
    "requirements-dev.lock": "written by the lock tool",
    "proxy/console/static/vendor/codemirror.js": "a library as it is bundled",
    "proxy/console/static/vendor/htmx.js": "a library as it is bundled",
    "proxy/console/static/vendor/plot.js": "a library as it is bundled",
    "proxy/console/static/vendor/LICENCES.txt": "the libraries' own words",
}


def findings(path: str, text: str) -> Iterator[Finding]:
    """The lines of one file that say what they should not."""
    for number, line in enumerate(text.splitlines(), start=1):
        matches = ((pattern.search(line), meaning) for pattern, meaning in FORBIDDEN)
        match, meaning = next(((found, why) for found, why in matches if found), (None, ""))
        if match:
            yield Finding(path, number, f"{meaning}: {match.group(0).strip()!r}")


def project_findings(root: Path) -> Iterator[Finding]:
    """Every such line of the project; files that are not UTF-8 text are passed over."""
    for path in project_files(root):
        name = path.relative_to(root).as_posix()
        if name in EXEMPT:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        yield from findings(name, text)


def main() -> int:
    return report("words", project_findings(ROOT))


if __name__ == "__main__":
    sys.exit(main())
