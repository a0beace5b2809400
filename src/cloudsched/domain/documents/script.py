"""The script of a sandboxed task: JavaScript in place of a handler, and the handlers that it may call.

The script is the body of an async function. It gets the task's payload as ``input``, calls handlers as
``await tools.lookup({…})`` and its owner's stored scripts as ``await scripts.greet({…})``, and its return
value is the execution's result. It is untrusted code of users: it runs in an `Interpreter` that gives it
access to nothing else.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from cloudsched.domain.documents.document import InputModel
from cloudsched.errors import InvalidInput

SCRIPT_HANDLER = "cloudsched.script"
"""The built-in handler of tasks that have a script."""
CALL_PREFIX = "scripts."
"""The prefix of the names of calls of scripts in the journal, as in the script itself."""
SCRIPT_CALL = "script_call"
"""The field of a call that says which script is called, in which tree, and whether a user wrote it."""
MAX_SOURCE = 64 * 1024
"""The largest script, in bytes as UTF-8."""
MAX_TOOLS = 100
_MAX_EXACT_INTEGER = 2**53
"""Beyond it, JavaScript's numbers cannot represent every integer."""


def _check_size(source: str) -> str:
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_SOURCE:
        raise ValueError(f"has {size} bytes; at most {MAX_SOURCE} are allowed")
    return source


ScriptSource = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SOURCE), AfterValidator(_check_size)]
"""JavaScript, at most 64 KiB."""
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=200)]

ScriptName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""Letters, digits, hyphens and underscores."""


class Script(InputModel):
    """The script that a task runs, its own or one that its owner has stored, and its tools."""

    source: ScriptSource | None = None
    """The body of an async function, in JavaScript."""
    name: ScriptName | None = None
    """The name of a stored script of the task's owner, in place of a source. Each execution runs the version
    that is stored when it begins, to its end."""
    tools: Annotated[tuple[ToolName, ...], Field(max_length=MAX_TOOLS)] | None = None
    """The handlers that it may call, or None for all that are marked with ``tool=True``. It can call no
    others. They narrow those of a stored script."""

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if (self.source is None) == (self.name is None):
            raise ValueError("needs a source or the name of a stored script, and not both")
        return self


def require_exact(field: str, value: object) -> None:
    """Check that a script can read a JSON value without loss: JavaScript would silently round a large id."""
    match value:
        case list():
            for index, item in enumerate(value):
                require_exact(f"{field}.{index}", item)
        case dict():
            for key, item in value.items():
                require_exact(f"{field}.{key}", item)
        case int() if abs(value) > _MAX_EXACT_INTEGER:
            raise InvalidInput(
                field, "is an integer beyond 2^53, which JavaScript cannot represent", "Give it as a string."
            )
        case _:
            return
