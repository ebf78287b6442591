"""The user guide, which is shipped as Markdown, as pages that any browser shows with their pictures.

It knows the Markdown that the guide uses: headings, paragraphs, numbered lists, tables, code, pictures, links, bold and
italic words.
"""

import html
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parents[3] / "docs" / "guide"
_PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>FABRIK for Blender</title><style>
body {{ max-width: 48rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 sans-serif; }}
img {{ max-width: 100%; }} td, th {{ padding: 0.2rem 0.8rem 0.2rem 0; text-align: left; vertical-align: top; }}
pre {{ overflow-x: auto; background: #eee; padding: 0.5rem; }}
</style></head><body>
{}
</body></html>
"""
# What stands inside a line, in this order: links lead to the pages beside this one.
_INLINE: Final = (
    (r"!\[([^]]*)\]\(([^)]*)\)", r'<img alt="\1" src="{pictures}/\2">'),
    (r"\[([^]]*)\]\(([^)]*)\.md\)", r'<a href="\2.html">\1</a>'),
    (r"`([^`]*)`", r"<code>\1</code>"),
    (r"\*\*([^*]+)\*\*", r"<b>\1</b>"),
    (r"\*([^*]+)\*", r"<i>\1</i>"),
)


def write_pages(folder: Path) -> None:
    """Write all pages into a folder."""
    folder.mkdir(exist_ok=True)
    for source in SOURCE.glob("*.md"):
        page = as_html(source.read_text(encoding="utf-8"), SOURCE.as_uri())
        (folder / f"{source.stem}.html").write_text(page, encoding="utf-8")


def as_html(text: str, pictures: str) -> str:
    """A page of the guide; pictures: the address that those of it are named from."""
    blocks = re.split(r"\n\s*\n", html.escape(text.strip(), quote=False))
    return _PAGE.format("\n".join(_block(block, pictures) for block in blocks))


def _block(block: str, pictures: str) -> str:
    """One part of a page, by how it begins."""
    kind = next((kind for kind in _BLOCKS if re.match(kind, block)), "")
    if kind == "```":
        return _code(block)
    for pattern, tag in _INLINE:
        block = re.sub(pattern, tag.format(pictures=pictures), block)
    return _BLOCKS[kind](block)


def _heading(block: str) -> str:
    level = len(block) - len(block.lstrip("#"))
    return _wrapped(f"h{level}", block[level:].strip())


def _table(block: str) -> str:
    rows = [row.strip().strip("|").split("|") for row in block.splitlines() if set(row) - set("|- ")]
    return _wrapped("table", *(_wrapped("tr", *(_wrapped("td", cell.strip()) for cell in row)) for row in rows))


def _list(block: str) -> str:
    items = re.split(r"^[0-9]+[.] ", block, flags=re.MULTILINE)[1:]
    return _wrapped("ol", *(_wrapped("li", item.strip()) for item in items))


def _code(block: str) -> str:
    return _wrapped("pre", block.strip("`").strip())


def _paragraph(block: str) -> str:
    return _wrapped("p", block)


def _wrapped(tag: str, *parts: str) -> str:
    return f"<{tag}>{''.join(parts)}</{tag}>"


_BLOCKS: Final[Mapping[str, Callable[[str], str]]] = {
    "```": _code,
    "#": _heading,
    r"\|": _table,
    r"[0-9]+[.] ": _list,
    "": _paragraph,
}
