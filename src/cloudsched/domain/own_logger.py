"""The loggers of this package, which an app's own logging configuration cannot disable by accident."""

from __future__ import annotations

import logging


class _AlwaysOn:
    """Ignores `disabled`, which `logging.config` sets by default on each logger that it does not name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name != "disabled":
            super().__setattr__(name, value)


def own_logger(name: str) -> logging.Logger:
    """Return the logger of a module of this package.

    Its level, its filters and its handlers are the app's to set.
    """
    logger = logging.getLogger(name)  # noqa: TID251 - here alone
    if not isinstance(logger, _AlwaysOn):
        logger.disabled = False
        logger.__class__ = type("OwnLogger", (_AlwaysOn, type(logger)), {})
    return logger
