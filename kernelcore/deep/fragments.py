"""Deep fragment embeddings: regions of an image are compared with fragments of a sentence."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kernelcore._check import check_integer
from kernelcore._store import Contents, check_tensor
from kernelcore.captions import (
    FragmentExtractor,
    SentenceFragments,
    SentenceTrees,
    Vocabulary,
    parse_trees,
)
from kernelcore.captions.normalize import english_pipeline
from kernelcore.captions.parses import FragmentKind
from kernelcore.deep.base import VectorRanker
from kernelcore.deep.encoders import Dropout, FeatureEncoder
from kernelcore.deep.fragment_space import (
    Captions,
    FragmentEncoder,
    FragmentSpace,
    MeanEncoder,
    TreeEncoder,
    alignment_loss,
    fragment_similarities,
)
from kernelcore.deep.items import Regions, RegionTable
from kernelcore.deep.losses import hinge_loss
from kernelcore.deep.training import cooldown, permutation, torch_threads
from kernelcore.lexical import WordVectors
from kernelcore.models.base import Pairs

_N_RANDOM = 50


class RegionMatch(NamedTuple):
    """A region that matches a fragment.

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


@dataclass(kw_only=True, repr=False, eq=False)
class FragmentRanker(VectorRanker):
    r"""Ranks images and captions by the alignment of regions and sentence fragments.

    An affine map encodes each region by a vector :math:`v_i`. A layer of rectified units
    encodes each fragment, which is a relation of two words, by :math:`s_j`. A large product
    means that the region shows the fragment. The score of image k and sentence l is

    .. math::

        S_{kl} = \frac1{|g_k| (|g_l| + n)} \sum_{i \in g_k} \sum_{j \in g_l}
            \max(0, v_i^\top s_j)

    The loss :math:`C_F + \beta C_G` adds the alignment of regions and fragments, see
    `alignment_loss`, and the ranking of images and sentences, see `hinge_loss`, summed over
    all negatives.

    Parameters
    ----------
    sentence : {"fragments", "mean", "tree"}, default "fragments"
        How a sentence is encoded: by its fragments; by the mean of its word vectors (DeViSE
        [2]_); or by the root of a recursive network over its dependency tree (SDT-RNN [3]_),
        for which captions are `kernelcore.captions.SentenceTrees`.
    fragments : {"dependencies", "bigrams", "words"}, optional
        Fragments that raw captions are cut into, see `kernelcore.captions.FragmentExtractor`.
        The default is "words" for ``sentence="mean"``, else "dependencies". Dependencies and
        trees need spaCy (extra ``text``).
    regions : {"all", "first", "mean"}, default "all"
        Which regions represent an image: all, the first one, which is the whole image, or
        the mean of all.
    objective : {"both", "alignment", "ranking"}, default "both"
        Which losses are minimised.
    multiple_instance : bool, default True
        After `n_dense` epochs, assign a fragment to the best regions of its image instead of
        all, see `alignment_loss`.
    balanced : bool, default True
        Give positive and negative regions of a fragment equal weight in the alignment. In
        [1]_ each pair has equal weight.
    n_dense : int, optional
        Number of epochs before `multiple_instance` and the training of `network` start. The
        default is half of the epochs.
    n_drawn : int, optional
        Number of regions of each image in a training step: the first one and a random
        sample. Fewer regions cost less and overfit less. The default is all regions. Scores
        always use all.
    n_components : int, default 256
        Length of the vectors. [1]_ has 1000.
    smoothing : float, default 5.0
        n.
    margin : float, default 1.0
        Margin of the ranking loss.
    ranking_weight : float, default 2.0
        :math:`\beta`, the weight of the ranking loss if both losses are minimised.
    dropout : float, default 0.3
        Share of the features of regions that are dropped in training. [1]_ has none.
    weight_decay : float, default 0.0
        :math:`\alpha` of :math:`\alpha \lVert\theta\rVert^2`.
    optimizer : {"adam", "sgd"}, default "adam"
        [1]_ has "sgd", with momentum 0.9.
    learning_rate : float, default 1e-3
        Learning rate. The last two epochs use a tenth of it.
    batch_size : int, default 100
        Captions in a minibatch, each with its image.
    n_epochs : int, default 10
        Number of epochs. The epoch with the best recalls on the development items is kept.
    network : Module, optional
        Torch module that computes features from pixels. A copy of it is trained too after
        `n_dense` epochs, and is then ``space_.regions.network``. Images are then arrays
        (n_images, channels, height, width), or `RegionFeatures` with such pixels as features.
    square_root, patience, rng, device
        As for `EmbeddingRanker`.

    Attributes
    ----------
    history_ : History
        Losses of each epoch. The development loss is 1 minus the mean of R@1, R@5 and R@10
        of both directions.
    extractor_ : FragmentExtractor or None
        Cuts raw captions into fragments. None if the training captions were cut already.

    See Also
    --------
    kernelcore.captions.FragmentExtractor : Cuts captions into fragments.
    kernelcore.images.RegionCNN : Describes regions.

    Notes
    -----
    `fit` and `scores` take raw captions, or `SentenceFragments` and `SentenceTrees`. For
    raw captions, the known words are all words with vectors; without vectors they are the
    words of the training captions, with random vectors of length 50. For captions that are
    cut already, row i of the word vectors belongs to word id i.

    With ``sentence="mean"`` or "tree" and ``regions="first"`` or "mean", each side has one
    vector. `embed_captions` divides the vectors of captions by 1 + n. Then the products of
    both sides are the scores, except that negative products have score 0.

    Scores are computed for 32 images and 8,192 fragments at a time, each distinct fragment
    once. Beside the result, memory holds the vectors of all fragments and one block of
    products, about 20 MB for 20 regions.

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

    sentence: Literal["fragments", "mean", "tree"] = "fragments"
    fragments: FragmentKind | None = None
    regions: Regions = "all"
    objective: Literal["both", "alignment", "ranking"] = "both"
    multiple_instance: bool = True
    balanced: bool = True
    n_dense: int | None = None
    n_drawn: int | None = None
    smoothing: float = 5.0
    margin: float = 1.0
    ranking_weight: float = 2.0
    weight_decay: float = 0.0
    optimizer: Literal["adam", "sgd"] = "adam"
    batch_size: int = 100
    network: nn.Module | None = None

    # What `fit` learns.
    extractor_: FragmentExtractor | None = field(init=False, default=None)
    space_: FragmentSpace = field(init=False)

    def alignments(
        self, images: Any, captions: Any, *, n_threads: int | None = None
    ) -> list[npt.NDArray[np.float32]]:
        """Return the products of the regions of each image with the fragments of its caption.

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
            A region shows a fragment if the product is positive. The largest product is the
            best match.
        """
        table, own = self._new_images(images), self._new_captions(captions)
        if len(table) != len(own):
            raise ValueError(f"captions must be one per image ({len(table)}), got {len(own)}")
        with torch_threads(n_threads), torch.no_grad():
            fragments, offsets = self.space_.captions(own)
            images = self.space_.region_vectors(table, at_once=1)
            pairs = zip(images, pairwise(offsets), strict=True)
            return [(regions @ fragments[a:b].T).cpu().numpy() for regions, (a, b) in pairs]

    def search_regions(
        self, images: Any, fragment: Any, *, k: int = 10, n_threads: int | None = None
    ) -> list[RegionMatch]:
        """Find the regions of all images that match one fragment best.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        fragment : SentenceFragments or sequence of str
            One caption of one fragment, for example (amod, dog, black).
        k : int, default 10
            Number of regions to find.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        list of RegionMatch
            Sorted by descending product.
        """
        k = check_integer("k", k, minimum=1)
        table, own = self._new_images(images), self._new_captions(fragment)
        with torch_threads(n_threads), torch.no_grad():
            fragments, _ = self.space_.captions(own)
            if len(fragments) != 1:
                raise ValueError(f"fragment must hold one fragment, got {len(fragments)}")
            parts = [regions @ fragments.T for regions in self.space_.region_vectors(table)]
        products = torch.cat(parts)[:, 0].cpu().numpy()
        best = np.argsort(-products, kind="stable")[:k]
        owners = np.searchsorted(table.offsets, best, side="right") - 1
        return [
            RegionMatch(int(image), int(row - table.offsets[image]), float(products[row]))
            for image, row in zip(owners, best, strict=True)
        ]

    def _check_vectors(self) -> None:
        if self.sentence == "fragments" or self.regions == "all":
            raise ValueError(
                "images and captions must have one vector each to be embedded: sentence must "
                f"be 'mean' or 'tree' and regions 'first' or 'mean', got {self.sentence!r} "
                f"and {self.regions!r}"
            )

    def _checked_captions(self, captions: Any, name: str = "captions") -> Any:
        kind = SentenceTrees if self.sentence == "tree" else SentenceFragments
        if not isinstance(captions, SentenceFragments | SentenceTrees):
            return super()._checked_captions(captions, name)
        if not isinstance(captions, kind):
            raise TypeError(
                f"{name} must be {kind.__name__} or strings for sentence {self.sentence!r}, "
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
            self.extractor_ = self._new_extractor(word_vectors).fit(captions)
        cut = self._cut(captions)
        words = _vectors_by_id(word_vectors, cut.n_words, generator)
        network = copy.deepcopy(self.network)
        n_features = int(training.images.rows.shape[1])
        if network is not None:
            network = network.to(self.device)
            n_features = _count_features(network, training.images)
        self._build(n_features, words, cut.n_relations, network, generator)
        return cut

    def _new_extractor(self, word_vectors: WordVectors | None) -> FragmentExtractor:
        """Make the extractor for raw captions. It knows the words that have vectors."""
        vocabulary = None
        if word_vectors is not None:
            ones = np.ones(len(word_vectors), np.int64)
            vocabulary = Vocabulary(word_vectors.words, ones, ones, 1)
        return FragmentExtractor(
            self.fragments or ("words" if self.sentence == "mean" else "dependencies"),
            collapsed=self.sentence != "tree",
            vocabulary=vocabulary,
            spacy_model=english_pipeline(),
        )

    def _cut(self, captions: Any) -> Captions:
        """Cut raw captions into fragments of known words, or parse them."""
        if isinstance(captions, SentenceFragments | SentenceTrees):
            return captions
        extractor = self.extractor_
        if extractor is None:
            raise TypeError(
                "captions must be cut into fragments or parsed, as for training, "
                f"got {type(captions).__name__}"
            )
        if self.sentence != "tree":
            return extractor.transform(captions).without_unknown()
        words, relations = extractor.vocabulary_, extractor.relations_
        return parse_trees(captions, words, relations, spacy_model=extractor.spacy_model)

    def _encode(self, captions: Any) -> Captions:
        cut = self._cut(captions)
        sizes = self.n_relations_, len(self.space_.captions.words)
        if (cut.n_relations, cut.n_words) != sizes:
            raise ValueError(
                f"captions must have {sizes[0]} relations and {sizes[1]} words, as for "
                f"training, got {cut.n_relations} and {cut.n_words}"
            )
        return cut

    def _build(
        self,
        n_features: int,
        words: Tensor,
        n_relations: int,
        network: nn.Module | None,
        generator: torch.Generator | None,
    ) -> None:
        """Make the space with random initial weights; without a generator, with none."""
        self._built_with = self._plain_params()
        self.n_features_, self.n_relations_ = n_features, n_relations
        size = self.n_components
        regions = FeatureEncoder(n_features, size, network=network, generator=generator)
        captions: FragmentEncoder | MeanEncoder | TreeEncoder
        if self.sentence == "mean":
            captions = MeanEncoder(words, size, generator=generator)
        elif self.sentence == "tree":
            captions = TreeEncoder(words, n_relations, size, generator=generator)
        else:
            captions = FragmentEncoder(words, n_relations, size, generator=generator)
        self.space_ = FragmentSpace(regions, captions, self.smoothing).to(words.device)

    def _batches(
        self, training: Pairs, batch_size: int, generator: torch.Generator
    ) -> Sequence[list[int]]:
        """Divide the captions into minibatches that hold no image twice.

        An epoch goes through the images in rounds. Each round takes one more caption of each
        image, until all captions are used.
        """
        rounds: defaultdict[int, list[int]] = defaultdict(list)
        owners, n_used = training.caption_image.tolist(), Counter[int]()
        for caption in permutation(len(training), generator):
            rounds[n_used[owners[caption]]].append(caption)
            n_used[owners[caption]] += 1
        batches = [
            members[start : start + batch_size]
            for members in rounds.values()
            for start in range(0, len(members), batch_size)
        ]
        return [batch for batch in batches if len(batch) > 1]

    def _loss(
        self, training: Pairs, batch: list[int], epoch: int, generator: torch.Generator
    ) -> Tensor:
        space, is_dense = self.space_, epoch < self._n_dense()
        if space.regions.network is not None:
            space.regions.network.requires_grad_(not is_dense)
        rows, region_offsets = training.images.take(
            training.caption_image[batch], space.device, self.n_drawn, generator
        )
        fragments, offsets = space.captions(training.captions.select(batch))
        dropout = Dropout(self.dropout, generator)
        products: Tensor = space.regions(rows, dropout) @ fragments.T
        total = products.new_zeros(())
        if self.objective != "ranking":
            total = total + alignment_loss(
                products,
                region_offsets,
                offsets,
                multiple_instance=self.multiple_instance and not is_dense,
                balanced=self.balanced,
            )
        if self.objective != "alignment" and self.ranking_weight:
            similarities = fragment_similarities(
                products, region_offsets, offsets, smoothing=self.smoothing
            )
            ranking = hinge_loss(similarities, margin=self.margin, negatives="sum")
            total = total + self.ranking_weight * ranking
        return total

    def _n_dense(self) -> int:
        return self.n_epochs // 2 if self.n_dense is None else self.n_dense

    def _fingerprint(self, generator: torch.Generator, *parts: Pairs) -> str:
        return f"{super()._fingerprint(generator, *parts)} {self._n_dense()}"

    def _schedule(self, dev_losses: Sequence[float]) -> tuple[float, int]:
        rates = self.learning_rate, self.batch_size
        return cooldown(dev_losses, *rates, n_before=self.n_epochs - 2)

    def _optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        weight_decay = 2 * self.weight_decay  # torch adds this times theta to the gradient
        if self.optimizer == "adam":
            return torch.optim.Adam(parameters, fused=True, weight_decay=weight_decay)
        # The schedule sets the learning rate before the first step.
        return torch.optim.SGD(parameters, lr=1.0, momentum=0.9, weight_decay=weight_decay)

    def _about(self) -> dict[str, Any]:
        extractor = None if self.extractor_ is None else self.extractor_.to_dict()
        return {"n_relations": self.n_relations_, "extractor": extractor}

    def _rebuild(self, weights: Contents, metadata: Contents) -> None:
        # Each relation has its own layer, so there are at most as many as tensors.
        most = len(weights) if self.sentence == "fragments" else None
        n_relations = check_integer(
            "n_relations", metadata["n_relations"], minimum=0, maximum=most
        )
        mean = check_tensor("regions.mean", weights["regions.mean"], (None,), np.float32)
        words = check_tensor(
            "captions.words", weights["captions.words"], (None, None), np.float32
        )
        if metadata["extractor"] is not None:  # the training captions were raw
            self.extractor_ = FragmentExtractor.from_dict(metadata["extractor"])
        network = copy.deepcopy(self.network)
        self._build(len(mean), torch.empty(words.shape), n_relations, network, None)


@torch.no_grad()
def _count_features(network: nn.Module, table: RegionTable) -> int:
    """Return the length of the features that a network computes."""
    device = next(network.parameters(), torch.empty(0)).device
    features = network(table.take(np.zeros(1, np.intp), device)[0])
    if features.ndim != 2:
        raise ValueError(
            f"network must return one vector per region, got shape {tuple(features.shape)}"
        )
    return int(features.shape[1])


def _vectors_by_id(
    word_vectors: WordVectors | None, n_words: int, generator: torch.Generator
) -> Tensor:
    """Return one row of word vectors per word id. By default the rows are random."""
    if word_vectors is None:
        return torch.randn((n_words, _N_RANDOM), generator=generator, device=generator.device)
    if len(word_vectors) != n_words:
        raise ValueError(
            f"word_vectors must have one row per word of the vocabulary ({n_words}), "
            f"got {len(word_vectors)}"
        )
    return torch.from_numpy(word_vectors.vectors.copy()).to(generator.device)
