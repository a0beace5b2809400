"""Reload an app's handlers, or warn, when their files change while the local stack runs."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.errors import CloudschedError, Misconfigured
from cloudsched.local.app_loader import LoadedApp, load_app

if TYPE_CHECKING:
    from types import ModuleType

    from cloudsched.app import App

log: Final = own_logger(__name__)

INTERVAL_SECONDS: Final = 0.5
"""The interval at which the files are checked, in seconds."""
_FOREIGN_FOLDERS: Final = {"site-packages", "dist-packages", ".venv", "venv", "node_modules"}


class HandlerWatch:
    """Notices changes of the handlers' files, as a context, in a thread of its own.

    Schedules that the code declares are applied anew. A task that is running keeps the function that it runs.
    Tasks, clock and queue stay as they are. If the changed files cannot be imported, the handlers stay the
    old ones. Without `reloads`, a warning says that they have changed.
    """

    def __init__(self, app: App, target: str, folder: Path, *, reloads: bool) -> None:
        self._app = app
        self._target = target
        self._folder = folder.resolve()
        self._reloads = reloads
        self._thread = ServiceThread("cloudsched-handler-watch", self._watch)
        self._foreign: set[str] = set()
        """The files of the thousand modules that are not watched. Each is checked once."""
        self._known = self._look()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._thread.stop()
        self._thread.join()

    def check(self) -> None:
        """Check the files once, and act on the changes."""
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
            loaded = load_app(self._target)
        except (Misconfigured, SystemExit) as error:
            sys.modules.update(replaced)
            log.error("%s has changed and cannot be loaded, so the handlers are still the old ones: %s", names, error)  # noqa: TRY400 - says where
            return

        owners = self._adopt(loaded)
        log.info("%s has changed; handlers loaded again: %s", names, loaded.handler_names)
        self._known = self._look()
        try:
            self._app.apply_declarations(owners)
        except CloudschedError as error:
            log.error("the schedules of the code cannot be applied: %s", error)  # noqa: TRY400 - says what is wrong

    def _adopt(self, loaded: LoadedApp) -> set[str]:
        """Replace the handlers of the stack's app by those of a new one.

        Return who owned the schedules that the code declared.
        """
        container = self._app.container
        owners = {each.owner for each in container.registry.registrations.declarations.values()}
        container.registry.replace_handlers(loaded.app.container.registry)
        loaded.app.container = container  # what the handlers' module calls `app` reaches the stack as well
        return owners

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
            if self._is_own(Path(file).resolve()):
                found.append(module)
            else:
                self._foreign.add(file)
        return found

    def _is_own(self, path: Path) -> bool:
        return path.is_relative_to(self._folder) and not _FOREIGN_FOLDERS & {*path.relative_to(self._folder).parts}
