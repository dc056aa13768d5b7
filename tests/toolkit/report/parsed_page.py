"""A page as its tables, headings, pictures and links, read by the standard library's parser."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_CELLS = ("th", "td")
_VOID = ("meta", "img", "source", "br", "link", "input")
_ADDRESSES = ("src", "href", "srcset", "action", "data", "poster")


@dataclass
class Page(HTMLParser):
    """Tables as rows of cells' texts; raises AssertionError where a tag is closed that is not open."""

    tables: list[list[list[str]]] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    text: str = ""
    title: str = ""
    unclosed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.addresses.extend(value or "" for name, value in attrs if name in _ADDRESSES)
        if tag == "img":
            self.pictures.append(dict(attrs).get("src") or "")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in _CELLS:
            self.tables[-1][-1].append("")
        elif tag in ("h1", "h2"):
            self.headings.append("")
        if tag not in _VOID:
            self.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed, f"{tag} is closed but was never opened"
        assert self.unclosed[-1] == tag, f"{tag} is closed while {self.unclosed[-1]} is open"
        self.unclosed.pop()

    def handle_data(self, data: str) -> None:
        if "style" in self.unclosed:
            return
        self.text += data
        if "title" in self.unclosed:
            self.title += data
        if any(cell in self.unclosed for cell in _CELLS):
            # A second element in a cell stands on a line of its own.
            self.tables[-1][-1][-1] += ("|" if self.tables[-1][-1][-1] else "") + data
        elif self.unclosed and self.unclosed[-1] in ("h1", "h2"):
            self.headings[-1] += data

    def table_with(self, *head: str) -> list[list[str]]:
        """Return the rows below the head that begins with these cells."""
        (found,) = [table for table in self.tables if tuple(table[0][: len(head)]) == head]
        return found[1:]


def parse(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    return page
