"""References between the schemas of the OpenAPI document."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

REFERENCE_TEMPLATE = "#/components/schemas/{model}"


def ref(name: str) -> Json:
    """Return a reference to a schema of the document."""
    return {"$ref": REFERENCE_TEMPLATE.format(model=name)}
