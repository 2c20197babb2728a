"""Dependency trees as pairs of related words."""

from __future__ import annotations

from typing import Any, NamedTuple

_PREPOSITIONS = ("prep", "agent")
_OBJECTS = ("pobj", "pcomp")


class Fragment(NamedTuple):
    """A relation between two words, given by their positions in the list of words."""

    relation: str
    first: int
    second: int


def fragments_of(doc: Any, *, collapsed: bool) -> tuple[list[str], list[Fragment]]:
    """Words of a parsed caption in lower case, and its relations from head to dependent.

    Punctuation and the root are no relations. Where they are `collapsed`, prepositions and
    conjunctions become part of the relation between the words that they connect.
    """
    words = [token for token in doc if not (token.is_punct or token.is_space)]
    place = {token.i: position for position, token in enumerate(words)}
    edges = ((_edge(token, collapsed), place[token.i]) for token in words)
    return [token.lower_ for token in words], [
        Fragment(edge[0], place[edge[1].i], position)
        for edge, position in edges
        if edge is not None and edge[1].i in place
    ]


def _edge(token: Any, collapsed: bool) -> tuple[str, Any] | None:
    """Relation of a word to its head, and that head."""
    relation, head = token.dep_, token.head
    if relation == "ROOT" or (collapsed and _is_connective(token)):
        return None
    if collapsed and relation in _OBJECTS and head.dep_ in _PREPOSITIONS:
        return "agent" if head.dep_ == "agent" else f"prep_{head.lower_}", head.head
    if collapsed and relation == "conj":
        names = [child.lower_ for child in head.children if child.dep_ == "cc"]
        return f"conj_{names[0]}" if names else relation, head
    return relation, head


def _is_connective(token: Any) -> bool:
    """Whether a word only connects two others, and so names their relation."""
    if token.dep_ in _PREPOSITIONS:
        return any(child.dep_ in _OBJECTS for child in token.children)
    return token.dep_ == "cc" and any(child.dep_ == "conj" for child in token.head.children)
