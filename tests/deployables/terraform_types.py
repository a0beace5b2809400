"""Generate `terraform_types.json`: the arguments and blocks of the resources that the Terraform module makes.

    npm pack @cdktf/provider-google && python -m tests.deployables.terraform_types cdktf-provider-google-*.tgz

The package has what the provider itself publishes as its schema, as TypeScript. So the module can be checked without
the provider, which the machines of the tests cannot download. An argument is [type, whether it is required, allowed
values]; a block has its own arguments in place of the type.
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("terraform_types.json")
_PROPERTY = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\s*readonly (\w+)(\??): ([^;]+);", re.DOTALL)
_INTERFACE = re.compile(r"(?ms)^export interface (\w+)(?: extends [\w.]+)? \{$(.*?)^\}$")


def find_kinds() -> list[str]:
    """Return the kinds of Google's resources and data sources in the module and its examples."""
    files = (ROOT / "infra/terraform").rglob("*.tf")
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    found = {f"{what} {kind}" for what, kind in re.findall(r'(?m)^(resource|data) "(google_\w+)"', text)}
    return sorted(found)


def read_kind(archive: tarfile.TarFile, kind: str) -> dict[str, Any]:
    """Return the arguments of a kind."""
    what, _, name = kind.partition(" ")
    folder = (
        ("data-" if what == "data" else "") + name.replace("_", "-") if what == "data" else name[7:].replace("_", "-")
    )
    member = archive.extractfile(f"package/lib/{folder}/index.d.ts")
    assert member, f"the package has no {folder}"
    code = member.read().decode()
    interfaces = dict(_INTERFACE.findall(code))
    (top,) = (each for each in interfaces if each.endswith("Config") and f"interface {each} extends cdktf" in code)
    return _read(interfaces, top)


def _read(interfaces: dict[str, str], name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for comment, member, optional, told in _PROPERTY.findall(interfaces[name]):
        if member == "timeouts":
            continue
        snake = re.search(r"#(\w+)\}", comment)
        key = snake[1] if snake else re.sub(r"(?<!^)(?=[A-Z])", "_", member).lower()
        kind = told.removesuffix(" | cdktf.IResolvable").removesuffix("[]").strip()
        values = re.search(r"Possible values: \[([^\]]*)\]", comment)
        allowed = re.findall(r'"([^"]+)"', values[1]) if values else []
        shape = _read(interfaces, kind) if kind in interfaces else _simplify(told)
        found[key] = [shape, not optional, *([allowed] if allowed else [])]
    return dict(sorted(found.items()))


def _simplify(told: str) -> str:
    if "{" in told:
        return "map"
    if "[]" in told:
        return "list"
    return "bool" if told.startswith("boolean") else told.partition(" ")[0]


def main(package: str) -> None:
    """Write the table."""
    with tarfile.open(package) as archive:
        about = json.load(archive.extractfile("package/package.json"))  # type: ignore[arg-type] # it is there
        version = about["cdktf"]["provider"]["version"]
        kinds = {kind: read_kind(archive, kind) for kind in find_kinds()}
    shapes = (f"  {json.dumps(kind)}: {json.dumps(each, separators=(',', ':'))}" for kind, each in kinds.items())
    lines = ",\n".join(shapes)
    TABLE.write_text(f'{{\n "version": {json.dumps(version)},\n "kinds": {{\n{lines}\n }}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
