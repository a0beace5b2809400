"""What the tests of the pages share."""

from __future__ import annotations

from tests.deployables.fake_project import AT_END


def pytest_sessionfinish() -> None:
    """End the copy of gcloud that reads the pages' commands, before anybody looks for what a run leaves behind."""
    AT_END.close()
