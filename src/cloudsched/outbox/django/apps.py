"""The app's configuration, which Django looks for by this name."""

from django.apps import AppConfig


class OutboxConfig(AppConfig):  # type: ignore[misc]  # Django has no types
    """The app with the outbox's table."""

    name = "cloudsched.outbox.django"
    label = "cloudsched_outbox"
    verbose_name = "Outbox of cloudsched"
