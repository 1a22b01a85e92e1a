"""Elements of HTML as text, in which everything that is not an element is escaped.

element("p", "5 < 6, ", element("b", "so")) → <p>5 &lt; 6, <b>so</b></p>
"""

import base64
from collections.abc import Iterable, Sequence
from html import escape

# Elements without content, which have no closing tag.
EMPTY = ("meta", "img", "br")
Content = "str | float | Html | None"


class Html(str):
    """Text that is already HTML."""


def element(name: str, *content: "str | float | Html | None", **attributes: str) -> Html:
    """<name attributes>content</name>; `class_` is the attribute class, and None is left out."""
    pairs = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    written = "".join(f' {key}="{escape(value)}"' for key, value in pairs)
    inside = "".join(each if isinstance(each, Html) else escape(shown(each)) for each in content if each is not None)
    return Html(f"<{name}{written}>" if name in EMPTY else f"<{name}{written}>{inside}</{name}>")


def shown(text: object) -> str:
    """Text without the characters that a page cannot hold or that hide others, such as controls."""
    return "".join(each if each.isprintable() or each == "\n" else "�" for each in str(text))


def joined(parts: Iterable[Html]) -> Html:
    """Elements one after the other."""
    return Html("".join(parts))


def table(header: Sequence[object], rows: Iterable[Sequence[object]], numbers: bool = True) -> Html:
    """A table; all columns but the first are set as numbers, to the right."""
    aligned = {"class_": "numbers"} if numbers else {}
    head = element("tr", *(element("th", _cell(each)) for each in header))
    body = joined(element("tr", *(element("td", _cell(each)) for each in row)) for row in rows)
    return element("div", element("table", element("thead", head), element("tbody", body), **aligned), class_="wide")


def picture(svg: str, says: str) -> Html:
    """A drawing as an image of its own, whose names and styles do not meet those of others; `says` is its text."""
    data = base64.b64encode(svg.encode()).decode()
    return element("img", src=f"data:image/svg+xml;base64,{data}", alt=shown(says))


def figure(svg: str, caption: str) -> Html:
    """A picture with a caption, which is its text too."""
    return element("figure", picture(svg, caption), element("figcaption", caption))


def _cell(value: object) -> "str | Html":
    return value if isinstance(value, Html) else str(value)
