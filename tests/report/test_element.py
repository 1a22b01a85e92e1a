"""HTML by elements: everything else is escaped."""

from ckgconv.report.element import Html, element, figure, joined, picture, shown, table


def test_text_and_attributes_are_escaped():
    assert element("p", "a < b & ", element("b", "c"), None, 3) == "<p>a &lt; b &amp; <b>c</b>3</p>"
    assert element("img", alt='"x" <y>') == '<img alt="&quot;x&quot; &lt;y&gt;">'
    assert element("div", class_="a", http_equiv="b") == '<div class="a" http-equiv="b"></div>'
    assert isinstance(joined([element("p")]), Html)


def test_controls_are_replaced():
    assert shown("a\x00b\u202ec\n") == "a�b�c\n"


def test_tables_and_figures():
    written = table(("a", "<b>"), [(1, Html("<i>2</i>")), ("<3>", 4)])
    assert "<th>&lt;b&gt;</th>" in written
    assert "<td><i>2</i></td>" in written
    assert "<td>&lt;3&gt;</td>" in written
    assert 'class="numbers"' in written
    assert 'class="numbers"' not in table(("a",), [], numbers=False)
    assert figure("<svg/>", "says <this>").endswith("<figcaption>says &lt;this&gt;</figcaption></figure>")
    assert picture("<svg/>", "x").startswith('<img src="data:image/svg+xml;base64,PHN2Zy8+"')
