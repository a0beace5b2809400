"""Which fields a payload may have, according to the pydantic schema of its annotation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic_core import CoreSchema


def accepts_field(schema: CoreSchema, field: str) -> bool:
    """Whether a field of a value would be used: False only for a plain model that would reject or ignore it.

    True for a model with a validator that runs before its fields: it may accept anything.
    """
    kind: Mapping[str, Any] = schema
    if kind["type"] == "definitions":  # a recursive model
        named = {each.get("ref"): each for each in kind["definitions"]}
        kind = named.get(kind["schema"].get("schema_ref"), kind["schema"])
    if kind["type"] != "model" or kind.get("root_model") or kind["schema"]["type"] != "model-fields":
        return True
    config = kind["cls"].model_config
    return config.get("extra") == "allow" or field in _iter_accepted_names(kind["schema"]["fields"], config)


def _iter_accepted_names(fields: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    for name, field in fields.items():
        alias = field.get("validation_alias")
        if alias is None or config.get("populate_by_name") or config.get("validate_by_name"):
            yield name
        if isinstance(alias, str):
            yield alias
        elif alias is not None:  # a path, or several of them
            yield from (str(path[0]) for path in ([alias] if isinstance(alias[0], str) else alias))
