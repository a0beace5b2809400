"""The TypeScript client says what the API and the Python client say: types, verbs and errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic.alias_generators import to_camel
from tests.clients.typescript_types import FOLDER, GENERATED, generate

from cloudsched.cli.schema import declare_payloads
from cloudsched.client import Client
from cloudsched.client.flow import _KINDS, _STATUSES


def test_the_types_are_those_of_the_api() -> None:
    """They are generated from the OpenAPI document; `python -m tests.clients.typescript_types` does it again."""
    assert GENERATED.read_text("utf-8") == generate()


def test_the_verbs_are_those_of_the_python_client() -> None:
    """Each public method of the Python client has its like; nothing of it but connections is left out."""
    source = (FOLDER / "src/client.ts").read_text("utf-8") + GENERATED.read_text("utf-8")
    verbs = set(re.findall(r"^  (?:async )?\*?([a-z]\w+)(?:<[^(]*>)?\(", source, re.MULTILINE)) - {"constructor"}
    python = {to_camel(name) for name in dir(Client) if not name.startswith("_")}
    assert python - verbs == {"close", "face", "runFlow"}


def test_errors_are_the_classes_of_the_python_client() -> None:
    """A problem's type, or else its status, leads to the class of the same name."""
    source = (FOLDER / "src/errors.ts").read_text("utf-8")
    kinds = dict(re.findall(r'^  "([a-z-]+)": (\w+),$', source, re.MULTILINE))
    statuses = dict(re.findall(r"^  (\d+): (\w+),$", source, re.MULTILINE))
    assert {name: each.__name__ for name, each in _KINDS.items()}.items() <= kinds.items()
    assert {str(status): each.__name__ for status, each in _STATUSES.items()}.items() <= statuses.items()


@pytest.mark.parametrize(
    "folder",
    [FOLDER, Path(__file__).with_name("firebase"), Path(__file__).parents[1] / "dashboard/browser/node"],
)
def test_the_lock_file_names_no_host(folder: Path) -> None:
    """What is installed is named by its hash, and is fetched from whatever registry npm is told to use."""
    lock = json.loads((folder / "package-lock.json").read_text("utf-8"))
    assert all("resolved" not in each and "integrity" in each for name, each in lock["packages"].items() if name)


def test_payloads_have_the_types_of_their_schemas() -> None:
    """Nested models, choices, maps and free objects; names that TypeScript has to quote; no model at all."""
    item = {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}
    order = {
        "$defs": {"Item": item},
        "type": "object",
        "description": "An order. */ export const evil = 1; /*",
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            "speed": {"enum": ["fast", "slow"], "type": "string"},
            "left over": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "prices": {"type": "object", "additionalProperties": {"type": "number"}},
            "place": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}]},
            "any": {},
        },
        "required": ["items"],
    }
    assert (
        declare_payloads({"place-order": order, "9lives": None})
        == """export interface PlaceOrderItem {
  sku: string;
}

/** An order. *\\/ export const evil = 1; /* */
export interface PlaceOrderPayload {
  items: Array<PlaceOrderItem>;
  speed?: "fast" | "slow";
  "left over"?: number | null;
  prices?: Record<string, number>;
  place?: [number, number];
  any?: unknown;
}

/** The payload of each handler, by its name. */
export interface Payloads {
  "place-order": PlaceOrderPayload;
  "9lives": Record<string, unknown>;
}
"""
    )
