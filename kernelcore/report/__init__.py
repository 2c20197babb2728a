"""Reports: one HTML file, Markdown tables and figures.

A report receives plain data: results from ``evaluation``, scores, captions and pixels. It
knows no model. `write_html` puts together the table of results, what `query_examples` and a
`StageRecorder` give, and figures: a plot of `kernelcore.plots` with a title and an alternative
text, see `ReportFigure`.
"""

from kernelcore.report.examples import query_examples
from kernelcore.report.figures import (
    ReportFigure,
    recall_figure,
    save_figures,
    similarity_figure,
)
from kernelcore.report.link_figure import link_figure
from kernelcore.report.page import Section, write_found, write_html, write_markdown
from kernelcore.report.stages import StageRecorder

__all__ = [
    "ReportFigure",
    "Section",
    "StageRecorder",
    "link_figure",
    "query_examples",
    "recall_figure",
    "save_figures",
    "similarity_figure",
    "write_found",
    "write_html",
    "write_markdown",
]
