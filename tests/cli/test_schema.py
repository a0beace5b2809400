"""``cloudsched schema``: what handlers take, for programs in other languages."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.cli.conftest import CommandResult


def test_schemas_are_printed_as_json_or_types(run_command: Callable[..., CommandResult], url: str) -> None:
    """Of all handlers or of some; a handler that there is not is refused with those that there are."""
    whole = json.loads(run_command("schema", "--url", url).out)
    assert set(whole) >= {"greet"}
    assert json.loads(run_command("schema", "greet", "--url", url).out) == {"greet": whole["greet"]}
    assert whole["greet"]["properties"]["name"] == {"title": "Name", "type": "string"}
    types = run_command("schema", "greet", "--typescript", "--url", url).out
    assert "export interface GreetPayload {\n  name: string;" in types
    assert "export interface Payloads {\n  greet: GreetPayload;\n}" in types
    refused = run_command("schema", "great", "--url", url)
    assert refused.code == 2
    assert "No handler is called 'great'. There are: " in refused.err
