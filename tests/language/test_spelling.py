"""German words without the letters that many keyboards do not have."""

from __future__ import annotations

from tests.cases import try_each
from tests.language.german_phrases import GERMAN_PHRASES
from tests.language.test_cases import HERE, list_local_times
from tests.language.walk import NOW, ZONE, dom, walk

from cloudsched.language import read

_LETTERS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_PHRASES = [
    "jeden Tag um zwölf Uhr",
    "am nächsten Montag um 9 Uhr",
    "täglich um fünf nach neun",
    "wöchentlich am Montag um 9 Uhr",
    "für 3 Wochen jeden Montag um 9 Uhr",
    "jährlich am 3. März um 9 Uhr",
    "übermorgen um 9 Uhr",
    "alle fünfunddreißig Minuten",
    "regelmäßig montags um 9 Uhr",
    "jeden Tag außer freitags um 9 Uhr",
    "am dreißigsten Tag jedes Monats um 9 Uhr",
    "heute früh um 11",
]


@try_each("phrase", [*_PHRASES, *(own.phrase for own in GERMAN_PHRASES)])
def test_ae_oe_ue_and_ss_are_read_as_the_letters_that_they_stand_for(phrase: str) -> None:
    """They mean the same, and none of them is left to the title."""

    def ask(text: str) -> tuple[object, ...]:
        reading = read(text, now=NOW.replace(tzinfo=HERE), timezone=ZONE, locale="de")
        return reading.kind, reading.schedule, reading.title, reading.readings

    assert ask(phrase.translate(_LETTERS)) == ask(phrase)
    assert ask(phrase.replace("ß", "ss")) == ask(phrase)


_ORDINALS = [(16, "sechzehnten"), (20, "zwanzigsten"), (21, "einundzwanzigsten"), (27, "siebenundzwanzigsten")]


@try_each("number, name", _ORDINALS)
def test_a_day_of_the_month_in_words(number: int, name: str) -> None:
    reading = read(f"am {name} jedes Monats um 9 Uhr", now=NOW.replace(tzinfo=HERE), timezone=ZONE, locale="de")
    assert list_local_times(reading, 4) == walk(dom(number), ["09:00"], 4)
    assert reading.title is None
