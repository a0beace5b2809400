"""French and Spanish are data: the same meanings as in English, from phrases of their own."""

from __future__ import annotations

import pytest
from tests.cases import try_each
from tests.language.walk import NOW, ZONE

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.language import read

NOW_AWARE = NOW.replace(tzinfo=load_tzinfo(ZONE))

FRENCH = [
    ("tous les lundis à 9h", "every Monday at 9:00"),
    ("chaque lundi à 9h30", "every Monday at 9:30"),
    ("le lundi à 9h", "every Monday at 9:00"),
    ("lundi à 9h", "on Monday at 9:00"),
    ("lundi prochain à 9h", "on Monday at 9:00"),
    ("le lundi 23 novembre à 9h", "on 2026-11-23 at 9:00"),
    ("tous les jours à 8 heures", "every day at 8:00"),
    ("tous les jours ouvrés à 9h", "every weekday at 9:00"),
    ("les lundis et jeudis à 18h", "every Monday and Thursday at 18:00"),
    ("du lundi au vendredi à 9h", "every weekday at 9:00"),
    ("chaque matin à 7h", "every day at 7am"),
    ("tous les soirs à 8 heures", "every day at 8pm"),
    ("toutes les deux semaines le mardi à 10h", "every 2 weeks on Tuesday at 10:00"),
    ("un lundi sur deux à 9h", "every 2 weeks on Monday at 9:00"),
    ("toutes les 15 minutes de 9h à 17h", "every 15 minutes from 9:00 to 17:00"),
    ("toutes les heures entre 9h et 17h en semaine", "every hour from 9:00 to 17:00 on weekdays"),
    ("le premier lundi de chaque mois à 9h", "on the first Monday of every month at 9:00"),
    ("le 15 de chaque mois à midi", "on the 15th of every month at noon"),
    ("le 1er de chaque mois à 8h", "on the 1st of every month at 8:00"),
    ("chaque année le 1er mai à 10h", "every year on 1 May at 10:00"),
    ("dans 20 minutes", "in 20 minutes"),
    ("dans une heure et demie", "in 90 minutes"),
    ("dans une demi-heure", "in 30 minutes"),
    ("demain à 14h", "tomorrow at 14:00"),
    ("demain matin à 8h", "tomorrow at 8am"),
    ("après-demain à 9h30", "the day after tomorrow at 9:30"),
    ("apres-demain a 9h30", "the day after tomorrow at 9:30"),
    ("ce soir à 20h", "today at 20:00"),
    ("le 5 mai 2027 à 9h", "on 2027-05-05 at 9:00"),
    ("le 27 à 9h", "on the 27th at 9:00"),
    ("tous les jours à 9h sauf le dimanche", "every day at 9:00 except Sundays"),
    ("tous les jours sauf le week-end à 9h", "every weekday at 9:00"),
    ("tous les lundis à 9h jusqu'au 30 juin", "every Monday at 9:00 until 30 June"),
    ("tous les jours à 8h pendant 10 jours", "every day at 8:00 for 10 days"),
    ("à partir de demain tous les jours à 9h", "every day at 9:00 starting tomorrow"),
    ("trois fois par jour à 8h, 14h et 20h", "every day at 8:00, 14:00 and 20:00"),
    ("à neuf heures moins le quart tous les lundis", "every Monday at 8:45"),
    ("à neuf heures et demie tous les jours", "every day at 9:30"),
    ("fin de chaque mois à 18h", None),
    ("tous les couchers du soleil", None),
]
SPANISH = [
    ("todos los lunes a las 9", "every Monday at 9:00"),
    ("los lunes a las 9", "every Monday at 9:00"),
    ("el lunes a las 9", "on Monday at 9:00"),
    ("el lunes que viene a las 9", "on Monday at 9:00"),
    ("cada lunes a las 9:30", "every Monday at 9:30"),
    ("cada día a las 8 de la mañana", "every day at 8am"),
    ("los lunes y jueves a las 18:00", "every Monday and Thursday at 18:00"),
    ("de lunes a viernes a las 9:00", "every weekday at 9:00"),
    ("entre semana a las 9", "every weekday at 9:00"),
    ("todas las noches a las 10", "every day at 10pm"),
    ("cada dos semanas el martes a las 10:00", "every 2 weeks on Tuesday at 10:00"),
    ("cada 30 minutos de 9 a 17", "every 30 minutes from 9:00 to 17:00"),
    ("cada hora entre las 9 y las 17 de lunes a viernes", "every hour from 9:00 to 17:00 on weekdays"),
    ("el primer lunes de cada mes a las 9", "on the first Monday of every month at 9:00"),
    ("el último día de cada mes a las 18:00", "on the last day of every month at 18:00"),
    ("el 15 de cada mes a mediodía", "on the 15th of every month at noon"),
    ("cada año el 1 de mayo a las 10", "every year on 1 May at 10:00"),
    ("en 20 minutos", "in 20 minutes"),
    ("dentro de dos horas", "in 2 hours"),
    ("en hora y media", "in 90 minutes"),
    ("mañana a las 14:00", "tomorrow at 14:00"),
    ("mañana por la mañana a las 8", "tomorrow at 8am"),
    ("pasado mañana a las 9:30", "the day after tomorrow at 9:30"),
    ("esta noche a las 9", "today at 21:00"),
    ("el 5 de mayo de 2027 a las 9", "on 2027-05-05 at 9:00"),
    ("todos los días a las 9 excepto los domingos", "every day at 9:00 except Sundays"),
    ("todos los lunes a las 9 hasta el 30 de junio", "every Monday at 9:00 until 30 June"),
    ("todos los días a las 8 durante 10 días", "every day at 8:00 for 10 days"),
    ("a partir de mañana todos los días a las 9", "every day at 9:00 starting tomorrow"),
    ("tres veces al día a las 8, 14 y 20", "every day at 8:00, 14:00 and 20:00"),
    ("a las nueve menos cuarto todos los lunes", "every Monday at 8:45"),
    ("a las nueve y media todos los días", "every day at 9:30"),
    ("los fines de semana a las 10", "every Saturday and Sunday at 10:00"),
    ("a las 9 de la noche", "today at 21:00"),
    ("cada puesta de sol", None),
]


def _check(locale: str | None, phrase: str, english: str | None) -> None:
    reading = read(phrase, now=NOW_AWARE, timezone=ZONE, locale=locale)
    if english is None:
        assert reading.schedule is None, reading
        return
    same = read(english, now=NOW_AWARE, timezone=ZONE)
    assert same.schedule is not None, english
    assert reading.schedule is not None, reading
    assert reading.title is None
    assert reading.schedule.upcoming(NOW_AWARE, 20) == same.schedule.upcoming(NOW_AWARE, 20)


@try_each("phrase, english", FRENCH)
def test_french(phrase: str, english: str | None) -> None:
    """A French phrase names the instants of the English one."""
    _check("fr", phrase, english)


@try_each("phrase, english", SPANISH)
def test_spanish(phrase: str, english: str | None) -> None:
    """A Spanish phrase names the instants of the English one."""
    _check("es", phrase, english)


@pytest.mark.parametrize(
    ("phrase", "english", "name"),
    [(*FRENCH[0], "French"), (*SPANISH[0], "Spanish"), ("jeden Montag um 9 Uhr", "every Monday at 9:00", "German")],
)
def test_the_language_is_found_out(phrase: str, english: str, name: str) -> None:
    """Without a locale the words tell the language; in another language's locale they are refused by its name."""
    _check(None, phrase, english)
    refused = read(phrase, now=NOW_AWARE, timezone=ZONE, locale="en")
    assert refused.problems[0].code == "other-language"
    assert name in refused.problems[0].hint
