"""`google.rpc.Status`: an error with its details, as gRPC's trailers and batch operations carry it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.protobuf import json_format  # type: ignore[import-untyped]

from cloudsched.emulator.api import messages

if TYPE_CHECKING:
    from cloudsched.emulator.api.messages import Proto
    from cloudsched.emulator.model.errors import RpcError

_Status: Final = messages.message_class("google.rpc.Status")


def write_status(error: RpcError) -> Proto:
    """Return an error as a message."""
    content = {"code": int(error.code), "message": error.message, "details": list(error.details)}
    return json_format.ParseDict(content, _Status(), descriptor_pool=messages.POOL)
