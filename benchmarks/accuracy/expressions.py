"""Integer expressions in workload files: ``B*S``, ``ceil(K, 128)``, with sizes by name."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

Sizes = Mapping[str, float]

OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
FUNCTIONS: dict[str, Callable[..., float]] = {
    "ceil": lambda a, b: -(-a // b),
    "max": max,
    "min": min,
}


class ExpressionError(ValueError):
    """The text is no expression, or a name in it has no value."""


def evaluate(text: str | int | float, sizes: Sizes) -> float:
    """The value of an expression; numbers pass through."""
    if isinstance(text, int | float):
        return text
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, sizes)
    except KeyError as error:
        raise ExpressionError(f"cannot evaluate {text!r}: no size {error}") from None
    except (SyntaxError, TypeError, AttributeError, ArithmeticError) as error:
        raise ExpressionError(f"cannot evaluate {text!r}: {error}") from None


def whole(text: str | int | float, sizes: Sizes) -> int:
    """The same, rounded to an integer."""
    return round(evaluate(text, sizes))


def _value(node: ast.expr, sizes: Sizes) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.BinOp):
        apply = OPERATORS[type(node.op)]
        return apply(_value(node.left, sizes), _value(node.right, sizes))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, sizes)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return FUNCTIONS[node.func.id](*(_value(a, sizes) for a in node.args))
    raise TypeError(f"{type(node).__name__} is not allowed")
