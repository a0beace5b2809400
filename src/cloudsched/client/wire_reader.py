"""Reads what the API sends by the models that it is described by, also if the API is newer than this client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from cloudsched.domain.documents.document import STORED_CONTEXT
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import ValidatorFunctionWrapHandler

M = TypeVar("M", bound=BaseModel)


def reader(model: type[M]) -> Callable[[object], M]:
    """Return what reads a model from JSON; fields that only a newer API has are kept in `model_extra`, at any depth.

    What the API sends was validated when it was stored, so costly checks are skipped.
    """

    def read(content: object) -> M:
        return model.model_validate(content, extra="allow", context=STORED_CONTEXT)

    return read


def keep_newer_value(value: object, read: ValidatorFunctionWrapHandler) -> Any:  # noqa: ANN401 - any field's type
    """Read a field; a value that only a newer API knows, such as another category, is kept as the JSON that it is."""
    try:
        return read(value)
    except (ValidationError, InvalidInput):
        return value
