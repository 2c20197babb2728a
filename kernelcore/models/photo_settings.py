"""Settings of a photo ranker: which are tried, and how one is chosen on development photos."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress, working
from kernelcore._validation import Array, check_integer, check_real
from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms
from kernelcore.kcca import KCCAFactorization, factorize
from kernelcore.kcca.factorization import as_pair
from kernelcore.kernels import power
from kernelcore.models.kcca_grid import KCCASetting
from kernelcore.models.kcca_ranker import KCCARanker
from kernelcore.models.pairs import held_out
from kernelcore.models.selection import select_kcca
from kernelcore.models.training_items import TrainingItems


class Kernels(NamedTuple):
    """Kernels of photos, not yet raised to a power, and of captions with training items."""

    photos: Array
    captions: Array


class Choice(NamedTuple):
    """The best settings that were tried.

    Attributes
    ----------
    image_power : float
        Exponent of the kernel of the photos.
    setting : KCCASetting
        The rest.
    recalls : ndarray of float64, shape (2, 3)
        R@1, R@5 and R@10, as shares, of annotation and search on the development photos.
    factorization : KCCAFactorization
        Of the training kernels that they were tried with.
    """

    image_power: float
    setting: KCCASetting
    recalls: npt.NDArray[np.float64]
    factorization: KCCAFactorization


@dataclass(frozen=True)
class SettingsSearch:
    """Values of each setting to try, checked, and what to try them on; see `PhotoRanker`."""

    image_power: tuple[float, ...]
    n_components: tuple[int, ...]
    regularization: tuple[tuple[float, float], ...]
    correlation_power: tuple[float, ...]
    max_rank: int
    dev_share: float
    rng: np.random.Generator | int | None

    @classmethod
    def of(cls, ranker: Any) -> SettingsSearch:
        """Return the search that a ranker's parameters of the same names ask for."""
        return cls.checked(**{field.name: getattr(ranker, field.name) for field in fields(cls)})

    @classmethod
    def checked(
        cls,
        *,
        image_power: Iterable[Any],
        n_components: Iterable[Any],
        regularization: Iterable[Any],
        correlation_power: Iterable[Any],
        max_rank: Any,
        dev_share: Any,
        rng: np.random.Generator | int | None,
    ) -> SettingsSearch:
        """Return the search, or raise before anything that takes long has begun."""
        tried: dict[str, list[Any]] = {
            "image_power": [
                check_real("image_power", p, minimum=0.0, exclusive=True) for p in image_power
            ],
            "n_components": [check_integer("n_components", n, minimum=1) for n in n_components],
            "regularization": [
                as_pair("regularization", kappa, minimum=0.0) for kappa in regularization
            ],
            "correlation_power": [
                check_real("correlation_power", q, minimum=0.0) for q in correlation_power
            ],
        }
        for name, values in tried.items():
            if not values:
                raise ValueError(f"{name} must hold at least one value, got none")
        return cls(
            **{name: tuple(values) for name, values in tried.items()},
            max_rank=check_integer("max_rank", max_rank, minimum=1),
            dev_share=check_real("dev_share", dev_share, minimum=0.0, maximum=0.9),
            rng=rng,
        )

    def learn(
        self,
        training: TrainingItems,
        dev: tuple[Mapping[str, SpatialHistograms], EncodedCaptions] | None,
        *,
        n_threads: int | None,
        progress: Progress,
    ) -> tuple[KCCARanker, Choice]:
        """Choose the settings on the development items and learn from the training items.

        Without development items some training items are held out, and learned from once
        the settings are known.
        """
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        whole = Kernels(training.photo_kernel(**run), training.text_kernel(**run))
        if dev is None:
            learned_from, left_out = held_out(len(training), self.dev_share, self.rng)
            dev_photos, dev_captions = (
                whole.photos[left_out],
                training.captions.select(left_out),
            )
        else:
            learned_from = np.arange(len(training))
            dev_photos, dev_captions = training.photo_kernel(dev[0], **run), dev[1]
        square = np.ix_(learned_from, learned_from)
        choice = self._choose(
            Kernels(whole.photos[square], whole.captions[square]),
            Kernels(
                dev_photos[:, learned_from],
                training.text_kernel(dev_captions.caption_as_image(), **run)[:, learned_from],
            ),
            np.repeat(np.arange(len(dev_captions)), np.diff(dev_captions.image_offsets)),
            **run,
        )
        factorization = choice.factorization
        if dev is None:
            factorization = self._factorize(whole, choice.image_power, **run)
        n_components = min(choice.setting.n_components, factorization.rank())
        setting = choice.setting._replace(n_components=n_components)
        return KCCARanker.from_factorization(factorization, **setting._asdict()), choice

    def _choose(
        self,
        training: Kernels,
        dev: Kernels,
        caption_image: npt.NDArray[np.intp],
        *,
        n_threads: int | None,
        progress: Progress,
    ) -> Choice:
        """Try every combination and return the one with the largest sum of recalls."""
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        choices = []
        for p in self.image_power:
            factorization = self._factorize(training, p, **run)
            most = factorization.rank()
            selection = select_kcca(
                factorization,
                power(dev.photos, p),
                dev.captions,
                n_components=[n for n in self.n_components if n <= most] or [most],
                regularization=self.regularization,
                correlation_power=self.correlation_power,
                caption_image=caption_image,
                **run,
            )
            setting = selection.best()
            recalls = selection.recalls[selection.settings.index(setting)]
            choices.append(Choice(p, setting, recalls, factorization))
        return max(choices, key=lambda choice: float(choice.recalls.sum()))

    def _factorize(
        self, kernels: Kernels, p: float, *, n_threads: int | None, progress: Progress
    ) -> KCCAFactorization:
        with working(progress, "Factorising kernels"):
            return factorize(
                power(kernels.photos, p),
                kernels.captions,
                decomposition="eigen",
                max_rank=self.max_rank,
                n_threads=n_threads,
            )
