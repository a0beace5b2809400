"""Load the app whose handlers the local stack runs, from a file or a module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from cloudsched.app import App
from cloudsched.errors import Misconfigured
from cloudsched.local.import_errors import NAME_HINT, explain_import_errors

if TYPE_CHECKING:
    from types import ModuleType

T = TypeVar("T")
DEFAULT_FILES: Final = (Path("functions/handlers.py"), Path("handlers.py"))
"""The files that are tried if none is named."""
_EXAMPLE: Final = '"from cloudsched import App; app = App()", then functions decorated with @app.handler("name")'


@dataclass(frozen=True, slots=True)
class LoadedApp:
    """An app, and where it came from."""

    app: App
    origin: str
    target: str | None = None
    """The file or the module, as `load_app` takes it. None for the package's own examples."""

    @property
    def folder(self) -> Path:
        """The folder whose modules the app is made of."""
        file = Path((self.target or "").partition(":")[0])
        return file.parent.resolve() if file.suffix == ".py" else Path.cwd()

    @property
    def handler_names(self) -> str:
        """The names of its handlers, for people."""
        return ", ".join(sorted(handler.name for handler in self.app.container.registry)) or "none"


def load_app(target: str | None, *, or_examples: bool = False) -> LoadedApp:
    """Load an app.

    A target is a file or a module, followed by ``:name`` if it has several apps. None tries `DEFAULT_FILES`,
    and then, if allowed, the package's own examples. Raises Misconfigured with the reason.
    """
    if target is None:
        target = next((str(path) for path in DEFAULT_FILES if path.is_file()), None)
    if target is not None:
        return LoadedApp(load_instance(target, App, "app", _EXAMPLE), target, target)

    names = " or ".join(map(str, DEFAULT_FILES))
    if not or_examples:
        raise Misconfigured(
            f"There is no {names} here. Change to the folder that has it, or name the file with your handlers: "
            "--handlers FILE."
        )
    examples = load_instance("cloudsched.local.examples", App, "app", _EXAMPLE)
    return LoadedApp(examples, f"cloudsched's own examples, since there is no {names} here")


def load_instance(target: str, kind: type[T], what: str, example: str) -> T:
    """Load the object of a class that a file or a module has.

    The target is as for `load_app`. The word `what` has a plural in -s or, after an x, in -es.
    """
    location, _, name = target.partition(":")
    if location.endswith(".py"):
        wanted = "handlers" if kind is App else what
        module = _import_file(Path(location), f"Name the file with your {wanted}: {example}.")
    else:
        module = _import_module(location)

    found = {key: value for key, value in vars(module).items() if isinstance(value, kind)}
    if name:
        if name not in found:
            raise Misconfigured(f"{target}: there is no {what} of that name. It has: {', '.join(found) or 'none'}.")
        return found[name]

    distinct = {id(each): each for each in found.values()}
    if not distinct:
        raise Misconfigured(f"{target} has no {what}. Write {example}.")
    if len(distinct) > 1:
        plural = f"{what}es" if what.endswith("x") else f"{what}s"
        raise Misconfigured(f"{target} has several {plural}; say which, as in {target}:{next(iter(found))}.")
    return next(iter(distinct.values()))


def _import_file(path: Path, hint: str) -> ModuleType:
    try:
        is_file = path.is_file()
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror}.") from error
    if not is_file:
        raise Misconfigured(f"There is no file {path}. {hint}")

    file = path.resolve()
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))  # so that it can import its neighbours, as when deployed
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise Misconfigured(f"{file} cannot be imported.")

    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # annotations are resolved through this
    with explain_import_errors(str(path)):
        spec.loader.exec_module(module)
    return module


def _import_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise Misconfigured(f"{name!r} is not a module. {NAME_HINT}")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` does
    with explain_import_errors(name):
        return importlib.import_module(name)
