"""Deep fragment embeddings: images and sentences compared part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kernelcore._reading import Contents, check_tensor
from kernelcore._validation import (
    Array,
    check_choice,
    check_flag,
    check_integer,
    check_real,
)
from kernelcore.captions import FragmentExtractor, SentenceFragments, SentenceTrees
from kernelcore.captions.fragments import FragmentKind
from kernelcore.deep.cutting import cut, new_extractor, rows_by_id
from kernelcore.deep.fragment_objective import FragmentObjective
from kernelcore.deep.fragment_space import SENTENCES, Captions, FragmentSpace, build_space
from kernelcore.deep.randomness import seeded_generator
from kernelcore.deep.region_tables import REGIONS, Regions, RegionTable
from kernelcore.deep.schedules import Cooldown
from kernelcore.deep.threads import torch_threads
from kernelcore.deep.torch_ranker import VectorRanker
from kernelcore.deep.training import MakeOptimizer, adam
from kernelcore.lexical import WordVectors
from kernelcore.models.pairs import Pairs

_FRAGMENTS = ("dependencies", "bigrams", "words")
_OBJECTIVES = ("both", "alignment", "ranking")
_MOMENTUM = 0.9


def _make_adam(weight_decay: float) -> MakeOptimizer:
    return partial(adam, weight_decay=2 * weight_decay)


def _make_sgd(weight_decay: float) -> MakeOptimizer:
    def make(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        # the schedule sets the rate before the first step
        return torch.optim.SGD(
            parameters, lr=1.0, momentum=_MOMENTUM, weight_decay=2 * weight_decay
        )

    return make


_OPTIMIZERS: Mapping[str, Callable[[float], MakeOptimizer]] = {
    "adam": _make_adam,
    "sgd": _make_sgd,
}
"""From the factor of |theta|^2, whose gradient is twice it, to an optimizer."""


class RegionMatch(NamedTuple):
    """A region that fits a fragment.

    Attributes
    ----------
    image : int
        Position of the image.
    region : int
        Position of the region within the image.
    score : float
        Product of the vectors of region and fragment.
    """

    image: int
    region: int
    score: float


class FragmentRanker(VectorRanker):
    r"""Ranks images and captions by how well their regions and fragments align.

    A linear map takes the features of each region to a vector :math:`v_i`, a layer of
    rectified units takes each sentence fragment, a relation of two words, to :math:`s_j`.
    Their products tell what shows what, and

    .. math::

        S_{kl} = \frac1{|g_k| (|g_l| + n)} \sum_{i \in g_k} \sum_{j \in g_l}
            \max(0, v_i^\top s_j)

    how well image k and sentence l belong together. Trained are the alignment of regions and
    fragments and the ranking of images and sentences, :math:`C_F + \beta C_G`, see
    `alignment_loss` and `hinge_loss` with the sum over all negatives.

    Parameters
    ----------
    sentence : {"fragments", "mean", "tree"}, default "fragments"
        What stands for a sentence: its fragments; the mean of its words' vectors (DeViSE
        [2]_); or the root of a recursive network over its dependency tree (SDT-RNN [3]_),
        for which captions are `kernelcore.captions.SentenceTrees`.
    fragments : {"dependencies", "bigrams", "words"}, optional
        What raw captions are cut into, see `kernelcore.captions.FragmentExtractor`. The default
        is "words" for ``sentence="mean"``, else "dependencies", which need spaCy (extra
        ``text``), as trees do.
    regions : {"all", "first", "mean"}, default "all"
        What stands for an image: all its regions, the first one, which is the whole image,
        or the mean of all.
    objective : {"both", "alignment", "ranking"}, default "both"
    multiple_instance : bool, default True
        After `n_dense` epochs, let a fragment belong to those regions of its image that it
        fits best instead of to all.
    balanced : bool, default True
        Let positive and negative regions of a fragment weigh the same in the alignment. In
        [1]_ each pair weighs the same.
    n_dense : int, optional
        The default is half of the epochs.
    n_drawn : int, optional
        Regions of each image in a step of training, the first and others at random: each step
        costs less, and images are not learned by heart as fast. The default is all; rankings
        always use all.
    n_components : int, default 256
        Length of the vectors; [1]_ has 1000.
    smoothing : float, default 5.0
        n.
    margin : float, default 1.0
        Of the ranking.
    ranking_weight : float, default 2.0
        :math:`\beta`, of the ranking where both are trained.
    dropout : float, default 0.3
        Share of the features of regions that are dropped in training; [1]_ has none.
    weight_decay : float, default 0.0
        :math:`\alpha` of :math:`\alpha \lVert\theta\rVert^2`.
    optimizer : {"adam", "sgd"}, default "adam"
        [1]_ has "sgd", with momentum 0.9.
    learning_rate : float, default 1e-3
        A tenth of it in the last two epochs.
    batch_size : int, default 100
        Captions in a minibatch, each with its image.
    n_epochs : int, default 10
    network : Module, optional
        A torch module that makes features of pixels: it is trained along after `n_dense`
        epochs. Images are then arrays (n_images, channels, height, width), or
        `RegionFeatures` with such pixels as features. The module itself is changed.
    rng : numpy.random.Generator, int or None, default None
        Source of all random choices.
    device : str, default "cpu"
        Any of torch's.

    Attributes
    ----------
    history_ : History
        Losses of each epoch; the development loss is 1 less the mean of R@1, R@5 and R@10 of
        both directions.
    extractor_ : FragmentExtractor or None
        Cuts raw captions, where it was fitted to such.

    See Also
    --------
    kernelcore.captions.FragmentExtractor : Cuts captions into fragments.
    kernelcore.images.RegionCNN : Describes regions.

    Notes
    -----
    `fit` and `scores` take raw captions, or `SentenceFragments` and `SentenceTrees` that were
    made of them. Word vectors stay as they are. Of raw captions the words that have vectors
    are known, in training or not; without vectors the words of the training captions are, by
    random ones of 50 dimensions. For captions that are cut already, row i of the word vectors
    belongs to the word of id i, as where `vocabulary` of the extractor holds the same words.

    With ``sentence="mean"`` or "tree" and one region an image, ``regions="first"`` or "mean",
    each side has one vector. `embed_captions` divides those of captions by 1 + n, so that the
    products of both are the scores, except that a score is never below 0.

    Scores are computed for 32 images and 8,192 fragments at a time, each fragment once however
    many captions have it: beyond the result, memory holds the vectors of all fragments and
    one block of products, some 20 MB for 20 regions.

    References
    ----------
    .. [1] A. Karpathy, A. Joulin and L. Fei-Fei, "Deep fragment embeddings for bidirectional
       image sentence mapping", NIPS 2014.
    .. [2] A. Frome et al., "DeViSE: a deep visual-semantic embedding model", NIPS 2013.
    .. [3] R. Socher et al., "Grounded compositional semantics for finding and describing
       images with sentences", TACL 2, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.deep import FragmentRanker
    >>> captions = ["a dog", "the sea", "two boats"]
    >>> photos = np.eye(3)
    >>> ranker = FragmentRanker(fragments="bigrams", dropout=0.0, n_epochs=20,
    ...                         learning_rate=0.01, rng=0)
    >>> ranker = ranker.fit(photos, captions, dev=(photos, captions))
    >>> ranker.scores(photos, captions).argmax(axis=1)
    array([0, 1, 2])
    """

    kind = "fragment ranker"

    extractor_: FragmentExtractor | None = None
    space_: FragmentSpace
    n_relations_: int

    def __init__(
        self,
        *,
        sentence: str = "fragments",
        fragments: FragmentKind | None = None,
        regions: Regions = "all",
        objective: str = "both",
        multiple_instance: bool = True,
        balanced: bool = True,
        n_dense: int | None = None,
        n_drawn: int | None = None,
        n_components: int = 256,
        smoothing: float = 5.0,
        margin: float = 1.0,
        ranking_weight: float = 2.0,
        dropout: float = 0.3,
        weight_decay: float = 0.0,
        optimizer: str = "adam",
        learning_rate: float = 1e-3,
        batch_size: int = 100,
        n_epochs: int = 10,
        network: nn.Module | None = None,
        rng: np.random.Generator | int | None = None,
        device: str = "cpu",
    ) -> None:
        self.sentence = sentence
        self.fragments = fragments
        self.regions = regions
        self.objective = objective
        self.multiple_instance = multiple_instance
        self.balanced = balanced
        self.n_dense = n_dense
        self.n_drawn = n_drawn
        self.n_components = n_components
        self.smoothing = smoothing
        self.margin = margin
        self.ranking_weight = ranking_weight
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.network = network
        self.rng = rng
        self.device = device

    def alignments(
        self, images: Any, captions: Any, *, n_threads: int | None = None
    ) -> list[npt.NDArray[np.float32]]:
        """Products of the regions of each image with the fragments of its caption.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        captions : sequence of str, SentenceFragments or SentenceTrees
            Caption i belongs to image i.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        list of ndarray of float32, shape (n_regions, n_fragments)
            A fragment is seen in a region where the product is positive, and best where it
            is greatest.
        """
        table, own = self._asked_images(images), self._asked_captions(captions)
        if len(table) != len(own):
            raise ValueError(f"captions must be one per image ({len(table)}), got {len(own)}")
        with torch_threads(n_threads):
            return self.space_.products(table, own)

    def search_regions(
        self, images: Any, fragment: Any, *, k: int = 10, n_threads: int | None = None
    ) -> list[RegionMatch]:
        """Find the regions of all images that fit one fragment best.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        fragment : SentenceFragments or sequence of str
            One caption of one fragment, (amod, dog, black) say.
        k : int, default 10
            How many regions to find.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        list of RegionMatch
            From the greatest product on.
        """
        k = check_integer("k", k, minimum=1)
        table, own = self._asked_images(images), self._asked_captions(fragment)
        with torch_threads(n_threads):
            columns = self.space_.products_of_all(table, own)
        if columns.shape[1] != 1:
            raise ValueError(f"fragment must hold one fragment, got {columns.shape[1]}")
        best = np.argsort(-columns[:, 0], kind="stable")[:k]
        owners = np.searchsorted(table.offsets, best, side="right") - 1
        return [
            RegionMatch(int(image), int(row - table.offsets[image]), float(columns[row, 0]))
            for image, row in zip(owners, best, strict=True)
        ]

    def _check_vectors(self) -> None:
        if self.sentence == "fragments" or self.regions == "all":
            raise ValueError(
                "images and captions must have one vector each to be embedded: sentence must "
                f"be 'mean' or 'tree' and regions 'first' or 'mean', got {self.sentence!r} "
                f"and {self.regions!r}"
            )

    def _checked_captions(self, captions: Any) -> Any:
        kind = SentenceTrees if self.sentence == "tree" else SentenceFragments
        if not isinstance(captions, SentenceFragments | SentenceTrees):
            return super()._checked_captions(captions)
        if not isinstance(captions, kind):
            raise TypeError(
                f"captions must be {kind.__name__} or strings for sentence {self.sentence!r}, "
                f"got {type(captions).__name__}"
            )
        if isinstance(captions, SentenceFragments):
            return captions.without_unknown()
        return captions

    def _learn(
        self, training: Pairs, word_vectors: WordVectors | None, generator: torch.Generator
    ) -> Captions:
        captions: Any = training.captions
        self.extractor_ = None
        if not isinstance(captions, SentenceFragments | SentenceTrees):
            self.extractor_ = new_extractor(self.sentence, self.fragments, word_vectors)
            self.extractor_.fit(captions)
        own = self._cut(captions)
        words = rows_by_id(word_vectors, own.n_words, generator)
        n_features = self._count_features(training.images)
        self._build(n_features, words, own.n_relations, generator)
        return own

    def _cut(self, captions: Any) -> Captions:
        if isinstance(captions, SentenceFragments | SentenceTrees):
            return captions
        if self.extractor_ is None:
            raise TypeError(
                "captions must be cut into fragments or parsed as those of training, "
                f"got {type(captions).__name__}"
            )
        return cut(captions, self.sentence, self.extractor_)

    def _encode(self, captions: Any) -> Captions:
        own = self._cut(captions)
        sizes = self.n_relations_, len(self.space_.captions.words)
        if (own.n_relations, own.n_words) != sizes:
            raise ValueError(
                f"captions must have {sizes[0]} relations and {sizes[1]} words as those of "
                f"training, got {own.n_relations} and {own.n_words}"
            )
        return own

    def _asked_captions(self, captions: Any) -> Captions:
        self._check_fitted("space_")
        return self._encode(self._checked_captions(captions))

    @torch.no_grad()
    def _count_features(self, table: RegionTable) -> int:
        """Length of the features of regions, or of those that the network makes of pixels."""
        if self.network is None:
            return int(table.rows.shape[1])
        rows, _ = table.take(np.zeros(1, np.intp), torch.device(self.device))
        features = self.network.to(self.device)(rows)
        if features.ndim != 2:
            raise ValueError(
                f"network must return one vector per region, got shape {tuple(features.shape)}"
            )
        return int(features.shape[1])

    def _build(
        self, n_features: int, words: Tensor, n_relations: int, generator: torch.Generator
    ) -> None:
        """Make the space with random weights."""
        self.n_relations_ = n_relations
        self.space_ = build_space(
            self.sentence,
            n_features,
            words,
            n_relations,
            self.n_components,
            smoothing=self.smoothing,
            dropout=self.dropout,
            network=self.network,
            generator=generator,
        ).to(words.device)

    def _objective(self, training: Pairs, dev: Pairs) -> FragmentObjective:
        n_dense = self.n_epochs // 2 if self.n_dense is None else self.n_dense
        return FragmentObjective(
            self.space_,
            training,
            dev,
            alignment=float(self.objective != "ranking"),
            ranking=0.0 if self.objective == "alignment" else self.ranking_weight,
            margin=self.margin,
            balanced=self.balanced,
            n_dense=n_dense if self.multiple_instance else None,
            n_drawn=self.n_drawn,
            n_frozen=n_dense,
        )

    def _schedule(self) -> Cooldown:
        return Cooldown(self.learning_rate, self.batch_size, self.n_epochs)

    def _make_optimizer(self) -> MakeOptimizer:
        return _OPTIMIZERS[self.optimizer](self.weight_decay)

    @property
    def _n_features(self) -> int:
        return len(self.space_.regions.mean)

    def _parts(self) -> tuple[dict[str, Array], dict[str, Any]]:
        tensors = {name: t.cpu().numpy() for name, t in self.space_.state_dict().items()}
        about: dict[str, Any] = {"n_relations": self.n_relations_}
        if self.extractor_ is not None:
            about["extractor"] = self.extractor_.to_dict()
        return tensors, about

    def _rebuild(self, arrays: Contents, metadata: Contents) -> Mapping[str, Array]:
        # A relation has a layer of its own: no more are made than the file has tensors.
        most = len(arrays) if self.sentence == "fragments" else None
        n_relations = check_integer(
            "n_relations", metadata["n_relations"], minimum=0, maximum=most
        )
        mean = check_tensor("regions.mean", arrays["regions.mean"], (None,), np.float32)
        words = check_tensor(
            "captions.words", arrays["captions.words"], (None, None), np.float32
        )
        if "extractor" in metadata:  # it was fitted to raw captions
            self.extractor_ = FragmentExtractor.from_dict(metadata["extractor"])
        self._build(len(mean), torch.empty(words.shape), n_relations, seeded_generator(0))
        return arrays

    def _check_params(self) -> None:
        check_choice("sentence", self.sentence, SENTENCES)
        if self.fragments is not None:
            check_choice("fragments", self.fragments, _FRAGMENTS)
        check_choice("regions", self.regions, REGIONS)
        check_choice("objective", self.objective, _OBJECTIVES)
        check_choice("optimizer", self.optimizer, tuple(_OPTIMIZERS))
        for name in ("multiple_instance", "balanced"):
            check_flag(name, getattr(self, name))
        for name, least in {"n_components": 1, "batch_size": 2, "n_epochs": 1}.items():
            check_integer(name, getattr(self, name), minimum=least)
        for name, least in {"n_dense": 0, "n_drawn": 1}.items():
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), minimum=least)
        for name in ("smoothing", "margin", "ranking_weight", "weight_decay"):
            check_real(name, getattr(self, name), minimum=0)
        check_real("learning_rate", self.learning_rate, minimum=0, exclusive=True)
        if check_real("dropout", self.dropout, minimum=0) >= 1:
            raise ValueError(f"dropout must be a number < 1, got {self.dropout}")
        if self.network is not None and not isinstance(self.network, nn.Module):
            raise TypeError(f"network must be a torch module, got {self.network!r}")
