"""Reports: one HTML file, Markdown tables and figures.

A report receives plain data: results from ``evaluation``, scores, captions and pixels. It
knows no model. `write_html` puts together what `search_examples`, `annotation_examples`,
``figures``, `document_links` and a `StageRecorder` give.
"""

from kernelcore.report import figures
from kernelcore.report.drawing import ReportFigure, Thumbnail, save_figures
from kernelcore.report.examples import Example, Hit, annotation_examples, search_examples
from kernelcore.report.figures import (
    histograms,
    recall_curves,
    similarity_matrix,
    training_curves,
)
from kernelcore.report.found_page import write_found
from kernelcore.report.link_figure import document_links
from kernelcore.report.page import Section, write_html, write_markdown
from kernelcore.report.region_figure import aligned_regions, found_regions
from kernelcore.report.stages import Stage, StageRecorder

__all__ = [
    "Example",
    "Hit",
    "ReportFigure",
    "Section",
    "Stage",
    "StageRecorder",
    "Thumbnail",
    "aligned_regions",
    "annotation_examples",
    "document_links",
    "figures",
    "found_regions",
    "histograms",
    "recall_curves",
    "save_figures",
    "search_examples",
    "similarity_matrix",
    "training_curves",
    "write_found",
    "write_html",
    "write_markdown",
]
