"""What `import cloudsched` offers is whole, imported when it is used, and typed: mypy takes just the right calls."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.cases import try_each

import cloudsched
import cloudsched.errors
from cloudsched.client import AsyncClient, Client
from cloudsched.domain.documents.document import StoredEnum
from cloudsched.domain.transitions import task_arguments
from cloudsched.domain.transitions.task_arguments import CallFields, NewTaskFields
from cloudsched.domain.transitions.task_draft import TaskDraft

ROOT = Path(__file__).parents[2]


@try_each("name", cloudsched.__all__)
def test_a_public_name_can_be_imported_and_says_what_it_is(name: str) -> None:
    """Each name leads to an object of that name, with a docstring."""
    found = getattr(cloudsched, name)
    assert found.__name__ == name
    assert found.__doc__
    assert found is getattr(sys.modules[found.__module__], name)


def test_what_type_checkers_see_is_what_is_there() -> None:
    """The imports under TYPE_CHECKING are exactly the names that are loaded lazily."""
    tree = ast.parse(Path(cloudsched.__file__).read_text("utf-8"))
    seen = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    seen -= {"TYPE_CHECKING", "import_module", "pause_collection"}
    assert seen == set(cloudsched.__all__) == set(cloudsched._MODULES)  # noqa: SLF001


EXAMPLES = Path(__file__).with_name("typed_calls.py")
MARKED = {
    number
    for number, line in enumerate(EXAMPLES.read_text("utf-8").splitlines(), 1)
    if re.search(r"# rejected: ", line)
}


def test_mypy_rejects_exactly_the_marked_lines() -> None:
    """Each mistake is found, and nothing else is.

    A file that uses each public name as its users do is accepted as well, and the wrong uses in it are refused: mypy
    says so if it is not told to ignore an error there that it does not find.
    """
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", EXAMPLES.name, "typing_public.py"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLES.parent, check=False)  # noqa: S603 - ours
    found = re.findall(r"^([\w./]+):(\d+): error", run.stdout, re.MULTILINE)
    assert MARKED, "no line is marked"
    assert set(found) == {(EXAMPLES.name, str(number)) for number in MARKED}, run.stdout + run.stderr


def test_the_fields_of_typed_calls_are_those_of_a_task() -> None:
    """A field that a task gains is known to typed calls as well."""
    explicit = {"handler", "payload", "owner", "schedule"}
    assert set(NewTaskFields.__annotations__) - {"timezone", "locale"} == set(TaskDraft.model_fields) - explicit
    assert set(NewTaskFields.__annotations__) - set(CallFields.__annotations__) == {"id", "timezone", "locale"}


def test_the_texts_that_editors_offer_are_all_that_are_read() -> None:
    """A new value of a closed set is one that type checkers know."""
    sets = {each.__name__: each for each in StoredEnum.__subclasses__()}
    written = Path(str(task_arguments.__file__)).read_text("utf-8")
    found = re.findall(r"(\w+)\s*\|\s*Literal\[([^\]]*)\]", written)
    assert len(found) > 5
    for name, texts in found:
        assert set(ast.literal_eval(f"({texts},)")) == {each.value for each in sets[name]}, name


def list_methods(client: type) -> list[tuple[str, Callable[..., object]]]:
    found = [(name, getattr(client, name)) for name in dir(client) if not name.startswith(("_", "run_flow"))]
    return [(name, method) for name, method in found if callable(method)]


def test_a_method_of_a_client_shows_what_callers_write_and_get() -> None:
    """Nothing of how it is sent: a flow, or that another function runs it."""
    for client in (Client, AsyncClient):
        for name, method in list_methods(client):
            shown = str(inspect.signature(method))
            assert "Flow" not in shown, name
            assert "Listing" not in shown, name
            assert method.__doc__, name


def test_what_is_awaited_is_a_coroutine_function() -> None:
    """Frameworks decide by that how to call it. Lists are iterated, and the client of a user is made at once."""
    for name, method in list_methods(AsyncClient):
        is_iterated = "Iterator" in str(inspect.signature(method).return_annotation)
        assert inspect.iscoroutinefunction(method) is not (is_iterated or name == "acting_for"), name
        assert not inspect.iscoroutinefunction(getattr(Client, name, len)), name
