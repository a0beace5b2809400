"""Take from a bill of materials where files lay on the machine that wrote it: the wheel is installed from a path.

Usage: strip_paths.py SBOM
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(file: Path) -> None:
    """Remove references to local files; fail if a path is left."""
    bill = json.loads(file.read_text(encoding="utf-8"))
    for component in [bill["metadata"].get("component", {}), *bill.get("components", [])]:
        references = [each for each in component.pop("externalReferences", []) if not each["url"].startswith("file:")]
        if references:
            component["externalReferences"] = references
    text = json.dumps(bill, indent=2) + "\n"
    if "file://" in text or str(Path.cwd()) in text:
        sys.exit(f"{file} still names a local path.")
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
