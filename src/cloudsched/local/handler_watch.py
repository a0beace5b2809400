"""Watch the files that the handlers come from: load them again when they change, or say that they did."""

from __future__ import annotations

import importlib
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cloudsched.engine.ports.service_threads import ServiceThread
from cloudsched.errors import CloudschedError, Misconfigured
from cloudsched.local.app_loader import load_app

if TYPE_CHECKING:
    from types import ModuleType, TracebackType

    from cloudsched.app import App

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 0.5
"""How often the files are looked at."""
_FOREIGN_FOLDERS = {"site-packages", "dist-packages", ".venv", "venv", "node_modules"}


class HandlerWatch:
    """A context in which changes of the handlers' files are noticed, in a thread of its own.

    Schedules that the code declares are applied anew.
    A task that is running keeps the function that it runs; tasks, clock and queue stay as they are. If the changed
    files cannot be imported, the handlers stay the old ones.

    Args:
        app: The app whose handlers run.
        target: What it was loaded from; see `load_app`.
        folder: The folder whose modules are watched.
        reloads: Whether to load the handlers again; otherwise a warning says that they have changed.
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
