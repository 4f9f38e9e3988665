"""Which tree is the same as a long chain of AND or OR, and not deep?

`x = 1 OR x = 2 OR ...` is `x IN (1, 2, ...)` and `x <> 1 AND x <> 2 AND ...` is `x NOT IN (1, 2, ...)`, for NULL too;
other operands stay in their order, in halves. Later stages descend by recursion, and read one list as one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

_LONG = 50  # operands; shorter chains stay as they are written
_EQUALITIES: dict[type[exp.Expr], type[exp.Expr]] = {exp.Or: exp.EQ, exp.And: exp.NEQ}


def flattened(tree: exp.Expression) -> None:
    """Rebuild the long chains of a tree, the innermost first, in place."""
    found = [n for n in tree.find_all(exp.And, exp.Or) if type(n.parent) is not type(n) and _is_long(n)]
    for chain in reversed(found):
        chain.replace(_halves(type(chain), _merged(type(chain), _operands(chain))))


def _is_long(chain: exp.Expr) -> bool:
    node = chain
    for _ in range(_LONG):
        if type(node) is not type(chain):
            return False
        node = node.this
    return True


def _operands(chain: exp.Expr) -> list[exp.Expression]:
    found, node = list[exp.Expression](), chain
    while type(node) is type(chain):
        found.append(node.expression)
        node = node.this
    assert isinstance(node, exp.Expression)
    return [node, *reversed(found)]


def _merged(kind: type[exp.Expr], operands: Sequence[exp.Expression]) -> list[exp.Expression]:
    """The operands with the choices of one column as one list, where the first of them stood."""
    found: dict[object, list[exp.Expression]] = {}
    for place, operand in enumerate(operands):
        found.setdefault(_column_of(kind, operand) or place, []).append(operand)
    return [same[0] if len(same) == 1 else _listed(kind, same) for same in found.values()]


def _column_of(kind: type[exp.Expr], operand: exp.Expression) -> tuple[object, bool] | None:
    """Which column, as it is spelled, an operand compares with a constant, and whether that is a string, if it does."""
    node = operand
    while isinstance(node, exp.Paren):
        node = node.this
    if type(node) is not _EQUALITIES[kind] or not isinstance(node.this, exp.Column):
        return None
    constant = node.expression
    if not isinstance(constant, exp.Literal):
        return None
    is_string = bool(constant.args.get("is_string"))
    if not is_string and not str(constant.this).isdigit():
        return None
    return tuple((part.name, part.args.get("quoted")) for part in node.this.parts), is_string


def _listed(kind: type[exp.Expr], same: Sequence[exp.Expression]) -> exp.Expression:
    plain = [operand.unnest() for operand in same]
    asked = exp.In(this=plain[0].this, expressions=[node.expression for node in plain])
    return asked if kind is exp.Or else exp.Not(this=asked)


def _halves(kind: type[exp.Expr], operands: Sequence[exp.Expression]) -> exp.Expression:
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    made = kind(this=_halves(kind, operands[:middle]), expression=_halves(kind, operands[middle:]))
    assert isinstance(made, exp.Expression)
    return made
