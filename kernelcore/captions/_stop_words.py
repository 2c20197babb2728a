"""Stop words, by part of speech.

Numbers stay out of the list: *two dogs* is another picture than *a dog*. The tokeniser leaves
*ca*, *wo* and *sha* of can't, won't and shan't.
"""

_DETERMINERS = "a an the this that these those some any each every another other such same own"
_PRONOUNS = """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves oneself
    who whom whose which what there here someone somebody something anyone anybody anything
    everyone everybody everything nobody nothing
"""
_AUXILIARIES = """
    be am is are was were been being have has had having do does did doing done will would
    shall should can could may might must ought
    ca wo sha
"""
_PREPOSITIONS = """
    of in on at to from with without by for about against between among amongst into onto
    upon within through throughout during before after above below over under off out up down
    toward towards along across around near beside besides behind beyond inside outside via
    per as than like amid amidst
"""
_CONJUNCTIONS = """
    and or nor but so if because while whilst although though whereas unless until till since
    whether either neither both then when where why how
"""
_ADVERBS = """
    not no very too also just only again further once more most much many few less least all
    both almost quite rather really still yet already ever never always often maybe perhaps
    however therefore thus well even now
"""

STOP_WORDS: frozenset[str] = frozenset(
    " ".join(
        (_DETERMINERS, _PRONOUNS, _AUXILIARIES, _PREPOSITIONS, _CONJUNCTIONS, _ADVERBS)
    ).split()
)
"""The English function words that `CaptionNormalizer` leaves out unless told otherwise."""
