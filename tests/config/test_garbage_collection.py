"""Imports without looking for garbage: it goes on afterwards, and only programs of our own keep all that there is."""

from __future__ import annotations

import gc

import pytest

from cloudsched.config.imports import pause_collection


@pytest.mark.parametrize("is_enabled", [True, False])
def test_collection_is_afterwards_what_it_was(*, is_enabled: bool) -> None:
    """Also if the import fails, and if the caller had turned it off."""
    was_enabled = gc.isenabled()
    try:
        (gc.enable if is_enabled else gc.disable)()
        with pause_collection():
            assert not gc.isenabled()
        assert gc.isenabled() == is_enabled
        with pytest.raises(ModuleNotFoundError), pause_collection():
            raise ModuleNotFoundError
        assert gc.isenabled() == is_enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
