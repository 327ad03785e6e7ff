"""Makes the package's long description from README.md.

The links of the README lead to files of the checkout. On a package index and in `pip show` they
would be dead, so each becomes its text and the path of the file. Code is left as it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

NOTE = "Paths such as `docs/rules/LS001.md` are those of the source distribution."

PARTS = re.compile(
    r"(?P<code>^```.*?^```[^\n]*$|`[^`\n]+`)"
    r"|!?\[(?P<text>(?:`[^`]*`|[^\]`])*)\]\((?P<target>[^)\s]+)[^)]*\)"
    r"|<img\b(?P<attributes>[^>]*)>"
    r"|</?(?:a|picture|source)\b[^>]*>",
    re.DOTALL | re.MULTILINE,
)
"""In this order, so that a link inside code stays code, and code inside a link stays a link."""
ATTRIBUTE = re.compile(r'\b(alt|src)="([^"]*)"')
WEB = ("https://", "http://", "mailto:")


class ReadmeHook(MetadataHookInterface):
    """Sets `readme`, which pyproject.toml declares as dynamic."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_local_links(readme)}


def without_local_links(markdown: str) -> str:
    """Replace links and images that lead to files or headings by text. Links to the web stay."""
    return PARTS.sub(_replace, markdown).rstrip() + f"\n\n{NOTE}\n"


def _replace(found: re.Match[str]) -> str:
    if found["code"]:
        return found[0]
    if found["target"]:
        return _text(found[0], found["text"], found["target"])
    if found["attributes"]:
        given = dict(ATTRIBUTE.findall(found["attributes"]))
        return _text(found[0], given.get("alt", ""), given.get("src", ""))
    return ""  # a tag around an image


def _text(whole: str, text: str, target: str) -> str:
    if target.startswith(WEB):
        return whole
    path = target.partition("#")[0]
    if not path or text.strip("`") == path:
        return text
    return f"{text} ({path})"
