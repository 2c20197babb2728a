from xml.etree import ElementTree

from kernelcore.evaluation import Table

TABLE = Table(
    columns=("system", "split", "R@1", "median"),
    rows=(("a_b | 100 %", "dev", "1.5", "10.0"), ("<c> & {d} \\e^~#$", "test", "22.0", "3.0")),
    n_labels=2,
    groups=(("", 2), ("annotation", 2)),
    emphasized=frozenset({(1, 2)}),
    caption="R@k in percent",
)


def test_text_aligns_words_left_and_numbers_right():
    assert str(TABLE).splitlines() == [
        "                         - annotation -",
        "system            split   R@1    median",
        "a_b | 100 %       dev     1.5      10.0",
        "<c> & {d} \\e^~#$  test   22.0       3.0",
        "R@k in percent",
    ]


def test_a_table_without_rows_still_has_a_head():
    assert str(Table(columns=("a", "b"), rows=())) == "a  b"


def test_markdown_escapes_and_keeps_rows_on_a_line():
    lines = TABLE.to_markdown().splitlines()
    assert lines == [
        "| system | split | annotation R@1 | annotation median |",
        "| :-- | :-- | --: | --: |",
        r"| a\_b \| 100 % | dev | 1.5 | 10.0 |",
        r"| \<c\> & {d} \\e^\~\#$ | test | **22.0** | 3.0 |",
        "",
        "R@k in percent",
    ]
    broken = Table(columns=("a",), rows=(("x\ny",),))
    assert broken.to_markdown().splitlines()[-1] == "| x y |"


def test_latex_escapes():
    text = TABLE.to_latex()
    assert r"a\_b | 100 \% & dev & 1.5 & 10.0 \\" in text
    escaped = r"<c> \& \{d\} \textbackslash{}e\textasciicircum{}\textasciitilde{}\#\$"
    assert rf"{escaped} & test & \textbf{{22.0}} & 3.0 \\" in text
    assert text.startswith("% R@k in percent\n\\begin{tabular}{llrr}\n")
    assert r"\multicolumn{2}{c}{} & \multicolumn{2}{c}{annotation} \\" in text
    assert r"\cmidrule(lr){3-4}" in text


MARKED = Table(
    columns=("system", "R@1"), rows=(("a", "1.5"), ("b", "22.0"), ("c", "3.0")),
    emphasized=frozenset({(1, 1)}), superscripts=frozenset({((0, 1), "**"), ((1, 1), "*")}),
)  # fmt: skip


def test_superscripts_in_every_format():
    text = ["system     R@1", "a        1.5**", "b       22.0*", "c        3.0"]
    assert str(MARKED).splitlines() == text  # the numbers stay in line
    rows = [r"| a | 1.5<sup>\*\*</sup> |", r"| b | **22.0**<sup>\*</sup> |", "| c | 3.0 |"]
    assert MARKED.to_markdown().splitlines()[2:] == rows
    assert r"a & 1.5\textsuperscript{**} \\" in MARKED.to_latex()
    assert r"b & \textbf{22.0}\textsuperscript{*} \\" in MARKED.to_latex()
    assert '<tr><th scope="row">a</th><td>1.5<sup>**</sup></td></tr>' in MARKED.to_html()
    assert "<td><strong>22.0</strong><sup>*</sup></td>" in MARKED.to_html()


def test_html_escapes_and_is_well_formed():
    tree = ElementTree.fromstring(TABLE.to_html())
    assert tree.findtext("caption") == "R@k in percent"
    groups, columns = tree.findall("thead/tr")
    found = [(cell.tag, cell.get("colspan"), cell.text) for cell in groups]
    assert found == [("td", "2", None), ("th", "2", "annotation")]
    assert [cell.text for cell in columns] == list(TABLE.columns)
    rows = [["".join(cell.itertext()) for cell in row] for row in tree.findall("tbody/tr")]
    assert rows == [list(row) for row in TABLE.rows]
    assert [cell.text for cell in tree.iter("strong")] == ["22.0"]
    assert {cell.text for cell in tree.findall("tbody/tr/th")} == {row[0] for row in TABLE.rows}
