"""How large are the folders of the program, and which names mean two things?

    python -m tools.shape

Prints the folders with the most modules of their own, and the names of classes and type aliases that more than one
module defines. Nothing is judged here: a person reads it before and after a change of structure.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tools.sources import ROOT

_LARGEST = 5
MOST_MODULES = 27  # of one folder: more need folders of their own


def modules_of(package: Path) -> Counter[str]:
    """How many modules lie in each folder itself, without its sub-folders and `__init__.py`."""
    paths = (path for path in package.rglob("*.py") if path.name != "__init__.py")
    return Counter(path.parent.relative_to(package.parent).as_posix() for path in paths)


def type_names(tree: ast.Module) -> Iterator[str]:
    """Public classes and type aliases of a module: `class A`, `A = B | C`, `A = B[C]`."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.BitOr()) | ast.Subscript()):
                pass
            case _:
                continue
        if not name.startswith("_") and not name.isupper():
            yield name


def defined_twice(package: Path) -> dict[str, list[str]]:
    """Type names that more than one module of a package defines, with these modules."""
    found = defaultdict[str, list[str]](list)
    for path in sorted(package.rglob("*.py")):
        for name in type_names(ast.parse(path.read_text(encoding="utf-8"))):
            found[name].append(path.relative_to(package.parent).as_posix())
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


def main() -> None:
    package = ROOT / "proxy"
    for folder, number in modules_of(package).most_common(_LARGEST):
        print(f"{number:4} modules in {folder}")
    twice = defined_twice(package)
    print(f"{len(twice):4} type names defined in more than one module")
    for name, places in twice.items():
        print(f"     {name}: {', '.join(places)}")


if __name__ == "__main__":
    main()
