"""Load the app whose handlers the local stack runs, from a file or a module, and again when its files change."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Self, TypeVar

from cloudsched import errors
from cloudsched.app import App
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.errors import CloudschedError, Misconfigured
from cloudsched.local.untrusted_text import to_printable

T = TypeVar("T")
_PACKAGE_FOLDER = str(Path(errors.__file__).parent)
_NON_USER_PATHS = (
    _PACKAGE_FOLDER,
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    "<frozen",
)
"""Folders of code that is not the user's."""
_NAME_HINT = "Name a module, or a file that ends in .py."
_MAX_FRAMES = 5
"""The number of the innermost lines of the user's code that are shown."""


@contextmanager
def explain_import_errors(name: str) -> Iterator[None]:
    """Import a user's file or module inside this context. An exception becomes a Misconfigured with its line."""
    try:
        yield
    except CloudschedError:
        raise
    except SyntaxError as error:
        raise Misconfigured(_describe_syntax_error(name, error)) from error
    except OSError as error:
        reason = (
            f"{_to_relative_path(str(error.filename))} cannot be read: {error.strerror}."
            if error.filename
            else str(error)
        )
        raise Misconfigured(_with_user_frames(f"{name} cannot be imported: {reason}", error)) from error
    except ModuleNotFoundError as error:
        hint = _NAME_HINT if error.name == name else "Is it installed?"
        raise Misconfigured(_with_user_frames(f"{name} cannot be imported: {error}. {hint}", error)) from error
    except (Exception, SystemExit) as error:
        text = to_printable(str(error))
        kind = type(error).__name__
        message = f"{name} cannot be imported: {kind}{f': {text}' if text else ''}"
        raise Misconfigured(_with_user_frames(message, error)) from error


def _describe_syntax_error(name: str, error: SyntaxError) -> str:
    """Say where Python stopped parsing. An error about null bytes has no line, and in some versions no file."""
    file = _to_relative_path(error.filename) if error.filename and not error.filename.startswith("<") else name
    line = f", line {error.lineno}" if error.lineno else ""
    return f"{file}{line}: {to_printable(error.msg)}"


def _with_user_frames(message: str, error: BaseException) -> str:
    """Append the user's own lines that led to an error, one each, as in a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [frame for frame in frames if not frame.filename.startswith(_NON_USER_PATHS)]
    lines = [
        f"  {_to_relative_path(frame.filename)}, line {frame.lineno}: {frame.line}"
        for frame in user_frames[-_MAX_FRAMES:]
    ]
    return "\n".join([message, *lines])


def _to_relative_path(file: str) -> str:
    """Return a path relative to the working directory if it lies below that."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


DEFAULT_FILES = (Path("functions/handlers.py"), Path("handlers.py"))
"""The files that are tried if none is named."""
_EXAMPLE = '"from cloudsched import App; app = App()", then functions decorated with @app.handler("name")'


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


def load_app(target: str | None, *, or_examples: bool = True) -> LoadedApp:
    """Load an app.

    A target is a file or a module, followed by ``:name`` if it has several apps. None tries `DEFAULT_FILES`, and then,
    if allowed, the package's own examples. Raises Misconfigured with the reason.
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
    return LoadedApp(load_instance(target, App, "app", _EXAMPLE), target, target)


def load_instance(target: str, kind: type[T], what: str, example: str) -> T:
    """Load the object of a class that a file or a module has.

    The target is as for `load_app`. The word `what` has a plural in -s or, after an x, in -es.
    """
    location, _, name = target.partition(":")
    hint = f"Name the file with your {'handlers' if kind is App else what}: {example}."
    module = _import_file(Path(location), hint) if location.endswith(".py") else _import_module(location)
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


log = own_logger(__name__)

INTERVAL_SECONDS = 0.5
"""The seconds between two looks at the files."""
_FOREIGN_FOLDERS = {"site-packages", "dist-packages", ".venv", "venv", "node_modules"}


class HandlerWatch:
    """Notices changes of the handlers' files, as a context, in a thread of its own.

    Schedules that the code declares are applied anew. A task that is running keeps the function that it runs. Tasks,
    clock and queue stay as they are. If the changed files cannot be imported, the handlers stay the old ones. Without
    `reloads`, a warning says that they have changed.
    """

    def __init__(self, app: App, target: str, folder: Path, *, reloads: bool) -> None:
        self._app = app
        self._target = target
        self._folder = folder.resolve()
        self._reloads = reloads
        self._thread = ServiceThread("cloudsched-handler-watch", self._watch)
        self._foreign: set[str] = set()
        """The files of modules that are not watched, of which there are a thousand: each is looked at once."""
        self._known = self._look()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._thread.stop()
        self._thread.join()

    def check(self) -> None:
        """Look at the files once, and act on what has changed since."""
        found = self._look()
        changed = sorted(path for path, state in found.items() if self._known.get(path, state) != state)
        changed += sorted(self._known.keys() - found.keys())
        self._known = found
        if not changed:
            return
        names = ", ".join(str(path.relative_to(self._folder)) for path in changed)
        if self._reloads:
            self._reload(names)
        else:
            log.warning("%s has changed, but the handlers are still the old ones: restart, or use --reload", names)

    def _watch(self) -> float:
        self.check()
        return INTERVAL_SECONDS

    def _reload(self, names: str) -> None:
        replaced = {module.__name__: module for module in self._modules()}
        for name in replaced:
            del sys.modules[name]
        importlib.invalidate_caches()
        try:
            loaded = load_app(self._target).app
        except (Misconfigured, SystemExit) as error:
            sys.modules.update(replaced)
            log.error("%s has changed and cannot be loaded, so the handlers are still the old ones: %s", names, error)  # noqa: TRY400 - says where
            return
        owners = {each.owner for each in self._app.container.registry.registrations.declarations.values()}
        self._app.container.registry.replace_handlers(loaded.container.registry)
        loaded.container = self._app.container  # what the handlers' module calls `app` reaches the stack as well
        handlers = ", ".join(sorted(handler.name for handler in self._app.container.registry)) or "none"
        log.info("%s has changed; handlers loaded again: %s", names, handlers)
        self._known = self._look()
        try:
            self._app.apply_declarations(owners)
        except CloudschedError as error:
            log.error("the schedules of the code cannot be applied: %s", error)  # noqa: TRY400 - says what is wrong

    def _look(self) -> dict[Path, tuple[int, int]]:
        """Return the time of change and the size of each file that a watched module came from."""
        found = {}
        for module in self._modules():
            path = Path(str(module.__file__)).resolve()
            try:
                info = path.stat()
            except OSError:
                continue  # between two steps of an editor that replaces it
            found[path] = info.st_mtime_ns, info.st_size
        return found

    def _modules(self) -> list[ModuleType]:
        """Return the modules from the folder, without installed packages and the main program."""
        found = []
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if name == "__main__" or not isinstance(file, str) or file in self._foreign:
                continue
            path = Path(file).resolve()
            if path.is_relative_to(self._folder) and not _FOREIGN_FOLDERS & set(path.relative_to(self._folder).parts):
                found.append(module)
            else:
                self._foreign.add(file)
        return found
