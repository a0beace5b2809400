# ruff: noqa: INP001 - a script among shell scripts, not a package
"""Print why the handlers of a folder would refuse the task of a smoke test, and exit with 1.

Usage: smoke.py FOLDER HANDLER PAYLOAD

Without cloudsched, or what the handlers import, prints that and exits with 0.
"""

from __future__ import annotations

import json
import sys

folder, handler, payload = sys.argv[1:]
try:
    content = dict(json.loads(payload))
except (TypeError, ValueError) as error:
    print("it is no JSON object:", error)  # noqa: T201 - what the caller reads
    sys.exit(1)
try:
    from cloudsched.errors import InvalidInput
    from cloudsched.local.app_loader import load_app

    registry = load_app(f"{folder}/handlers.py").app.container.registry
except Exception as error:  # noqa: BLE001 - whatever an import raises
    print(error)  # noqa: T201
    sys.exit()
try:
    registry.get(handler).check_payload(content)
except InvalidInput as error:
    print(error)  # noqa: T201
    sys.exit(1)
