"""The faults of a caller's data, those of one check together, and in the language of the caller.

The errors of pydantic become errors of our own. Names are those of JSON, except where Python code is told.
"""

from __future__ import annotations

import difflib
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic import BaseModel, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from cloudsched.domain.documents.category import Label
from cloudsched.domain.documents.delivery_channels import CallbackUrl
from cloudsched.domain.documents.event import EventName
from cloudsched.domain.documents.script import ScriptName
from cloudsched.domain.documents.task import Owner, TaskId
from cloudsched.domain.documents.usage import Month
from cloudsched.domain.in_words import describe_error, list_errors
from cloudsched.errors import InvalidInput, InvalidSchedule, SearchLimitReached
from cloudsched.features.fields import QueueName, Skill

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

    Place = tuple[str | int, ...]

WIRE: Final = {"wire": True}
"""The validation context of data with the names of JSON. Its faults are told by these names."""


def to_invalid_input(
    error: ValidationError,
    prefix: str = "",
    kind: type[InvalidInput] = InvalidInput,
    *,
    model: type[BaseModel] | None = None,
) -> InvalidInput:
    """Convert pydantic's error. `field` is the path as the caller wrote it, and `others` are further errors.

    Unknown fields come first: "taskType" says more than that `handler` is missing. `prefix` is the field
    that has the data, and the fields of `model` are proposed for unknown ones.
    """
    return join_faults(
        [_convert(each, prefix, kind, model) for each in list_errors(error, "extra_forbidden")],
    )


def _convert(
    error: dict[str, Any], prefix: str, kind: type[InvalidInput], model: type[BaseModel] | None
) -> InvalidInput:
    parts = (*((prefix,) if prefix else ()), *error["loc"])
    problem, hint = describe_error(error, _describe_patterns())
    if len(error["loc"]) == 1:
        hint = getattr(model, "lines", {}).get(error["loc"][0], hint)
    if error["type"] == "extra_forbidden":
        owner = None if model is None else _find_owner(model, error["loc"][:-1])
        return unknown_field(parts, f"is no field {getattr(owner, 'called', 'here')}", owner, kind)
    if error["type"] == "model_type" and model is not None:
        hint = _show_fields(_find_owner(model, error["loc"])) or hint
    made = kind(".".join(str(part) for part in parts) or "(body)", problem, hint)
    made.path = parts
    return made


def _show_fields(model: type[BaseModel] | None) -> str:
    """Return how to write an object of a model whose fields are known: with those that it must have."""
    fields = {} if model is None else model.model_fields
    required = [f'"{field.alias or name}": …' for name, field in fields.items() if field.is_required()]
    return f"Give its fields by their names, {{{', '.join(required)}}}." if required else ""


def unknown_field(
    place: Place, problem: str, model: type[BaseModel] | None, kind: type[InvalidInput] = InvalidInput
) -> InvalidInput:
    """Return the error of a field that a model does not have.

    Its hint is the field that is meant, or all, if few.
    """
    names = [] if model is None else [field.alias or name for name, field in model.model_fields.items()]
    known = {_simplify(each): each for each in (*names, *getattr(model, "beside", ()))}
    plain = _simplify(str(place[-1]))
    other = str(getattr(model, "other_names", {}).get(plain, ""))
    near = [other] if other else difflib.get_close_matches(plain, list(known), n=1, cutoff=_CLOSE)
    meant = known.get(near[0]) if near else None
    if meant is not None:
        hint = f"Did you mean {meant}?" + (" It is in seconds." if plain.endswith(_UNITS) else "")
    else:
        listed = f"; there are {', '.join(names)}" if 0 < len(names) <= _MOST_LISTED else ""
        hint = other or f"Remove it, or check its spelling{listed}."
    made = kind(".".join(map(str, place)), problem, hint)
    made.path = place
    made.meant = meant
    return made


def _find_owner(model: type[BaseModel], place: Place) -> type[BaseModel] | None:
    found: type[BaseModel] | None = model
    for part in place:
        if found is None:
            return None
        if isinstance(part, str):
            fields = {field.alias or name: field.annotation for name, field in found.model_fields.items()}
            found = _find_model(fields.get(part))
    return found


def _find_model(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _find_model(each)) is not None), None)


_CLOSE: Final = 0.75
"""The part of a name that has to be right for another one to be proposed."""
_MOST_LISTED: Final = 16
_UNITS: Final = ("inminutes", "inhours", "inms")


def _simplify(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def join_faults(faults: Sequence[InvalidInput]) -> InvalidInput:
    """Return one error that tells all faults, each place once.

    It is of the kind that all have in common: a schedule's, if all are of schedules, else `InvalidInput`.
    A schedule with several meanings stays one, and comes first.
    """
    every = [fault for error in faults for fault in error.faults]
    meant = {".".join(map(str, (*_find_place(each)[:-1], each.meant))) for each in every if each.meant is not None}
    places: dict[str, InvalidInput] = {}
    for each in every:
        if not (each.field in meant and each.problem == MISSING):
            places.setdefault(each.field, each)
    first, *others = sorted(places.values(), key=lambda each: not each.readings)  # they say how to go on
    kinds = {type(each) for each in places.values()}
    if len(kinds) > 1 and not first.readings:
        kind = InvalidSchedule if all(issubclass(each, InvalidSchedule) for each in kinds) else InvalidInput
        joined = kind(first.field, first.problem, first.hint)
        joined.path = first.path
        joined.args = first.args
        joined.words = first.words
        joined.__cause__ = first.__cause__
        first = joined
    first.others = tuple(others)
    return first


class Faults(list[InvalidInput]):
    """Collects the errors of several checks.

    Each runs in a block of its own, and `tell` raises all at once.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> bool:
        if not isinstance(error, InvalidInput) or isinstance(error, SearchLimitReached):
            return False
        self.append(error)
        return True

    def tell(self) -> None:
        """Raise InvalidInput if there were errors."""
        if self:
            joined = join_faults(self)
            raise joined from joined.__cause__


MISSING: Final = "Field required"
"""The message of pydantic for a field that is missing."""


def find_top(fault: InvalidInput) -> str:
    """Return the name of the field at fault, or of the one that has it. Empty for the whole."""
    return str(next(iter(_find_place(fault)), ""))


def _find_place(fault: InvalidInput) -> Place:
    return fault.path if fault.path is not None else tuple(fault.field.split("."))


def say_in_python(error: InvalidInput, given: Iterable[str], model: type[BaseModel]) -> None:
    """Name fields in an error's message as Python code does: as they were given, or as the model does.

    `field` and the names inside a field stay those of JSON, which such data has.
    """
    spelled = {to_camel(name): name for name in given}
    names = {alias: name for name, field in model.model_fields.items() if (alias := field.alias or name) != name}
    for each in error.faults:
        said = str(each.args[0])
        hint = each.hint
        name, *inside = map(str, _find_place(each) or (each.field,))
        if not inside and hint:
            each.hint = re.sub(r"\w+", lambda found: names.get(found[0], found[0]), hint)
            said = said.replace(f"({hint})", f"({each.hint})")
        if said.startswith(f"{each.field}: "):
            field = ".".join((spelled.get(name) or names.get(name, name), *inside))
            said = f"{field}: {said.removeprefix(f'{each.field}: ')}"
        each.args = (said,)


@cache
def _describe_patterns() -> Mapping[str, str]:
    """Return the patterns of names in words."""
    from cloudsched.domain.documents.record import CountryCode  # noqa: PLC0415 - only for errors

    return {
        next(str(each.pattern) for each in get_args(kind) if isinstance(each, StringConstraints)): f"must be {words}"
        for kind, words in (
            (TaskId, "1 to 128 letters, digits, hyphens and underscores"),
            (Owner, "1 to 128 characters, none of them a slash or a control character"),
            (EventName, "1 to 128 letters, digits, dots, hyphens and underscores"),
            (QueueName, "1 to 64 letters, digits, hyphens and underscores"),
            (Skill, "1 to 64 letters, digits, dots, hyphens and underscores"),
            (ScriptName, "1 to 64 letters, digits, hyphens and underscores"),
            (CountryCode, "the code of a country, such as FR"),
            (CallbackUrl, "the address of a page, such as https://example.com/done"),
            (Month, "a month, such as 2027-01"),
            (
                Label,
                "key=value, such as team=payments; the key begins with a small letter and has no capitals",
            ),
        )
    }
