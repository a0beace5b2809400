"""Our log lines, whatever an app does to its logging."""

from __future__ import annotations

import logging
import logging.config
from collections.abc import Iterator

import pytest

from cloudsched.domain.own_logger import own_logger

MINE = "cloudsched.of.a.test"


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    root = logging.root
    before = root.level, list(root.handlers)
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    logging.disable(logging.NOTSET)
    logging.getLogger("mine").setLevel(logging.NOTSET)
    for logger in list(logging.Logger.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.disabled = False


@pytest.mark.parametrize(
    "config",
    [{}, {"root": {"level": "WARNING"}}, {"disable_existing_loggers": True, "loggers": {"mine": {"level": "DEBUG"}}}],
    ids=str,
)
def test_a_configuration_with_its_defaults_disables_none(config: dict[str, object]) -> None:
    """It disables each logger that it does not name, and of ours it does not know."""
    ours, theirs = own_logger(MINE), logging.getLogger("another.library")
    ours.setLevel(logging.INFO)
    heard = Buffer()
    ours.addHandler(heard)
    logging.config.dictConfig({"version": 1, **config})
    ours.info("still here")
    ours.removeHandler(heard)
    ours.setLevel(logging.NOTSET)
    assert theirs.disabled
    assert own_logger(MINE) is ours
    assert [each.getMessage() for each in heard.buffer] == ["still here"]


class Buffer(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.buffer: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.buffer.append(record)
