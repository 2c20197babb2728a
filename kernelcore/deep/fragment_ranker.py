"""Deep fragment embeddings: images and sentences compared part by part."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from kernelcore._estimator import params_to_json
from kernelcore._files import digest
from kernelcore._progress import Progress
from kernelcore._validation import Array, as_real_array, check_finite
from kernelcore.deep.fragment_items import Pairs
from kernelcore.deep.fragment_model import FragmentModel
from kernelcore.deep.fragment_objective import FragmentObjective
from kernelcore.deep.fragment_settings import OPTIMIZERS, check_settings, n_features_of
from kernelcore.deep.fragment_space import Captions
from kernelcore.deep.randomness import seeded_generator
from kernelcore.deep.region_tables import Regions
from kernelcore.deep.schedules import Cooldown
from kernelcore.deep.threads import torch_threads
from kernelcore.deep.training import train


class FragmentRanker(FragmentModel):
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

    See Also
    --------
    kernelcore.captions.FragmentExtractor : Cuts captions into fragments.
    kernelcore.images.RegionCNN : Describes regions.

    Notes
    -----
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
    >>> from kernelcore.captions import FragmentExtractor
    >>> from kernelcore.deep import FragmentRanker
    >>> captions = ["a dog", "the sea", "two boats"]
    >>> fragments = FragmentExtractor("bigrams").fit_transform(captions)
    >>> photos = np.eye(3)
    >>> ranker = FragmentRanker(dropout=0.0, n_epochs=20, learning_rate=0.01, rng=0)
    >>> ranker = ranker.fit(photos, fragments, word_vectors=np.eye(6), dev=(photos, fragments))
    >>> ranker.scores(photos, fragments).argmax(axis=1)
    array([0, 1, 2])
    """

    def __init__(
        self,
        *,
        sentence: str = "fragments",
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

    def fit(
        self,
        images: Any,
        captions: Captions,
        *,
        caption_image: npt.ArrayLike | None = None,
        word_vectors: npt.ArrayLike,
        dev: tuple[Any, ...],
        folder: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> FragmentRanker:
        """Learn from images and their captions.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
            Features of the regions of each image, or of the whole images. Features may be
            mapped from a file: only those that are used are read.
        captions : SentenceFragments, or SentenceTrees for ``sentence="tree"``
            Fragments with a word outside the vocabulary are left out.
        caption_image : array_like of int, shape (n_captions,), optional
            Position in `images` of the image that each caption belongs to. Omit it where
            caption i belongs to image i. Images without captions are not used.
        word_vectors : array_like of shape (n_words, n_dimensions)
            Vector of each word of the vocabulary, by its id. They stay as they are.
        dev : (images, captions) or (images, captions, caption_image)
            Other items, by which the epoch to keep is chosen.
        folder : path, optional
            Keeps a checkpoint after each epoch, from which the same call goes on, and
            ``log.csv``.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on. Sums of
            matrix products, and so the last bits of the result, may depend on it.
        progress : bool or callable, default False
            Show a bar, or call this with (minibatches done, minibatches at most).

        Returns
        -------
        FragmentRanker
            This object.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of its range, images, captions or word vectors do not fit
            together or are not finite, there are fewer than two images, or the checkpoint is
            of another run.
        """
        self._check_params()
        kinds: dict[str, Any] = {"regions": self.regions, "sentence": self.sentence}
        training = Pairs.of("images", images, captions, caption_image, **kinds)
        if len(np.unique(training.caption_image)) < 2:
            raise ValueError("images must hold at least two with captions")
        if not isinstance(dev, tuple) or len(dev) not in (2, 3):
            raise TypeError("dev must be (images, captions) or with caption_image as third")
        judges = Pairs.of("dev", *dev, **kinds)
        words = check_finite(
            "word_vectors", as_real_array("word_vectors", word_vectors, ndim=2)
        ).astype(np.float32)
        if len(words) != captions.n_words:
            raise ValueError(
                f"word_vectors must have one row per word of the vocabulary "
                f"({captions.n_words}), got {len(words)}"
            )
        generator = seeded_generator(self.rng, self.device)
        self._build(
            n_features_of(training.table, self.network, self.device),
            torch.from_numpy(words).to(self.device),
            captions.n_relations,
            generator,
        )
        used = np.unique(training.caption_image)
        if self.network is None:
            self.space_.regions.standardize(*training.table.moments(used))
        self._check_width("dev", judges.table)
        n_dense = self.n_epochs // 2 if self.n_dense is None else self.n_dense
        objective = FragmentObjective(
            self.space_,
            training,
            judges,
            alignment=float(self.objective != "ranking"),
            ranking=0.0 if self.objective == "alignment" else self.ranking_weight,
            margin=self.margin,
            balanced=self.balanced,
            n_dense=n_dense if self.multiple_instance else None,
            n_drawn=self.n_drawn,
            n_frozen=n_dense,
        )
        with torch_threads(n_threads):
            self.history_ = train(
                self.space_,
                objective,
                schedule=Cooldown(self.learning_rate, self.batch_size, self.n_epochs),
                n_epochs=self.n_epochs,
                generator=generator,
                make_optimizer=OPTIMIZERS[self.optimizer](self.weight_decay),
                folder=folder,
                fingerprint=self._fingerprint(generator, training, judges),
                progress=progress,
                description=f"train {self.sentence}",
            )
        return self

    def _check_params(self) -> None:
        check_settings(self.get_params())

    def _fingerprint(self, generator: torch.Generator, *parts: Pairs) -> str:
        """Digest of settings, captions and the weights at the start, with the means in them."""
        params = {
            **self.get_params(),
            "rng": generator.initial_seed(),
            "network": None,
        }
        arrays: list[Array] = [
            value.cpu().numpy() for value in self.space_.state_dict().values()
        ]
        for part in parts:
            arrays += [part.caption_image, part.table.offsets]
            arrays += [v for v in vars(part.captions).values() if isinstance(v, np.ndarray)]
        return digest(
            json.dumps(params_to_json(params)).encode(), *(array.tobytes() for array in arrays)
        )
