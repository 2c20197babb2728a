"""Letters for groups of systems that do not differ (compact letter display)."""

from __future__ import annotations

import numpy as np

from kernelcore._check import Array

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def compact_letters(different: Array) -> list[str]:
    """Letters for systems: two systems share a letter if and only if they do not differ.

    Parameters
    ----------
    different : ndarray of bool, shape (n_systems, n_systems)
        Whether two systems differ; symmetric, False on the diagonal. The letters follow the
        order of the systems: put the best first.

    Returns
    -------
    list of str
        One or more letters of each system. After z come a2, b2, and so on.

    Notes
    -----
    A letter is a set of systems of which no two differ and which no other system could join.
    Sets are made for one pair after the other that has no letter yet, so that there are at
    most as many as pairs, where the number of all such sets may be exponential. No set is
    left out that is needed, but a smaller number of letters may do.

    References
    ----------
    .. [1] H.-P. Piepho, "An algorithm for a letter-based representation of all-pairwise
       comparisons", Journal of Computational and Graphical Statistics 13(2), 2004.

    Examples
    --------
    The first differs from the last, the second from neither:

    >>> import numpy as np
    >>> from kernelcore.evaluation.letters import compact_letters
    >>> compact_letters(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool))
    ['a', 'ab', 'b']
    """
    same: Array = ~different
    has_letter = different & same  # of each pair: none so far
    groups = []
    for i, j in zip(*same.nonzero(), strict=True):
        is_alone = i == j and same[i].sum() == 1  # it differs from all others
        if (i < j or is_alone) and not has_letter[i, j]:
            members = _joined(same, [i, j])
            for member in members:
                has_letter[member, members] = True
            groups.append(members)
    letters = [""] * len(same)
    for number, members in enumerate(sorted(groups)):
        again, letter = divmod(number, len(_ALPHABET))
        for member in members:
            letters[member] += _ALPHABET[letter] + (str(again + 1) if again else "")
    return letters


def _joined(same: Array, members: list[int]) -> list[int]:
    """Let all systems join that differ from no member, in their order."""
    candidates: Array = np.logical_and.reduce(same[members])
    joined: list[int] = []
    for system in range(len(same)):
        if candidates[system]:
            joined.append(system)
            candidates &= same[system]
    return joined
