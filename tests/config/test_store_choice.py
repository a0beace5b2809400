"""No way into production by accident: outside the cloud, Google's own Firestore is opened only by request."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cloudsched import App, Settings
from cloudsched.errors import Misconfigured
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.runtime import container

PROJECT = {"GOOGLE_CLOUD_PROJECT": "real"}
CHOSEN = {"CLOUDSCHED_STORE": "firestore"}
EMULATED = {"FIRESTORE_EMULATOR_HOST": "127.0.0.1:8085"}


class OpenedError(Exception):
    """Firestore was about to be opened."""


@pytest.fixture(autouse=True)
def _watch_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise where Firestore would be opened."""

    def opened(_: Settings) -> None:
        raise OpenedError

    monkeypatch.setattr(container, "open_firestore_store", opened)
    monkeypatch.setattr(container, "open_firestore_listener", opened)


@pytest.mark.parametrize(
    ("environment", "is_opened"),
    [
        ({}, False),
        (PROJECT, False),
        ({"CLOUD_TASKS_EMULATOR_HOST": "127.0.0.1:8123"}, False),
        ({**PROJECT, "CLOUDSCHED_STORE": ""}, False),
        (CHOSEN, False),
        ({**CHOSEN, **PROJECT}, True),
        (EMULATED, True),
        ({"K_SERVICE": "api"}, True),
    ],
)
def test_firestore_is_opened_only_where_that_is_meant(environment: dict[str, str], *, is_opened: bool) -> None:
    """In the cloud, with its emulator named, or with the store and the project set; else nothing is opened."""
    app = App(Settings.from_environment(environment))
    with pytest.raises(OpenedError if is_opened else Misconfigured):
        _ = app.container.store


@pytest.mark.parametrize(
    "use",
    [
        lambda app: app.create(owner="ada", handler="x"),
        lambda app: app.sweep(),
        lambda app: app.container.listener,
        lambda app: PullWiring.of(app.container).worker_claims,
    ],
)
def test_whatever_is_called_first_says_what_to_do(use: Callable[[App], object]) -> None:
    """A forgotten `with Simulation(app)` is told of the simulation, `cloudsched dev`, and the cloud's settings."""
    with pytest.raises(Misconfigured) as refused:
        use(App(Settings()))
    for hint in ("with Simulation(app)", "cloudsched dev", "CLOUDSCHED_STORE=firestore", "GOOGLE_CLOUD_PROJECT"):
        assert hint in str(refused.value)
    assert "gcloud" not in str(refused.value)


def test_a_chosen_store_without_a_project_names_what_is_missing() -> None:
    """The project has a default for emulators, which is nobody's project in the cloud."""
    with pytest.raises(Misconfigured, match="GOOGLE_CLOUD_PROJECT is not set"):
        _ = App(Settings(store="firestore")).container.store
