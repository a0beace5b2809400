"""Writes that take effect only if a document still has the version that was read."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from cloudsched.adapters.firestore import messages

if TYPE_CHECKING:
    from cloudsched.adapters.google import channel as google_calls
    from cloudsched.engine.ports.records import Version

COMMIT_ID = "commitId"
_Write: google_calls.Message = messages.Write


def with_precondition(write: google_calls.Message, version: Version | None) -> google_calls.Message:
    """Return the write with its precondition, and with a fresh ``commitId`` so that it changes the document."""
    if write.HasField("update"):
        write.update.fields[COMMIT_ID].string_value = secrets.token_hex(8)
    if version is None:
        write.current_document.exists = False
    else:
        write.current_document.update_time.FromNanoseconds(version.value)
    return write


def get_commit_id(document: google_calls.Message) -> str:
    """Return what tells the last write of a document from any other, even after a restore; "" if nothing does."""
    fields = document.fields
    return str(fields[COMMIT_ID].string_value) if COMMIT_ID in fields else ""


def build_precondition_write(name: str, version: Version | None) -> google_calls.Message:
    """Return a write that changes nothing but fails its commit unless the document still has the expected version.

    An empty mask writes no field and leaves the ``update_time`` as it is.
    """
    if version is None:
        write = _Write(delete=name)
        write.current_document.exists = False
        return write
    write = _Write()
    write.update.name = name
    write.update_mask.SetInParent()
    write.current_document.update_time.FromNanoseconds(version.value)
    return write
