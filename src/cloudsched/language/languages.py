"""The languages that are read, their locales, and the words of time that identify other languages.

Words that mean a time or a frequency in some language are kept out of titles, and identify a phrase's language. A title
is the rest of a phrase, so it would end with a word about time that the grammar does not know, and "varje måndag kl
9:30" would run once. These words prevent that. They are allowed in quotes.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cloudsched.language.dutch import DUTCH
from cloudsched.language.english import ENGLISH
from cloudsched.language.german import GERMAN
from cloudsched.language.lexicon import CLOCK, HARMLESS, WORD, Language, Token

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LANGUAGES: Final[dict[str, Language]] = {"en": ENGLISH, "de": GERMAN, "nl": DUTCH}
_MONTH_FIRST: Final = frozenset({"US", "PH", "CA", "BZ"})
"""The regions that write the month first in ``3/4``, if their language leaves it open."""
_ENGLISH: Final = [replace(ENGLISH, month_first=each) for each in (False, True)]
"""English, the one language that leaves it open, with each order."""


def is_known(locale: str) -> bool:
    """Return whether schedules are read in the language of a locale."""
    return locale.replace("_", "-").partition("-")[0].lower() in LANGUAGES


def find_language(locale: str) -> Language:
    """Return the language of a locale, with its region's order of day and month. Raises ValueError if there is none."""
    code, _, region = locale.replace("_", "-").partition("-")
    language = LANGUAGES.get(code.lower())
    if language is None:
        raise ValueError(f"locale {locale!r} is not supported; use one of {', '.join(LANGUAGES)}")
    return _ENGLISH[region.upper() in _MONTH_FIRST] if region and language is ENGLISH else language


_FOREIGN: Final = {
    "French": """chaque tous toutes lundi mardi mercredi jeudi vendredi samedi dimanche lundis mardis mercredis jeudis
        vendredis samedis dimanches demain aujourd'hui lendemain matin matins soir soirs jour jours semaine
        semaines mois année années heures janvier février fevrier avril juin juillet août aout septembre
        octobre novembre décembre decembre prochain prochaine quotidiennement hebdomadaire mensuel mensuelle
        annuel annuelle toujours jusqu'à jusqu'au sauf dès annee annees annuellement aprem aprèm armistice
        ascension assomption aube bientot bientôt bihebdomadaire bimensuel bimensuelle bimestriel bimestrielle
        bisannuel careme carême cette commencant commençant constamment crepuscule crépuscule debut debutant
        decennie depuis dernier derniere dernieres derniers dernière dernières début débutant déc décennie
        encore entre epiphanie excepte excepté ferie feries fevr frequemment fréquemment férié fériés fév févr
        generalement généralement habituellement hebdo hebdomadairement heure hier horaire hormis hors
        immediatement immédiatement indefiniment indéfiniment jamais janv journalier journaliere journalière
        journee journellement journée juil jusque maintenant mars matinee matinée mensuellement microseconde
        microsecondes midi milliseconde millisecondes minuit minute minutes moins noel noël nuit nuits paques
        parfois pentecote pentecôte penultieme periodiquement plusieurs prochainement pâques pénultième
        périodiquement quelques quinzaine quinzaines quotidien quotidienne ramadan rarement recurrent
        recurrente regulier reguliere regulierement récurrent récurrente régulier régulière régulièrement sans
        seconde secondes semestre semestres semestriel semestrielle semestriellement sept siecle siècle soiree
        soirée souvent suivant suivante surlendemain systematiquement systématiquement tard toussaint
        trimestre trimestres trimestriel trimestrielle trimestriellement tôt weekend weekends épiphanie""",
    "Spanish": """cada todos todas lunes martes miércoles miercoles jueves viernes sábado sabado domingo sábados
        domingos mañana hoy día días semana semanas meses año años horas tarde noche noches enero febrero marzo abril
        junio julio agosto septiembre octubre noviembre diciembre próximo próxima siguiente diariamente siempre
        hasta excepto semanal mensual anual ahora algunas algunos amanecer anochecer anos antepenultimo
        antepenúltimo anuales anualmente atardecer ayer bianual bienal bimensual bimensualmente bimestral
        bisemanal bisemanalmente comenzando comienzo constantemente cotidiano cuaresma decada desde diaria
        diario dias década empezando entrante entre epifania epifanía esta este estos feriado feriados festivo
        festivos final finales frecuentemente habitual hora indefinidamente iniciando inicio inmediatamente
        laborables luego madrugada madrugadas manana mananas mayo mañanas medianoche mediodia mediodía menos
        mensuales mensualmente microsegundo microsegundos milisegundo milisegundos minuto minutos mié más
        navidad nochebuena nochevieja normalmente nunca otra otro pascua pentecostes pentecostés penultima
        penultimo penúltima penúltimo periodica periodicamente periodico periódica periódicamente periódico
        principio principios pronto proxima proximo quincena quincenal quincenalmente quincenas ramadan
        ramadán raramente recurrente regularmente reyes sabados salvo segunda segundo segundos semanales
        semanalmente semestral semestralmente semestre semestres sept setiembre siglo sáb tardes temprano toda
        todo trimestral trimestralmente trimestre trimestres ultima ultimas ultimo ultimos unas unos varias
        varios última últimas último últimos""",
    "Portuguese": """cada todos todas diariamente semanalmente mensalmente anualmente hoje amanhã manhã noite tarde
        semana semanas mês meses anos dias segunda terça quarta quinta sexta sábado domingo feira segundas terças
        quartas quintas sextas sábados domingos janeiro fevereiro março abril junho julho agosto setembro outubro
        novembro dezembro próxima próximo às até exceto durante desde sempre""",
    "Italian": """ogni tutti tutte lunedì martedì mercoledì giovedì venerdì sabato domenica lunedi martedi mercoledi
        giovedi venerdi domani dopodomani oggi mattina mattino sera pomeriggio settimana settimane mese mesi anno anni
        giorno giorni mezzogiorno mezzanotte gennaio febbraio marzo aprile maggio giugno luglio agosto settembre
        ottobre dicembre prossimo prossima fino tranne giornalmente settimanalmente mensilmente sempre""",
    "Swedish": """varje varannan måndag tisdag onsdag torsdag fredag lördag söndag måndagar tisdagar onsdagar torsdagar
        fredagar lördagar söndagar imorgon morgon kväll dagligen veckan vecka veckor månad månader januari februari
        augusti klockan vardag vardagar nästa utom""",
    "Danish": """hver mandag tirsdag torsdag fredag lørdag søndag dagligt ugentligt måned måneder januar februar marts
        hverdag hverdage næste undtagen""",
    "Norwegian": """hver mandag tirsdag torsdag fredag lørdag søndag daglig ukentlig uken måneden måneder neste unntatt
        klokken""",
    "Polish": """każdy każdego każdą codziennie poniedziałek poniedziałki wtorek wtorki środa środę czwartek piątek
        sobota sobotę niedziela niedzielę jutro dzisiaj pojutrze godzina godzinie godzinę tydzień miesiąc miesiąca
        stycznia lutego marca kwietnia czerwca lipca sierpnia września października listopada grudnia""",
    "Czech": """každý každé každou pondělí úterý středa středu čtvrtek pátek sobota sobotu neděle neděli zítra dnes
        denně týden týdně měsíc hodin""",
    "Hungarian": "minden hétfő hétfőn kedden szerda szerdán csütörtök csütörtökön péntek pénteken szombat szombaton "
    "vasárnap holnap reggel naponta hetente órakor",
    "Romanian": "fiecare marți miercuri vineri sâmbătă duminică mâine zilnic săptămânal săptămână ianuarie februarie",
    "Finnish": """joka maanantai maanantaina tiistai tiistaina keskiviikko keskiviikkona torstai torstaina perjantai
        perjantaina lauantai lauantaina sunnuntai sunnuntaina huomenna tänään päivä päivittäin viikko viikoittain
        kello""",
    "Turkish": "hafta haftada bugün pazartesi çarşamba perşembe cuma cumartesi pazar saat sabah akşam",
    "Indonesian": "setiap senin selasa rabu kamis jumat sabtu minggu besok pukul bulan",
    "Vietnamese": "mỗi ngày thứ hàng tuần tháng giờ sáng",
    "Russian": """каждый каждую каждое каждые ежедневно еженедельно понедельник вторник среда среду четверг пятница
        пятницу суббота субботу воскресенье завтра сегодня послезавтра утром вечером часов неделю месяц январь""",
    "Ukrainian": "щодня кожен кожного понеділок вівторок середа середу четвер п'ятниця субота неділя завтра сьогодні",
}
"""Words of some languages without a lexicon for days, periods, "every" and "tomorrow". They are no whole vocabulary."""
_SCRIPTS: Final = {
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "HANGUL": "Korean",
    "CJK": "Chinese or Japanese",
    "ARABIC": "Arabic",
    "HEBREW": "Hebrew",
    "THAI": "Thai",
    "DEVANAGARI": "Hindi",
    "GREEK": "Greek",
}
"""Scripts without spaces between words, or without any word that is known here."""
_SHORTEST: Final = 4
"""The least length of a telling word. Shorter ones belong to too many languages, unless they have a rare letter."""


def _is_telling(word: str) -> bool:
    return len(word) >= _SHORTEST or not word.isascii()


@lru_cache(maxsize=1)
def _build_index() -> dict[str, frozenset[str]]:
    """Return the languages in which each word means a time or a frequency."""
    index: dict[str, frozenset[str]] = {}
    named = [(word, name) for name, words in _FOREIGN.items() for word in words.split()]
    for language in LANGUAGES.values():
        for word, entries in language.entries.items():
            if any(len(words) == 1 and kind not in HARMLESS for words, kind, _ in entries):
                named.append((word, language.name))
    for word, name in named:
        if _is_telling(word):
            index[word] = index.get(word, frozenset()) | {name}
    return index


_HOW_OFTEN: Final = re.compile(
    r"\w*(?:(?:hour|dai|(?<!k)night|week|fortnight|month|quarter|year)ly|annual(?:ly)?|ennial(?:ly)?"
    r"|(?:minüt|stünd|täg|wöchent|monat|jähr)lich(?:e[rsnm]?)?|(?:täg|wöch|monat|jähr)ig(?:e[rsnm]?)?"
    r"|(?:minuten|stunden|tage|wochen|monats|quartals|jahres)weise"
    r"|(?:dage|weke|maande|jaar)lijkse?"
    r"|(?:hebdomadair|quotidien|mensuel|trimestriel|semestriel|annuel)\w{0,6}"
    r"|(?:semanal|mensual|trimestral|semestral|(?<!m)anual|quincenal|bimestral)(?:es|mente)?)"
)


def says_how_often(word: str) -> bool:
    """Return whether a word has the ending of a frequency, such as "semiannual" and "zweimonatlich"."""
    return _HOW_OFTEN.fullmatch(word) is not None


def find_languages(word: str, language: Language) -> frozenset[str]:
    """Return the names of the other languages in which a word means a time or a frequency. Empty if there are none."""
    if word in language.innocent:
        return frozenset()
    known = _build_index().get(word)
    if known is not None:
        return known
    if word.isascii():
        return frozenset()
    scripts = [unicodedata.name(letter, "").partition(" ")[0] for letter in word]
    return frozenset({_SCRIPTS[script] for script in scripts if script in _SCRIPTS})


def name_language(tokens: Iterable[Token], language: Language) -> str | None:
    """Return the other language to which most of the words about time belong. None if there are no such words."""
    votes: Counter[str] = Counter()
    for token in tokens:
        if token.kind == WORD and token.text not in language.entries:
            votes.update(find_languages(token.text, language) - {language.name})
    return max(sorted(votes, reverse=True), key=votes.__getitem__) if votes else None


def guess_language(tokens: Sequence[Token], languages: Iterable[Language]) -> Language:
    """Return the language that knows most of the words of a phrase. Among equals, it is the first.

    A day before a time of day counts more, since "Do 19:30" is none in English.
    """
    words = [token.text for token in tokens if token.kind == WORD]
    timed = {word.text for word, then in pairwise(tokens) if then.kind == CLOCK}

    def count(language: Language) -> int:
        known = [(word, {kind for _, kind, _ in language.entries.get(word, ())}) for word in words]
        return sum(
            bool(kinds) + bool(kinds - HARMLESS and _is_telling(word)) + ("weekday" in kinds and word in timed)
            for word, kinds in known
        )

    return max(languages, key=count)
