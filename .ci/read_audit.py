"""Print what pip-audit reported; fail if it found a vulnerability, or could not ask for most packages.

Usage: python .ci/read_audit.py REPORT.json
"""

import json
import sys
from pathlib import Path

report = Path(sys.argv[1])
try:
    found = json.loads(report.read_text("utf-8"))["dependencies"]
except (OSError, ValueError):
    sys.exit("PyPI's advisory service cannot be reached from here, so nothing was audited.")
packages = [each for each in found if each["name"] != "cloudsched"]
asked = [each for each in packages if "vulns" in each]
if not asked:
    sys.exit(f"PyPI's advisory service cannot be reached from here, so none of {len(packages)} packages was audited.")
if len(asked) < len(packages) / 2:
    sys.exit(f"PyPI's advisory service answered for only {len(asked)} of {len(packages)} packages: this is no audit.")
for each in packages:
    if "vulns" not in each:
        print(f"not audited: {each['name']}: {each.get('skip_reason', '')}")
vulnerable = [(each, flaw) for each in asked for flaw in each["vulns"]]
for each, flaw in vulnerable:
    fixed = ", ".join(flaw["fix_versions"]) or "no version yet"
    print(f"{each['name']} {each['version']}: {flaw['id']}, mended in {fixed}")
print(f"{len(asked)} packages audited, {len(vulnerable)} known vulnerabilities")
sys.exit(1 if vulnerable else 0)
