import pytest

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
    assert (
        r"<c> \& \{d\} \textbackslash{}e\textasciicircum{}\textasciitilde{}\#\$ & test "
        r"& \textbf{22.0} & 3.0 \\"
    ) in text
    assert text.startswith("% R@k in percent\n\\begin{tabular}{llrr}\n")
    assert r"\multicolumn{2}{c}{} & \multicolumn{2}{c}{annotation} \\" in text
    assert r"\cmidrule(lr){3-4}" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": (("a",),)}, "rows must have 2 cells each, got 1"),
        ({"rows": (), "groups": (("g", 3),)}, "groups must span 2 columns, got 3"),
    ],
)
def test_parts_must_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        Table(columns=("a", "b"), **arguments)
