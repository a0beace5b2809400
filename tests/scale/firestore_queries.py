"""The part of Firestore's queries that the store's lists use, over values by their paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from google.cloud.firestore_v1.types import query as proto
from tests.scale.index_ranges import to_plain

_Operator = proto.StructuredQuery.FieldFilter.Operator
_DESCENDING = proto.StructuredQuery.Direction.DESCENDING


def is_descending(query: Any) -> bool:  # noqa: ANN401 - a protobuf message
    """Return whether a query's order is descending: all of it is, or none."""
    return any(each.direction == _DESCENDING for each in query.order_by)


def make_match(query: Any) -> Callable[[dict[str, Any], str], tuple[Any, ...] | None]:  # noqa: ANN401 - a message
    """Return what tells where a document stands in a query's order, or None if it does not match."""
    conditions = [(each.field.field_path, each.op, _plain(each.value)) for each in _iter_conditions(query.where)]
    order = [each.field.field_path for each in query.order_by if each.field.field_path != "__name__"]
    goes_down = is_descending(query)
    start = [_plain(each) for each in query.start_at.values]

    def match(values: dict[str, Any], name: str) -> tuple[Any, ...] | None:
        for field_path, operator, wanted in conditions:
            value = values.get(field_path)
            if value is None or not _holds(value, operator, wanted):
                return None
        place = [values.get(each) for each in order]
        if any(value is None for value in place):
            return None
        if start:
            here = [*place, name][: len(start)]
            if not (here < start if goes_down else here > start):
                return None
        return tuple(place)

    return match


def _iter_conditions(where: Any) -> Iterator[Any]:  # noqa: ANN401 - protobuf messages
    match where.WhichOneof("filter_type"):
        case "field_filter":
            yield where.field_filter
        case "composite_filter":
            for each in where.composite_filter.filters:
                yield from _iter_conditions(each)


def _holds(value: Any, operator: int, wanted: Any) -> bool:  # noqa: ANN401, PLR0911 - one case for each operator
    match operator:
        case _Operator.EQUAL:
            return bool(value == wanted)
        case _Operator.IN:
            return value in wanted
        case _Operator.ARRAY_CONTAINS:
            return wanted in value
        case _Operator.LESS_THAN:
            return bool(value < wanted)
        case _Operator.LESS_THAN_OR_EQUAL:
            return bool(value <= wanted)
        case _Operator.GREATER_THAN_OR_EQUAL:
            return bool(value >= wanted)
        case _:
            return bool(value > wanted)


def _plain(value: Any) -> Any:  # noqa: ANN401 - a protobuf value
    return value.reference_value if value.HasField("reference_value") else to_plain(value)
