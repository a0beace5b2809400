"""Load the app whose handlers the local stack runs, from a file or a module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cloudsched.app import App
from cloudsched.errors import Misconfigured
from cloudsched.local.import_errors import explain_import_errors

if TYPE_CHECKING:
    from types import ModuleType

DEFAULT_FILES = (Path("functions/handlers.py"), Path("handlers.py"))
"""The files that are tried if none is named."""
_NAME_HINT = "Name a module, or a file that ends in .py."
_EXAMPLE = '"from cloudsched import App; app = App()", then functions decorated with @app.handler("name")'


@dataclass(frozen=True, slots=True)
class LoadedApp:
    """An app, and where it came from."""

    app: App
    origin: str
    target: str | None = None
    """The file or the module, as `load_app` takes it; None for the package's own examples."""

    @property
    def folder(self) -> Path:
        """The folder whose modules the app is made of."""
        file = Path((self.target or "").partition(":")[0])
        return file.parent.resolve() if file.suffix == ".py" else Path.cwd()


def load_app(target: str | None, *, or_examples: bool = True) -> LoadedApp:
    """Load an app.

    Args:
        target: A file or a module, followed by ``:name`` if it has several apps. None tries `DEFAULT_FILES`.
        or_examples: Whether to load the package's own examples if `target` is None and there is no default file.

    Raises:
        Misconfigured: There is no such file or module, it has no app, or it cannot be imported.
    """
    if target is None:
        default = next((path for path in DEFAULT_FILES if path.is_file()), None)
        if default is not None:
            return load_app(str(default))
        names = " or ".join(str(path) for path in DEFAULT_FILES)
        if not or_examples:
            raise Misconfigured(
                f"There is no {names} here. Change to the folder that has it, or name the file with your handlers: "
                "--handlers FILE."
            )
        return LoadedApp(
            load_app("cloudsched.local.examples").app, f"cloudsched's own examples, since there is no {names} here"
        )
    location, _, name = target.partition(":")
    module = _import_file(Path(location)) if location.endswith(".py") else _import_module(location)
    return LoadedApp(_find_app(module, name, target), target, target)


def _find_app(module: ModuleType, name: str, target: str) -> App:
    apps = {key: value for key, value in vars(module).items() if isinstance(value, App)}
    if name:
        if name not in apps:
            raise Misconfigured(f"{target}: there is no app of that name. It has: {', '.join(apps) or 'none'}.")
        return apps[name]
    distinct = {id(app): app for app in apps.values()}
    if not distinct:
        raise Misconfigured(f"{target} has no app. Write {_EXAMPLE}.")
    if len(distinct) > 1:
        raise Misconfigured(f"{target} has several apps; say which, as in {target}:{next(iter(apps))}.")
    return next(iter(distinct.values()))


def _import_file(path: Path) -> ModuleType:
    try:
        is_file = path.is_file()
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror}.") from error
    if not is_file:
        raise Misconfigured(f"There is no file {path}. Name the file with your handlers: {_EXAMPLE}.")
    shown, path = str(path), path.resolve()
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # so that it can import its neighbours, as when deployed
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise Misconfigured(f"{path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # annotations are resolved through this
    with explain_import_errors(shown):
        spec.loader.exec_module(module)
    return module


def _import_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise Misconfigured(f"{name!r} is not a module. {_NAME_HINT}")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` does
    with explain_import_errors(name):
        return importlib.import_module(name)
