"""The app's configuration, which Django looks for by this name: it starts cloudsched with the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import mail
from django.core.exceptions import ImproperlyConfigured, MiddlewareNotUsed
from django.utils.module_loading import import_string

from cloudsched.adapters.in_process_queue import DEFAULT_WORKERS
from cloudsched.app import App
from cloudsched.local.embedded_app import Embedded, embedded
from cloudsched.local.visitor import Visitor

if TYPE_CHECKING:
    from cloudsched.local.visitor import Identify

LABEL: Final = "cloudsched"


class CloudschedConfig(AppConfig):  # type: ignore[misc]  # Django has no types
    """The project's cloudsched."""

    name = "cloudsched.local.django"
    label = LABEL
    verbose_name = "cloudsched"
    embedding: Embedded

    def ready(self) -> None:
        """Prepare what the settings describe. A server that loads its middleware starts it."""
        self.embedding = embedded(
            _load_app(),
            _read_setting("CLOUDSCHED_DATA"),
            threads=getattr(settings, "CLOUDSCHED_THREADS", DEFAULT_WORKERS),
            page=_find_page(),
        )
        self.embedding.prepare()
        settings.MIDDLEWARE = [f"{__name__}.{StartWithServer.__name__}", *settings.MIDDLEWARE]


class StartWithServer:
    """A middleware that handles no request. Django creates middleware once, when a server starts.

    Tests make it, too, and start nothing.
    """

    sync_capable = async_capable = True

    def __init__(self, _get_response: object) -> None:
        if not hasattr(mail, "outbox"):  # Django's mark of a process that tests
            find_embedding().ensure_started()
        raise MiddlewareNotUsed


def find_embedding() -> Embedded:
    """Return what runs the project's tasks. Raises LookupError if the app is not installed."""
    return cast("CloudschedConfig", apps.get_app_config(LABEL)).embedding


def find_superuser(request: Any) -> Visitor | None:  # noqa: ANN401 - Django's
    """Return the superuser who looks at the page, as an admin. None for everybody else."""
    user = request.user
    return Visitor(user.get_username(), "admin") if user.is_active and user.is_superuser else None


def _load_app() -> App:
    name = _read_setting("CLOUDSCHED_APP")
    app = import_string(name) if isinstance(name, str) else name
    if not isinstance(app, App):
        raise ImproperlyConfigured(f"CLOUDSCHED_APP is {name!r}, and that is no cloudsched.App.")
    return app


def _find_page() -> bool | Identify | None:
    page = getattr(settings, "CLOUDSCHED_PAGE", None)
    if page is None:
        return find_superuser if apps.is_installed("django.contrib.auth") else None
    found = import_string(page) if isinstance(page, str) else page
    if not isinstance(found, bool) and not callable(found):
        raise ImproperlyConfigured(f"CLOUDSCHED_PAGE is {page!r}: name a function, or say True or False.")
    return cast("bool | Identify", found)


def _read_setting(name: str) -> Any:  # noqa: ANN401 - as the project has it
    value = getattr(settings, name, None)
    if value is None:
        raise ImproperlyConfigured(f"cloudsched.local.django is installed, and {name} is not set.")
    return value
