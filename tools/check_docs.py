"""Check the documentation: links resolve, commands exist, code blocks of Python parse, no machine paths.

The README's Python code itself runs in tests/test_readme.py.
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md")])


def broken_links(page: Path) -> list[str]:
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            found.append(f"{page.name}: link to {target}, which does not exist")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            found.append(f"{page.name}: {target} names no heading of {file.name}")
    return found


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def broken_code(page: Path) -> list[str]:
    found = []
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        try:
            ast.parse(block)
        except SyntaxError as error:
            found.append(f"{page.name}: Python block does not parse: {error}")
    return found


def named_paths(page: Path) -> list[str]:
    """Files of the source tree that a page names in backquotes must exist."""
    names = re.findall(r"`((?:\w+/)+\w+\.(?:py|md|toml|json))`", page.read_text())
    bases = (ROOT, ROOT / "src" / "sabre", page.parent)
    return [
        f"{page.name}: names {name}, which does not exist"
        for name in names
        if not any((b / name).exists() for b in bases)
    ]


def unknown_make_targets(page: Path) -> list[str]:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = re.findall(r"`?make ([a-z]+)`?", page.read_text())
    known_words = targets | {"it", "a", "the", "sure"}
    return [f"{page.name}: make {name} is not in the Makefile" for name in used if name not in known_words]


def main() -> int:
    problems = []
    for page in PAGES:
        for check in (broken_links, broken_code, named_paths, unknown_make_targets):
            problems += check(page)
        if re.search(r"(?<![\w.])/(?:home|root|work|tmp)/", page.read_text()):
            problems.append(f"{page.name}: holds a machine path")
    print("\n".join(problems) or f"{len(PAGES)} pages: links, paths, commands and code blocks are good")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
