"""Check the links between the Markdown files, and list the external ones, which nobody fetches.

python docs/links.py    prints the external addresses; fails where a relative link leads nowhere
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def links() -> list[tuple[Path, str]]:
    """Return every link of every Markdown file, with the file."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "papers").glob("*.md")]
    found = [(path, _LINK.findall(_CODE.sub("", path.read_text()))) for path in sorted(files)]
    return [(path, target) for path, targets in found for target in targets]


def external(target: str) -> bool:
    return "://" in target


def broken() -> list[str]:
    """Return the relative links that lead nowhere; the site's build checks those to generated pages."""
    missing = []
    for path, target in links():
        file = target.partition("#")[0]
        if external(target) or not file or "generated/" in file:
            continue
        if not (path.parent / file).exists():
            missing.append(f"{path.relative_to(ROOT)}: {target}")
    return missing


def main() -> int:
    for path, target in links():
        if external(target):
            print(f"{path.relative_to(ROOT)}: {target}")
    for line in broken():
        print(f"leads nowhere: {line}", file=sys.stderr)
    return 1 if broken() else 0


if __name__ == "__main__":
    sys.exit(main())
