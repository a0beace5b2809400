"""Have gcloud's own parser check commands without running them. Executed by gcloud's own Python.

Usage: gcloud_arguments.py SDK_ROOT < JSON list of argument lists; prints a JSON list with an error or null for each
"""

from __future__ import annotations

import importlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def main(root: str) -> None:
    sys.path[:0] = [str(Path(root, "lib")), str(Path(root, "lib", "third_party"))]
    cli = importlib.import_module("googlecloudsdk.gcloud_main").CreateCLI([])
    filters = importlib.import_module("googlecloudsdk.core.resource.resource_filter")
    printers = importlib.import_module("googlecloudsdk.core.resource.resource_printer")
    parser = cli._CLI__parser  # noqa: SLF001 - as gcloud's own `meta lint-gcloud-commands` does

    def find_error(arguments: list[str]) -> str | None:
        try:
            parsed: Any = parser.parse_args(arguments)
            if parsed.CONCEPT_ARGS is not None:
                parsed.CONCEPT_ARGS.ParseConcepts()
            if getattr(parsed, "filter", None):
                filters.Compile(parsed.filter)
            if getattr(parsed, "format", None):
                printers.Printer(parsed.format, out=io.StringIO())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any exception is gcloud's verdict
            return f"{type(error).__name__}: {error}"
        return None

    json.dump([find_error(arguments) for arguments in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
