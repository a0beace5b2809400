"""Which queries Firestore serves with the indexes of a file, by its documented rules. The emulator serves all queries.

* A filter or an order on one field takes a single-field index. There is one in each direction for every field, unless
  the field, a map that holds it, or the collection's ``*`` is exempt; an exemption lists the indexes that remain.
* Any other query takes a composite index of its filters' fields, in any order, and then exactly its order.
* A query with several ``==`` filters, no other filter, and perhaps an order may instead merge indexes that each serve
  some of the filters in that order. Nothing promises it for ranges, or beside ``in`` or ``array-contains``.
* ``array-contains`` takes an index of the array's elements, where another one would be of the field.
* ``in`` counts as one disjunction for each value, and a query has at most 30 of them.
* The last part of an order is the document's name, in the direction of the field before it.

Sources: firebase.google.com/docs/firestore/query-data/indexing, …/index-overview (index merging, exemptions) and
…/queries (``in``, limits of ``or``).
"""

from __future__ import annotations

import json
import math
import runpy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from google.cloud.firestore_v1.types import query as proto

SCRIPT = Path(__file__).parents[3] / "infra" / "lib" / "firestore_indexes.py"
MAX_DISJUNCTIONS = 30
_NAME = "__name__"
_ELEMENTS = "[]"
"""What stands behind the name of an array whose elements are indexed."""
_BOTH = ("ASCENDING", "DESCENDING")
_And = proto.StructuredQuery.CompositeFilter.Operator.AND
_Operator = proto.StructuredQuery.FieldFilter.Operator
_Direction = proto.StructuredQuery.Direction
_RANGES = {
    _Operator.LESS_THAN,
    _Operator.LESS_THAN_OR_EQUAL,
    _Operator.GREATER_THAN,
    _Operator.GREATER_THAN_OR_EQUAL,
}
Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Index:
    """One index of a collection: its fields, each with a direction."""

    collection: str
    scope: str
    fields: Fields

    def __str__(self) -> str:
        return f"{self.collection} ({', '.join(f'{field} {direction}' for field, direction in self.fields)})"


@dataclass(frozen=True, slots=True)
class QueryShape:
    """What of a query decides which indexes it takes."""

    collection: str
    scope: str
    equal: frozenset[str]
    order: Fields
    name_direction: str
    has_range: bool
    disjunctions: int
    is_exact: bool
    """Whether it has filters for which no indexes are merged."""


class UnknownShape(Exception):
    """A query is of a kind that these rules do not cover."""


@dataclass(frozen=True, slots=True)
class Indexes:
    composites: frozenset[Index]
    overrides: Mapping[tuple[str, str], frozenset[Index]]
    """The single-field indexes of a collection's field; of ``*``, those of all fields without an entry."""

    @classmethod
    def from_file(
        cls,
        path: Path,
        shards: Literal["one", "growing", "many"] = "one",
        prefix: str = "",
        *,
        has_clients: bool = False,
    ) -> Indexes:
        """Read a file in the format of ``firestore.indexes.json``: the indexes of a database with so many shards."""
        content, script = json.loads(path.read_text(encoding="utf-8")), runpy.run_path(str(SCRIPT))
        chosen = script["choose_indexes"](content, shards, has_clients=has_clients)
        return cls.from_content(script["add_prefix"](chosen, prefix))

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Indexes:
        """Return the indexes that the content of such a file describes."""
        composites = frozenset(
            Index(
                each["collectionGroup"],
                each["queryScope"],
                tuple(_read_field(field) for field in each["fields"]),
            )
            for each in content["indexes"]
        )
        overrides = {
            (each["collectionGroup"], each["fieldPath"]): frozenset(
                Index(each["collectionGroup"], index["queryScope"], ((each["fieldPath"], index["order"]),))
                for index in each["indexes"]
            )
            for each in content["fieldOverrides"]
        }
        return cls(composites, overrides)

    def __iter__(self) -> Iterator[Index]:
        """Yield every index that the file asks for."""
        yield from self.composites
        for each in self.overrides.values():
            yield from each

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes(self.composites | other.composites, {**self.overrides, **other.overrides})

    def without(self, index: Index) -> Indexes:
        overrides = {field: each - {index} for field, each in self.overrides.items()}
        return replace(self, composites=self.composites - {index}, overrides=overrides)

    def why_refused(self, query: Any) -> str | None:  # noqa: ANN401 - a protobuf message
        """Return why production would refuse a ``StructuredQuery``, or None."""
        try:
            shape = read_shape(query)
        except UnknownShape as error:
            return f"No rule here says that it is served: {error}"
        if shape.disjunctions > MAX_DISJUNCTIONS:
            return f"It has {shape.disjunctions} disjunctions; {MAX_DISJUNCTIONS} are the maximum."
        if self._is_served(shape):
            return None
        fields = (*((field, "ASCENDING") for field in sorted(shape.equal)), *shape.order)
        return f"The query requires an index: {Index(shape.collection, shape.scope, fields)}"

    def _is_served(self, shape: QueryShape) -> bool:
        if not shape.equal and not shape.order:
            return True
        serving = [
            (frozenset(field for field, _ in index.fields[: len(index.fields) - len(shape.order)]), index)
            for index in self._candidates(shape)
        ]
        if any(equal == shape.equal for equal, _ in serving):
            return True
        if shape.is_exact or shape.has_range or len(shape.equal) < 2:
            return False
        parts = [equal for equal, _ in serving if equal and equal <= shape.equal]
        return frozenset().union(*parts) == shape.equal

    def _candidates(self, shape: QueryShape) -> Iterator[Index]:
        """Yield the indexes whose entries are in the query's order within equal values of the fields before."""
        single = (
            index
            for field in (*shape.equal, *(field for field, _ in shape.order))
            for index in self.single_field_indexes(shape.collection, field)
        )
        for index in (*self.composites, *single):
            if (index.collection, index.scope) != (shape.collection, shape.scope):
                continue
            begin = len(index.fields) - len(shape.order)
            ends_right = index.fields[begin:] == shape.order if shape.order else True
            if begin >= 0 and ends_right and index.fields[-1][1] == shape.name_direction:
                yield index

    def single_field_indexes(self, collection: str, field: str) -> frozenset[Index]:
        parts = field.split(".")
        paths = [".".join(parts[:size]) for size in range(len(parts), 0, -1)]
        for path in (*paths, "*"):
            if (collection, path) in self.overrides:
                found = self.overrides[collection, path]
                return frozenset(replace(index, fields=((field, index.fields[0][1]),)) for index in found)
        return frozenset(Index(collection, "COLLECTION", ((field, direction),)) for direction in _BOTH)


def read_shape(query: Any) -> QueryShape:  # noqa: ANN401 - a protobuf message
    """Return what of a ``StructuredQuery`` decides which indexes it takes.

    Raises:
        UnknownShape: These rules do not cover such a query.
    """
    (source,) = query.from_
    equal, ranges, sizes = set[str](), set[str](), [1]
    for field, operator, value in _iter_filters(query.where):
        if operator in _RANGES:
            ranges.add(field)
        elif operator == _Operator.EQUAL:
            equal.add(field)
        elif operator == _Operator.ARRAY_CONTAINS:
            equal.add(f"{field}{_ELEMENTS}")
        elif operator == _Operator.IN:
            equal.add(field)
            sizes.append(len(value.array_value.values))
        else:
            raise UnknownShape(f"operator {operator}")
    order = [(each.field.field_path, _Direction(each.direction).name) for each in query.order_by]
    if not order and ranges:
        order = [(field, "ASCENDING") for field in sorted(ranges)]
    name = order.pop() if order and order[-1][0] == _NAME else None
    last = order[-1][1] if order else "ASCENDING"
    if name is not None and order and name[1] != last:
        raise UnknownShape("the name is in another direction than the field before it")
    if len(ranges) > 1 or not ranges <= {field for field, _ in order[:1]} or equal & {field for field, _ in order}:
        raise UnknownShape("a range or an equal field that is not as usual in the order")
    return QueryShape(
        source.collection_id,
        "COLLECTION_GROUP" if source.all_descendants else "COLLECTION",
        frozenset(equal),
        tuple(order),
        name[1] if name is not None else last,
        has_range=bool(ranges),
        disjunctions=math.prod(sizes),
        is_exact=len(sizes) > 1 or any(field.endswith(_ELEMENTS) for field in equal),
    )


def _read_field(field: Mapping[str, str]) -> tuple[str, str]:
    return (field["fieldPath"], field["order"]) if "order" in field else (field["fieldPath"] + _ELEMENTS, "ASCENDING")


def _iter_filters(where: Any) -> Iterator[tuple[str, int, Any]]:  # noqa: ANN401 - a protobuf message
    match where.WhichOneof("filter_type"):
        case "field_filter":
            yield where.field_filter.field.field_path, where.field_filter.op, where.field_filter.value
        case "composite_filter":
            if where.composite_filter.op != _And:
                raise UnknownShape("a filter that is not AND")
            for each in where.composite_filter.filters:
                yield from _iter_filters(each)
        case "unary_filter":
            raise UnknownShape("a unary filter")
