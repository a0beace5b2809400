"""What a task says that brings a script in place of a handler: JavaScript, and which handlers it may call.

The script is the body of an async function. It is given the task's payload as ``input``, calls handlers as
``await tools.lookup({…})``, and what it returns is the execution's result. It is code of users, not of developers: what
runs it is an `Interpreter` that gives it nothing else.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from cloudsched.domain.documents.document import WireModel
from cloudsched.errors import InvalidInput

SCRIPT_HANDLER = "cloudsched.script"
"""The built-in handler of tasks that have a script."""
MAX_SOURCE = 64 * 1024
"""How many bytes a script may have, as UTF-8."""
MAX_TOOLS = 100
_MAX_EXACT_INTEGER = 2**53
"""Beyond it, JavaScript's numbers cannot say every integer."""


def _check_size(source: str) -> str:
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_SOURCE:
        raise ValueError(f"has {size} bytes, and {MAX_SOURCE} is the most")
    return source


ScriptSource = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SOURCE), AfterValidator(_check_size)]
"""JavaScript, at most 64 KiB of it."""
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Script(WireModel):
    """What a task runs that brings its own code."""

    source: ScriptSource
    """The body of an async function, in JavaScript."""
    tools: Annotated[tuple[ToolName, ...], Field(max_length=MAX_TOOLS)] | None = None
    """The handlers that it may call; all that are tools, if it is left out. No handler is one unless it is marked."""


def require_exact(field: str, value: object) -> None:
    """Check that JSON that a script is given says the same to it: its numbers would change an id without a word.

    Raises:
        InvalidInput: It has an integer beyond 2^53; `field` is the path of it.
    """
    match value:
        case list():
            for index, item in enumerate(value):
                require_exact(f"{field}.{index}", item)
        case dict():
            for key, item in value.items():
                require_exact(f"{field}.{key}", item)
        case int() if abs(value) > _MAX_EXACT_INTEGER:
            raise InvalidInput(field, "is an integer beyond 2^53, which JavaScript cannot say", "Give it as a string.")
        case _:
            return
