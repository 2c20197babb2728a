"""Write docs/performance.md and the tables of the README from the stored results.

    python bench/run.py       # measure
    kernelcore reproduce hodosh2013 --data DATA --output DIR
    python bench/report.py --study DIR  # without --study: from what was stored before

Nothing is typed by hand: a number that is not in a stored result is not in a table.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import performance
import record

from kernelcore.evaluation import ResultTable, RetrievalResult
from kernelcore.experiments import hodosh2013

SHOWN = (
    "NN_F1^idf",
    "BoW1",
    "BoW5",
    "BoW5^sqrt-idf",
    "TagRank",
    "Tri5",
    "Tri5_A",
    "Tri5^sqrt-idf",
    "Tri5Sem^histo",
    "Tri5Sem",
)
"""Systems of the README; the page of the experiment has all."""

BEGIN, END = "<!-- tables: written by bench/report.py -->", "<!-- /tables -->"
DOCS = record.ROOT / "docs"
STUDY = "hodosh2013.json"


def accuracy() -> str:
    """Systems of Hodosh et al. (2013) on Flickr8k, beside what the paper gives."""
    document = json.loads((record.RESULTS / STUDY).read_text(encoding="utf-8"))
    results = [
        RetrievalResult.from_dict(result)
        for result in document["results"]
        if result["kind"] != "published result" and result["system"] in SHOWN
    ]
    return ResultTable([*results, *hodosh2013.PUBLISHED]).to_markdown()


def store_study(folder: Path) -> None:
    """Keep the page of a run among the docs, and the results of the README's systems."""
    page = (folder / "results.md").read_text(encoding="utf-8")
    (DOCS / "experiments" / "hodosh2013.md").write_text(page, encoding="utf-8")
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    document["results"] = [r for r in document["results"] if r["system"] in SHOWN]
    text = json.dumps(document, separators=(",", ":"))
    (record.RESULTS / STUDY).write_text(text + "\n", encoding="utf-8")


def rewrite(path: Path, sections: Mapping[str, str]) -> None:
    """Put the sections between the two marks of a page."""
    tables = "\n\n".join(f"**{heading}**\n\n{table}" for heading, table in sections.items())
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.S)
    text = pattern.sub(lambda _: f"{BEGIN}\n\n{tables}\n\n{END}", path.read_text("utf-8"))
    path.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pages from what is stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", type=Path, help="output folder of a run of the 2013 study")
    if (study := parser.parse_args(arguments).study) is not None:
        store_study(study)
    rewrite(
        record.ROOT / "README.md",
        {
            "Flickr8k, photos of 224 x 224 pixels": accuracy(),
            "Speed beside peers, side by side in one process": performance.summary(),
        },
    )
    performance.write(DOCS)


if __name__ == "__main__":
    main()
