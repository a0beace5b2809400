"""Give a package the addresses of the repository that it was built from, also in its README's links.

Nothing in the project names one.

In a workflow of GitHub that is GITHUB_REPOSITORY. A source distribution keeps the addresses that it was built with.
"""

import os
import re
import sys
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class UrlsHook(MetadataHookInterface):
    """Sets the project's URLs."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the addresses, if they are known, and the README, whose links an index cannot resolve."""
        if sys.version_info < (3, 11):  # noqa: UP036 - pip 23.0 and older look for another release of each dependency, without end
            sys.exit("cloudsched needs Python 3.11 or newer")
        root = Path(self.root)
        metadata["urls"] = urls = find_urls(root)
        metadata["readme"] = {"content-type": "text/markdown", "text": read_readme(root, urls.get("Documentation"))}


def read_readme(root: Path, address: str | None) -> str:
    """Return the README with absolute links, if the address of its page is known."""
    built = root / "PKG-INFO"
    if built.is_file():  # made absolute when the source distribution was built
        return str(HeaderParser().parsestr(built.read_text("utf-8")).get_payload())
    text = (root / "README.md").read_text("utf-8")
    if address is None:
        return text
    pages = address.removesuffix("README.md")
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:|#)", rf"\1{pages.replace('/blob/', '/raw/')}", text)
    return re.sub(r"((?<!!)\[[^]]*\]\()(?!https?:|#)", rf"\1{pages}", text)


def find_urls(root: Path) -> dict[str, str]:
    """Return the addresses by their labels; none for what is built from an unknown place."""
    name, server = os.environ.get("GITHUB_REPOSITORY"), os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    if name:
        home = f"{server}/{name}"
        at = f"{home}/blob/{os.environ.get('GITHUB_REF_NAME', 'main')}"
        return {
            "Repository": home,
            "Documentation": f"{at}/README.md",
            "Changelog": f"{at}/CHANGELOG.md",
            "Issues": f"{home}/issues",
        }
    built = root / "PKG-INFO"
    if not built.is_file():
        return {}
    lines = HeaderParser().parsestr(built.read_text("utf-8")).get_all("Project-URL") or []
    return dict(line.split(", ", 1) for line in lines)
