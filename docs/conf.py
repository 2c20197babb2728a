"""Settings of the site, which `python -m sphinx -n -W --keep-going docs build/html` builds.

Nothing is fetched: formulas become MathML, which browsers draw themselves, and the addresses of
NumPy's and Python's types are in _inventories. No page loads anything from elsewhere.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.autosummary import ImportExceptionGroup, import_by_name
from sphinx.util.nodes import make_refnode

os.environ.setdefault("KERNELCORE_NUM_THREADS", "1")  # torch waits for cores that others use

import kernelcore

project = "kernelcore"
author = "the kernelcore developers"
project_copyright = "2026, the kernelcore developers"
version = release = kernelcore.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
nitpicky = True
default_role = "autolink"
nitpick_ignore_regex = [("py:class", r"numpy\._typing\..*")]  # of aliases of types
highlight_language = "none"
copybutton_exclude = ".linenos, .gp, .go"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4


def classes_below(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Public classes of a package and of what it hands out, with their full names."""
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield from classes_below(value)
        elif inspect.isclass(value):
            yield name, f"{module.__name__}.{name}"


autodoc_typehints = "none"  # the section on parameters has the types in words
autodoc_member_order = "bysource"
autosummary_generate = True
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # types are plain English; the names below are links
numpydoc_xref_aliases = {
    **dict(classes_below(kernelcore)),
    "array": "numpy.ndarray",
    "array_like": ":term:`array_like`",
    "bool": ":class:`python:bool`",
    "callable": "collections.abc.Callable",
    "Generator": "numpy.random.Generator",
    "iterable": "collections.abc.Iterable",
    "mapping": "collections.abc.Mapping",
    "Path": "pathlib.Path",
    "scalar": "python:float",
    "sequence": "collections.abc.Sequence",
}

intersphinx_mapping = {
    "python": ("https://docs.python.org/3/", "_inventories/python.inv"),
    "numpy": ("https://numpy.org/doc/stable/", "_inventories/numpy.inv"),
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("kernelcore",),
    "reference_url": {"kernelcore": None},
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "capture_repr": (),
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib",),
    "subsection_order": [
        f"../examples/{name}"
        for name in ("searching", "evaluating", "kernels", "words", "photos", "deep", "scale")
    ],
}

html_theme = "pydata_sphinx_theme"
html_title = "kernelcore"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {"text": "kernelcore"},
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}


_REFERENCE = ".reference."  # has the same names as the package


def mathml(formula: str, **options: bool) -> str:
    """Return a formula as MathML, where brackets grow by themselves."""
    formula = re.sub(r"\\(?:[Bb]igg?|textstyle)(?![A-Za-z])", "", formula)
    formula = formula.replace(r"\dots", r"\ldots")
    inner = r"\\substack\{((?:[^{}]|\{[^{}]*\})*)\}"
    formula = re.sub(inner, r"\\begin{matrix}\1\\end{matrix}", formula)
    return str(latex2mathml.tex2mathml(formula, **options))


def draw_inline(writer: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def draw_block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula of its own."""
    formula = mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode


def join_lines(*event: Any) -> None:
    """Join lines that a backslash divides: a raw docstring keeps the backslash."""
    lines = event[-1]
    lines[:] = re.sub(r"(?<!\\) *\\\n *", " ", "\n".join(lines)).split("\n")


def link_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Link a public name that a docstring gives without its module.

    What can be imported and has no page, such as an attribute, is no link. Anything else is
    left as it is, a warning.
    """
    if node.get("refdomain") != "py":
        return None
    name, module = node["reftarget"], node.get("py:module") or "kernelcore"
    objects = env.domains["py"].data["objects"]
    found = {full: own for full, own in objects.items() if full.endswith(f".{name}")}
    for package in (".".join(module.split(".")[:2]), "kernelcore"):
        near = [
            full for full in found if full.startswith(f"{package}.") and _REFERENCE not in full
        ]
        if len(near) == 1:
            own = found[near[0]]
            return make_refnode(
                app.builder, node["refdoc"], own.docname, own.node_id, content, near[0]
            )
    prefixes = (f"{module}.{node.get('py:class')}", module, None)
    try:
        import_by_name(name, [own for own in prefixes if not name.startswith(f"{own}.")])
    except ImportExceptionGroup:
        return None
    return content


def setup(app: Sphinx) -> None:
    """Register what is defined here."""
    app.add_html_math_renderer("mathml", (draw_inline, None), (draw_block, None))
    app.connect("autodoc-process-docstring", join_lines, priority=400)  # before numpydoc
    app.connect("missing-reference", link_name)
