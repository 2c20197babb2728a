"""Write the tables of the README from the stored results.

    pytest bench --benchmark-json=bench/results/speed.json
    kernelcore reproduce hodosh2013 --data DATA --output DIR
    python bench/report.py --study DIR  # without --study: from what was stored before

Nothing is typed by hand: a number that is not in a stored result is not in a table.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from kernelcore.evaluation import ResultTable, RetrievalResult, Table
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

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
BEGIN, END = "<!-- tables: written by bench/report.py -->", "<!-- /tables -->"
PEERS = (
    "argsort",
    "cca_zoo",
    "count",
    "faiss",
    "lapjv",
    "lapx",
    "nltk",
    "numba",
    "numpy",
    "opencv",
    "pycocoevalcap",
    "ranx",
    "reference",
    "scikit_learn",
    "scipy",
    "sil_thot",
    "sklearn",
)


def accuracy() -> str:
    """Systems of Hodosh et al. (2013) on Flickr8k, beside what the paper gives."""
    document = json.loads((RESULTS / "hodosh2013.json").read_text(encoding="utf-8"))
    results = [
        RetrievalResult.from_dict(result)
        for result in document["results"]
        if result["kind"] != "published result" and result["system"] in SHOWN
    ]
    return ResultTable([*results, *hodosh2013.PUBLISHED]).to_markdown()


def speed() -> str:
    """Every group of benchmarks with a peer in it, the peers' times as multiples of ours."""
    document = json.loads((RESULTS / "speed.json").read_text(encoding="utf-8"))
    rows = list(speed_rows(document["benchmarks"]))
    machine = document["machine_info"]
    return Table(
        columns=("work", "implementation", "seconds", "times ours"),
        rows=tuple(rows),
        n_labels=2,
        caption=(
            f"fastest of the rounds; {machine['cpu']['brand_raw']}, "
            f"{machine['cpu']['count']} cores, Python {machine['python_version']}, "
            f"commit {document['commit_info']['id'][:10]}"
        ),
    ).to_markdown()


def speed_rows(benchmarks: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Rows of the groups in which somebody else runs beside us."""

    def group_of(benchmark: dict[str, Any]) -> str:
        return str(benchmark["group"])

    for group, members in groupby(sorted(benchmarks, key=group_of), group_of):
        entries = sorted(members, key=lambda benchmark: benchmark["stats"]["min"])
        ours = [entry["stats"]["min"] for entry in entries if is_ours(entry)]
        if not ours or len(ours) == len(entries):
            yield from (rate_row(entry) for entry in entries if "ratio" in entry["extra_info"])
            continue
        for entry in entries:
            seconds = entry["stats"]["min"]
            yield (
                group,
                str(entry["name"]).removeprefix("test_"),
                f"{seconds:.3g}",
                f"{seconds / ours[0]:.2f}",
            )


def rate_row(benchmark: dict[str, Any]) -> tuple[str, ...]:
    """Row of a benchmark that measures a peer's rate itself, on fewer pairs."""
    seconds, ratio = benchmark["stats"]["min"], benchmark["extra_info"]["ratio"]
    return (
        str(benchmark["group"]),
        "kernelcore; the peer at its rate",
        f"{seconds:.3g}; {seconds * ratio:.3g}",
        f"{ratio:.1f}",
    )


def is_ours(benchmark: dict[str, Any]) -> bool:
    """Tell whether no peer is named in the test's id."""
    return not any(peer in str(benchmark["name"]).lower() for peer in PEERS)


def store_study(folder: Path) -> None:
    """Keep the page of a run among the docs, and the results of the README's systems."""
    page = (folder / "results.md").read_text(encoding="utf-8")
    (ROOT / "docs" / "experiments" / "hodosh2013.md").write_text(page, encoding="utf-8")
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    document["results"] = [r for r in document["results"] if r["system"] in SHOWN]
    text = json.dumps(document, separators=(",", ":"))
    (RESULTS / "hodosh2013.json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Rewrite the README between its two marks with the tables of what is stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", type=Path, help="output folder of a run of the 2013 study")
    if (study := parser.parse_args().study) is not None:
        store_study(study)
    sections = {
        "hodosh2013.json": ("Flickr8k, photos of 224 x 224 pixels", accuracy),
        "speed.json": ("Speed beside peers, in one run", speed),
    }
    tables = "\n\n".join(
        f"**{heading}**\n\n{table()}"
        for name, (heading, table) in sections.items()
        if (RESULTS / name).is_file()
    )
    readme = ROOT / "README.md"
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.S)
    text = pattern.sub(lambda _: f"{BEGIN}\n\n{tables}\n\n{END}", readme.read_text("utf-8"))
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
