"""Compare an installed environment with what docs/start/quickstart.md says of it; fail if it is more than 15 % off.

Usage: python .ci/count_install.py ENVIRONMENT [EXTRA…]
"""

import re
import sys
from importlib.metadata import distributions
from pathlib import Path

ROOM = 0.15

environment, extras = Path(sys.argv[1]), sys.argv[2:]
install = "cloudsched" + (f"[{','.join(extras)}]" if extras else "")
text = (Path(__file__).parents[1] / "docs" / "start" / "quickstart.md").read_text("utf-8")
row = re.search(rf"^\| `{re.escape(install)}` \|.*\| (\d+) \| (\d+) \|$", text, re.MULTILINE)
if row is None:
    sys.exit(f"docs/start/quickstart.md has no row for {install}")
found = list(distributions(path=[str(each) for each in environment.glob("lib/python*/site-packages")]))
size = sum(file.size or 0 for each in found for file in each.files or []) / 1e6
says = f"{install}: {len(found)} packages, {size:.0f} MB; docs/start/quickstart.md says about {row[1]} and {row[2]}"
if any(abs(counted / int(said) - 1) > ROOM for counted, said in ((len(found), row[1]), (size, row[2]))):
    sys.exit(f"error: {says}")
print(says)
