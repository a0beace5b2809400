"""The small changes that a mutation run makes: each breaks one comparison, condition, value, call or order.

A mutation edits the source text at one node's place and leaves the rest of the file, its line numbers and its comments
as they are. Docstrings, annotations, `TYPE_CHECKING` blocks, log calls and the texts of errors are left alone: no test
should depend on them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.Mod: "+",
    ast.BitOr: "&",
    ast.BitAnd: "|",
}
_SWAPPED_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SKIPPED_CALLS = {"debug", "info", "warning", "exception", "log", "getLogger", "TypeVar", "TypeAdapter", "Field"}


@dataclass(frozen=True)
class Mutated:
    """A file with one mutation."""

    source: str
    line: int
    change: str


@dataclass(frozen=True)
class _Edit:
    begin: int
    end: int
    text: str
    line: int


def count_mutations(source: str) -> int:
    """Return how many mutations a file has."""
    return len(_find_edits(source))


def list_mutations(source: str) -> list[tuple[int, str]]:
    """Return the line and the change of each of a file's mutations."""
    data = source.encode()
    return [(edit.line, _describe(data, edit)) for edit in _find_edits(source)]


def apply_mutation(source: str, index: int) -> Mutated:
    """Return the file with one of its mutations.

    Raises:
        IndexError: It has no such mutation.
    """
    edit = _find_edits(source)[index]
    data = source.encode()
    mutated = (data[: edit.begin] + edit.text.encode() + data[edit.end :]).decode()
    ast.parse(mutated)
    return Mutated(mutated, edit.line, _describe(data, edit))


def _describe(data: bytes, edit: _Edit) -> str:
    before = data[edit.begin : edit.end].decode()
    return f"{' '.join(before.split())[:70]} -> {' '.join(edit.text.split())[:70]}"


def _find_edits(source: str) -> list[_Edit]:
    finder = _Finder(source)
    return list(finder.find(ast.parse(source)))


class _Finder:
    """Walks a file's tree and yields the mutations of each node."""

    def __init__(self, source: str) -> None:
        self._data = source.encode()
        self._starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def find(self, node: ast.AST) -> Iterator[_Edit]:
        """Yield the mutations of a node and of all below it."""
        if _is_skipped(node):
            return
        yield from self._mutate(node)
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "decorator_list", "type_params", "bases"}:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.find(child)

    def _mutate(self, node: ast.AST) -> Iterator[_Edit]:  # noqa: C901, PLR0912 - one case for each kind of node
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                for text in _COMPARISONS.get(type(operator), ()):
                    yield self._between(left, right, text)
            case ast.BoolOp(op=operator, values=values):
                for first, second in pairwise(values):
                    yield self._between(first, second, "or" if isinstance(operator, ast.And) else "and")
                for value in values:
                    yield self._replace(value, "True" if isinstance(operator, ast.And) else "False")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._replace(node, f"({self._text(operand)})")
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                if not _has_text(left) and not _has_text(right):
                    yield self._between(left, right, _OPERATORS[type(operator)])
            case ast.Constant(value=bool() as value):
                yield self._replace(node, str(not value))
            case ast.Constant(value=int() | float() as value):
                yield self._replace(node, repr(value + 1))
            case ast.If(test=test) | ast.While(test=test):
                if not isinstance(test, ast.Constant):
                    yield self._replace(test, f"not ({self._text(test)})")
            case ast.IfExp(test=test):
                yield self._replace(test, f"not ({self._text(test)})")
            case ast.Call(func=ast.Name(id=name)) if name in _SWAPPED_CALLS:
                yield self._replace(node.func, _SWAPPED_CALLS[name])
            case ast.Call(func=ast.Name(id="sorted"), args=[first, *_]):
                yield self._replace(node, f"list({self._text(first)})")
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield self._replace(value, "None")
            case ast.Expr(value=ast.Call()):
                yield self._replace(node, "pass")
            case ast.Continue():
                yield self._replace(node, "break")
            case ast.Break():
                yield self._replace(node, "continue")

    def _between(self, left: ast.expr, right: ast.expr, text: str) -> _Edit:
        """Replace the operator between two operands, and keep the brackets around them."""
        begin, end = self._offset(left.end_lineno, left.end_col_offset), self._offset(right.lineno, right.col_offset)
        gap = self._data[begin:end].decode()
        closing = gap[: len(gap) - len(gap.lstrip(") \n"))]
        opening = gap[len(gap.rstrip("( \n")) :]
        return _Edit(begin, end, f"{closing.rstrip(' ')} {text} {opening.lstrip(' ')}", left.end_lineno or 0)

    def _replace(self, node: ast.stmt | ast.expr, text: str) -> _Edit:
        begin = self._offset(node.lineno, node.col_offset)
        return _Edit(begin, self._offset(node.end_lineno, node.end_col_offset), text, node.lineno)

    def _text(self, node: ast.expr) -> str:
        begin = self._offset(node.lineno, node.col_offset)
        return self._data[begin : self._offset(node.end_lineno, node.end_col_offset)].decode()

    def _offset(self, line: int | None, column: int | None) -> int:
        return self._starts[(line or 1) - 1] + (column or 0)


def _is_skipped(node: ast.AST) -> bool:
    """Whether nothing of a node is mutated: what only people read, and what only type checkers do."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.Raise() | ast.JoinedStr():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name in _SKIPPED_CALLS
        case ast.Expr(value=ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name))):
            return name in _SKIPPED_CALLS
    return False


def _has_text(node: ast.expr) -> bool:
    return any(
        isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in ast.walk(node)
    )
