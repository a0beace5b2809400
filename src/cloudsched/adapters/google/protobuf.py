"""Build the protobuf messages of a Google API from a table of their fields, in a pool of their own.

A service of Google's takes half a second to import: its client builds every message of the API twice, once
for Python and once for protobuf, and brings REST, asynchronous transports and their libraries along. The
adapters' own messages take a few milliseconds to build. The pool is our own, so that a program can import
Google's clients, too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from cloudsched.adapters.google.channel import Message

_WELL_KNOWN: Final = {
    "Any": "any_pb2",
    "Duration": "duration_pb2",
    "FieldMask": "field_mask_pb2",
    "Int32Value": "wrappers_pb2",
    "Int64Value": "wrappers_pb2",
    "NullValue": "struct_pb2",
    "Timestamp": "timestamp_pb2",
}
"""The types of protobuf itself, and the modules that have them."""
_Field: Final = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
    "double": _Field.TYPE_DOUBLE,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "string": _Field.TYPE_STRING,
}


def build_messages(package: str, table: str) -> dict[str, Message]:
    """Return the class of each message of a table that is not nested in another one, by its name.

    A line is a message and its fields, or an enum and its values, which count from 0::

        Outer.Inner name:type=number other:type=number/oneof repeated:type=number* texts:map(type)=number
        enum Outer.Kind KIND_UNSPECIFIED FIRST SECOND

    A type is a scalar, a well-known type of protobuf, or the name of a message or an enum of the table. The
    fields that a message has in reality, but not in the table, are ignored when it is read.
    """
    file = descriptor_pb2.FileDescriptorProto(
        name=f"cloudsched/{package}.proto",
        package=package,
        syntax="proto3",
    )
    rows = [line.split() for line in table.replace("\\\n", "").strip().splitlines()]
    enums = {row[1] for row in rows if row[0] == "enum"}
    declared: dict[str, Any] = {"": file}
    for first, *rest in rows:
        name = rest[0] if first == "enum" else first
        outer, _, inner = name.rpartition(".")
        if first == "enum":
            enum = declared[outer].enum_type.add(name=inner)
            for number, value in enumerate(rest[1:]):
                enum.value.add(name=value, number=number)
        else:
            if outer:
                kinds = declared[outer].nested_type
            else:
                kinds = file.message_type
            declared[name] = kinds.add(name=inner)
            for field in rest:
                _describe_field(declared[name], f".{package}.", name, enums, field)
    pool = descriptor_pool.DescriptorPool()
    for name in dict.fromkeys(module for kind, module in _WELL_KNOWN.items() if f":{kind}=" in table):
        module = import_module(f"google.protobuf.{name}")
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
        file.dependency.append(module.DESCRIPTOR.name)
    pool.AddSerializedFile(file.SerializeToString())
    return {
        kind.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{kind.name}"))
        for kind in file.message_type
    }


def _describe_field(message: Message, prefix: str, path: str, enums: set[str], text: str) -> None:
    """Add the field that a text describes to a message, whose name within the package is `path`."""
    head, _, oneof = text.partition("/")
    name, _, rest = head.partition(":")
    kind, _, number = rest.rpartition("=")
    is_repeated = number.endswith("*")
    field = message.field.add(name=name, number=int(number.rstrip("*")))
    if is_repeated:
        field.label = _Field.LABEL_REPEATED
    else:
        field.label = _Field.LABEL_OPTIONAL

    if kind.startswith("map("):
        entry = message.nested_type.add(name="".join(map(str.title, name.split("_"))) + "Entry")
        entry.options.map_entry = True
        _describe_field(entry, prefix, path, enums, "key:string=1")
        _describe_field(entry, prefix, path, enums, f"value:{kind[4:-1]}=2")
        field.label = _Field.LABEL_REPEATED
        field.type = _Field.TYPE_MESSAGE
        field.type_name = f"{prefix}{path}.{entry.name}"
    elif kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        if kind in enums or kind == "NullValue":
            field.type = _Field.TYPE_ENUM
        else:
            field.type = _Field.TYPE_MESSAGE
        if kind in _WELL_KNOWN:
            field.type_name = f".google.protobuf.{kind}"
        else:
            field.type_name = f"{prefix}{kind}"

    if oneof:
        declared = [each.name for each in message.oneof_decl]
        if oneof not in declared:
            message.oneof_decl.add(name=oneof)
            declared.append(oneof)
        field.oneof_index = declared.index(oneof)
