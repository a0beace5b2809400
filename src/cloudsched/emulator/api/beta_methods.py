"""The beta versions over gRPC: each RPC is translated to v2's through its JSON, and its response back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from google.protobuf import json_format  # type: ignore[import-untyped]

from cloudsched.emulator.api import messages
from cloudsched.emulator.api.beta_json import apply_read_mask, from_v2, mask_to_v2, names_stats, to_v2
from cloudsched.emulator.model.errors import invalid_argument

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cloudsched.emulator.api.messages import Proto
    from cloudsched.emulator.api.methods import RpcHandler, RpcMethod

VERSIONS: Final = ("v2beta3", "v2beta2")
_V2: Final = "google.cloud.tasks.v2."


def beta_methods(methods: Iterable[RpcMethod]) -> Iterator[RpcMethod]:
    """Yield the gRPC methods of the beta versions for those of v2. Only gRPC needs them: REST has paths for each."""
    for method in methods:
        if method.grpc.startswith(f"/{_V2}"):
            for version in VERSIONS:
                request = _message_of(version, method.request.DESCRIPTOR.full_name)
                grpc = method.grpc.replace(_V2, f"google.cloud.tasks.{version}.")
                yield replace(method, grpc=grpc, request=request, call=_translate(method, version))


def _translate(method: RpcMethod, version: str) -> RpcHandler:
    def call(request: Proto) -> Proto:
        content = json_format.MessageToDict(request, descriptor_pool=messages.POOL)
        if mask := content.pop("updateMask", ""):
            content["updateMask"] = ",".join(filter(None, (mask_to_v2(version, path) for path in mask.split(","))))
        read_mask = content.pop("readMask", "")
        if names_stats(read_mask):
            content["withStats"] = True
        try:
            message = json_format.ParseDict(to_v2(version, content), method.request(), descriptor_pool=messages.POOL)
        except json_format.ParseError as error:
            raise invalid_argument(f"The request is invalid in {version}: {error}") from None
        reply = method.call(message)
        shown = from_v2(version, json_format.MessageToDict(reply, descriptor_pool=messages.POOL))
        return json_format.ParseDict(
            apply_read_mask(shown, read_mask),
            _message_of(version, reply.DESCRIPTOR.full_name)(),
            ignore_unknown_fields=True,  # fields of v2 that the version lacks
            descriptor_pool=messages.POOL,
        )

    return call


def _message_of(version: str, v2_name: str) -> Proto:
    """Return the version's own message, or v2's where the two are the same."""
    name = v2_name.replace(_V2, f"google.cloud.tasks.{version}.")
    return messages.message_class(name if messages.has_message(name) else v2_name)
