"""A call handle that is used as if it were the call's result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.harness import run

from cloudsched import App, Context

MISUSES: dict[str, Callable[[Any], object]] = {
    "added to": lambda call: call + 1,
    "compared": lambda call: call > 1,
    "read by its index": lambda call: call[0],
    "gone through": lambda call: [*call],
    "taken for a yes": bool,
    "compared with a value": lambda call: call == 3,
    "put into a text": lambda call: f"{call}",
    "made a text": str,
    "counted": len,
    "searched": lambda call: 1 in call,
    "read by an attribute": lambda call: call.total,
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misusing_a_call_as_its_result_names_the_result_method(app: App, misuse: str) -> None:
    """Every misuse raises an error that names `result`; as a handler's return value it stands for the result."""
    app.handler("one")(lambda: 1)

    def use(ctx: Context) -> object:
        call = ctx.call("one")
        with pytest.raises((TypeError, AttributeError), match=r"Use call\.result\(\) to get the result"):
            MISUSES[misuse](call)
        return call

    assert run(app, use).content == 1
