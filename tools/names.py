"""Which outside names does a module use, under whatever alias?

Resolves imports and attribute chains (`import numpy as np; np.random.x` uses `numpy.random.x`) by syntax alone.
Assignments are not followed; instead every use of a name as a value is reported, so that `make = Reserved` shows up.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of a dotted name.

    is_value: it could be called or passed on; False in an annotation, a pattern, `isinstance`, an import.
    is_definition: the class statement that defines it.
    """

    name: str
    line: int
    is_value: bool
    is_definition: bool = False


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Local name to dotted origin, for every import in the file wherever it stands."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return known


def _shadowed(tree: ast.Module) -> frozenset[str]:
    """Names the file itself defines or assigns; they hide builtins of that name."""
    bound = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    bound |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return frozenset(bound | {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)})


def _type_positions(tree: ast.Module) -> frozenset[int]:
    """Identities of the nodes that only name a type: annotations, patterns, the classes of isinstance."""
    roots: list[ast.AST] = []
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=ast.expr() as written) | ast.AnnAssign(annotation=written):
                roots.append(written)
            case ast.FunctionDef(returns=ast.expr() as written) | ast.AsyncFunctionDef(returns=ast.expr() as written):
                roots.append(written)
            case ast.MatchClass(cls=written):
                roots.append(written)
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, written]):
                roots.append(written)
            case _:
                pass
    return frozenset(id(inner) for root in roots for inner in ast.walk(root))


def _chain(node: ast.expr) -> tuple[str, list[str]]:
    """The Name an attribute chain starts at (empty for a computed value) and the attributes after it."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else ""), parts[::-1]


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[Use]:
    for alias in node.names:
        name = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
        yield Use(name=name, line=node.lineno, is_value=False)


def uses(tree: ast.Module) -> Iterator[Use]:
    """Every use of a name in a module, imports included; of a chain `a.b.c` the longest form only."""
    aliases = _aliases(tree)
    hidden = _shadowed(tree) - aliases.keys()
    types = _type_positions(tree)
    inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from _imports(node)
            case ast.ClassDef(name=name):
                yield Use(name=name, line=node.lineno, is_value=False, is_definition=True)
            case ast.Name(ctx=ast.Load()) | ast.Attribute() if id(node) not in inner:
                first, rest = _chain(node)
                # a local variable is nobody's module; a class keeps its name, wherever it is defined
                if first in hidden and first[:1].islower():
                    first = ""
                if first or rest:
                    name = ".".join([aliases.get(first, first), *rest])
                    yield Use(name=name, line=node.lineno, is_value=id(node) not in types)
            case _:
                pass
