"""Write docs/performance.md and the tables of the README from the stored results.

    python bench/run.py       # measure
    kernelcore reproduce hodosh2013 --data DATA --output DIR
    python bench/report.py --study hodosh2013 DIR  # without --study: from what was stored

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
from kernelcore.experiments import hodosh2013, karpathy2014

SHOWN = {
    "hodosh2013": (
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
    ),
    "karpathy2014": ("full model",),
    "hu2019": (
        "KCCA, one caption",
        "KCCA, Tri5Sem",
        "ConvNet+BoW",
        "ConvNet+Bi-GRU",
        "Obj+Bi-GRU",
        "SCAN i2t",
        "SCAN t2i",
    ),
}
"""Systems of the README by experiment; the pages of the experiments have all."""

BEGIN, END = "<!-- tables: written by bench/report.py -->", "<!-- /tables -->"
DOCS = record.ROOT / "docs"


def visual_words() -> str:
    """Systems of Hodosh et al. (2013) on Flickr8k, beside what the paper gives."""
    return ResultTable([*_stored("hodosh2013"), *hodosh2013.PUBLISHED]).to_markdown()


def network_features() -> str:
    """Systems that read features of a network, in a pool of all captions."""
    published = [row for row in karpathy2014.PUBLISHED if row.system == "Our model (+ MIL)"]
    results = [*_stored("hu2019"), *_stored("karpathy2014")]
    return ResultTable([*results, *published]).to_markdown()


def store_study(name: str, folder: Path) -> None:
    """Keep the results of the README's systems, and the page that is a run's as it stands."""
    if name == "hodosh2013":
        page = (folder / "results.md").read_text(encoding="utf-8")
        (DOCS / "experiments" / "hodosh2013.md").write_text(page, encoding="utf-8")
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    document["results"] = [r for r in document["results"] if r["system"] in SHOWN[name]]
    text = json.dumps(document, separators=(",", ":"))
    (record.RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _stored(name: str) -> list[RetrievalResult]:
    document = json.loads((record.RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return [
        RetrievalResult.from_dict(result)
        for result in document["results"]
        if result["kind"] != "published result"
    ]


def rewrite(path: Path, sections: Mapping[str, str]) -> None:
    """Put the sections between the two marks of a page."""
    tables = "\n\n".join(f"**{heading}**\n\n{table}" for heading, table in sections.items())
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.S)
    text = pattern.sub(lambda _: f"{BEGIN}\n\n{tables}\n\n{END}", path.read_text("utf-8"))
    path.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pages from what is stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--study",
        nargs=2,
        action="append",
        default=[],
        metavar=("EXPERIMENT", "DIR"),
        help=f"output folder of a run of {', '.join(SHOWN)}",
    )
    for name, folder in parser.parse_args(arguments).study:
        store_study(name, Path(folder))
    rewrite(
        record.ROOT / "README.md",
        {
            "Flickr8k, visual words of photos of 224 x 224 pixels": visual_words(),
            "Flickr8k, features of EfficientNet-Lite0, all captions": network_features(),
            "Speed beside peers, side by side in one process": performance.summary(),
        },
    )
    performance.write(DOCS)


if __name__ == "__main__":
    main()
