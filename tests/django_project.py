"""The one Django project of this process: Django can be set up only once, whichever test comes first."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from unittest import mock

import django
from django.http import HttpRequest, JsonResponse
from django.urls import path


def add_django_project() -> None:
    """Make the module ``project`` and its settings, with a page of its own, our app, and no database yet."""

    def show_own_page(_request: HttpRequest) -> JsonResponse:
        return JsonResponse({"own": "page"})

    project, settings = ModuleType("project"), ModuleType("project.settings")
    vars(settings).update(
        ROOT_URLCONF="project",
        ALLOWED_HOSTS=["127.0.0.1"],
        SECRET_KEY="of a test",  # noqa: S106
        INSTALLED_APPS=["cloudsched.outbox.django"],
        DATABASES={},
        LOGGING_CONFIG=None,
        USE_TZ=True,
    )
    vars(project).update(settings=settings, urlpatterns=[path("own", show_own_page)])
    sys.modules.update({"project": project, "project.settings": settings})


def set_up_django() -> None:
    """Set Django up with that project, unless it is set up already."""
    if "project" not in sys.modules:
        add_django_project()
    with keep_environment():
        os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
        django.setup()


@contextmanager
def keep_environment() -> Iterator[None]:
    """Keep what is set within, as the zone that Django sets, from child processes and from other tests."""
    try:
        with mock.patch.dict(os.environ):
            yield
    finally:
        time.tzset()
