# ruff: noqa: E501 -- a row is one sentence in both languages
"""What the reader says, in German: by its English sentences, with the same names in braces."""

from __future__ import annotations

from typing import Final

from cloudsched.domain.schedules.words import English, German

_OPERATIONS: Final = {
    "pause": "pausieren",
    "resume": "fortsetzen",
    "cancel": "absagen",
    "delete": "löschen",
    "trigger": "starten",
}
"""The operations of drafts, in German."""
_LANGUAGES: Final = """
    English German Dutch French Spanish Portuguese Italian Swedish Danish Norwegian Polish Czech Hungarian Romanian
    Finnish Turkish Indonesian Vietnamese Russian Ukrainian Japanese Korean Chinese Arabic Hebrew Greek
"""
_GERMAN_LANGUAGES: Final = """
    Englisch Deutsch Niederländisch Französisch Spanisch Portugiesisch Italienisch Schwedisch Dänisch Norwegisch
    Polnisch Tschechisch Ungarisch Rumänisch Finnisch Türkisch Indonesisch Vietnamesisch Russisch Ukrainisch Japanisch
    Koreanisch Chinesisch Arabisch Hebräisch Griechisch
"""
GERMAN_MESSAGES: Final = {
    **dict(
        zip(
            (*English.weekdays, *English.months, *_LANGUAGES.split()),
            (*German.weekdays, *German.months, *_GERMAN_LANGUAGES.split()),
            strict=True,
        )
    ),
    # hints
    "say when it should run, for example: every weekday at 9:00": "sag, wann es laufen soll, zum Beispiel: werktags um 9",
    "shorten it to at most 500 characters": "kürze es auf höchstens 500 Zeichen",
    "add a day or a time, for example: every weekday at 9:00, or: tomorrow at 14:00": (
        "nenne einen Tag oder eine Uhrzeit, zum Beispiel: werktags um 9, oder: morgen um 14 Uhr"
    ),
    "use other words; if the unknown words belong to a title, put the title in quotes": (
        "nimm andere Wörter; gehören die unbekannten zu einem Titel, setze den Titel in Anführungszeichen"
    ),
    "this changes or cancels a task, and makes none; change that task, or put a title in quotes": (
        "das ändert oder beendet eine Aufgabe und legt keine an; ändere diese, oder setze einen Titel in Anführungszeichen"
    ),
    "this is a question and no task; say what to do and when": "das ist eine Frage und keine Aufgabe; sag, was wann zu tun ist",
    "when that is cannot be known here; give the time of day, the day or the date": (
        "wann das ist, kann hier niemand wissen; nenne die Uhrzeit, den Tag oder das Datum"
    ),
    "something is missing here; write it in full, for example: every 2 weeks on Monday": (
        "hier fehlt etwas; schreib es ganz, zum Beispiel: alle 2 Wochen am Montag"
    ),
    "there is no such time; use a time between 00:00 and 23:59": "diese Uhrzeit gibt es nicht; nimm eine von 0:00 bis 23:59",
    "there is no such date; check the day and the month": "dieses Datum gibt es nicht; prüfe Tag und Monat",
    "this is in the past; choose a time that is still to come": "das ist vorbei; nimm eine Zeit, die noch kommt",
    "this would never run; check its days, limits and exceptions": (
        "das würde nie laufen; prüfe die Tage, die Grenzen und die Ausnahmen"
    ),
    "an interval is 1 or more, for example: every 5 minutes": "ein Abstand ist mindestens 1, zum Beispiel: alle 5 Minuten",
    "the shortest interval is a second, for example: every second": "der kürzeste Abstand ist eine Sekunde: jede Sekunde",
    "parts of this contradict each other; keep only one of them": "Teile davon widersprechen sich; behalte nur einen",
    "say how often it repeats, for example: every Monday until June": (
        "sag, wie oft es sich wiederholt, zum Beispiel: jeden Montag bis Juni"
    ),
    'name a calendar, such as: except on days of "holidays"; or list the dates: except December 25': (
        'nenne einen Kalender, etwa: außer an Tagen von "feiertage"; oder die Tage: außer am 25. Dezember'
    ),
    "this cannot be written as a recurrence rule; list the days or the dates instead": (
        "das lässt sich nicht als Regel schreiben; nenne stattdessen die Tage"
    ),
    "this is too vague; give a day and a time": "das ist zu ungenau; nenne einen Tag und eine Uhrzeit",
    "a schedule cannot follow the end of the previous run; use an interval, such as: every 3 hours": (
        "ein Zeitplan kann nicht vom Ende des letzten Laufs zählen; nimm einen Abstand, etwa: alle 3 Stunden"
    ),
    "this needs more rules than one schedule may have; split it into several schedules": (
        "das braucht mehr Regeln, als ein Zeitplan haben darf; mach mehrere daraus"
    ),
    "this can be read in too many ways; say it in fewer parts, or make several schedules of it": (
        "das lässt sich auf zu viele Arten lesen; sag es in weniger Teilen, oder mach mehrere Zeitpläne daraus"
    ),
    "say what to change, such as: make it 10 instead, not on Fridays, also Saturdays, skip the next one": (
        "sag, was sich ändern soll, etwa: mach es um 10, nicht freitags, auch samstags"
    ),
    # questions
    "is that the nth such day of each month, or an interval in weeks?": (
        "ist das der n-te solche Tag im Monat, oder ein Abstand in Wochen?"
    ),
    "is that in the morning or in the afternoon?": "ist das am Vormittag oder am Nachmittag?",
    "when does the day end for that?": "wann endet dafür der Tag?",
    "is that once every two periods, or twice in each period?": "ist das alle zwei Mal, oder zweimal in jedem Zeitraum?",
    "which number is the month?": "welche Zahl ist der Monat?",
    "which day do you mean?": "welcher Tag ist gemeint?",
    "which time zone do you mean?": "welche Zeitzone ist gemeint?",
    "is that only where it happens, or does the time of day count there?": (
        "ist das nur der Ort, oder gilt die Uhrzeit dort?"
    ),
    "what should happen in months that do not have this day?": "was soll in Monaten geschehen, die diesen Tag nicht haben?",
    "on which days or at what times should it run?": "an welchen Tagen oder um wie viel Uhr soll es laufen?",
    "is that the midnight at the start of the day or at its end?": "ist Mitternacht am Anfang oder am Ende des Tages gemeint?",
    "should it run once, at the start of this period, or repeatedly during it?": (
        "soll es einmal am Anfang dieser Zeit laufen, oder immer wieder in ihr?"
    ),
    "should it run every time, or only the next time?": "soll es jedes Mal laufen, oder nur das nächste Mal?",
    "which of these days do you mean?": "welcher dieser Tage ist gemeint?",
    "is that every year in these months, or only this once?": "ist das jedes Jahr in diesen Monaten, oder nur dieses Mal?",
    "is that how often in total, or how often each time?": "ist das insgesamt so oft, oder jedes Mal so oft?",
    "is this a typo?": "ist das ein Tippfehler?",
    "has that happened already, or is it still to be done?": "ist das schon geschehen, oder steht es noch bevor?",
    "which of these words say when, and which say what?": "welche dieser Wörter sagen wann, und welche was?",
    "Days with a time of their own run only at that time.": "Tage mit eigener Zeit laufen nur zu dieser Zeit.",
    "That is {at}.": "Das ist {at}.",
    # drafts
    "{count} day": "{count} Tag",
    "{count} days": "{count} Tage",
    "{count} hour": "{count} Stunde",
    "{count} hours": "{count} Stunden",
    "{count} minute": "{count} Minute",
    "{count} minutes": "{count} Minuten",
    "{count} second": "{count} Sekunde",
    "{count} seconds": "{count} Sekunden",
    "It is in the past. Choose a time that is still to come.": "Das ist vorbei. Wähle eine Zeit, die noch kommt.",
    "It would run in {lead}. Leave at least {least}.": "Bis dahin: {lead}. Lass mindestens {least} Zeit.",
    "There would be {shortest} between two runs. Leave at least {least}.": (
        "Zwischen zwei Läufen wären es {shortest}. Lass mindestens {least} Abstand."
    ),
    "It asks for no change.": "Das ändert nichts.",
    "No time was given, so it runs in {lead}.": "Ohne Zeit läuft es nach dieser Frist: {lead}.",
    "Which task do you mean?": "Welche Aufgabe meinst du?",
    "What should it do?": "Was soll sie tun?",
    "When should it run? Such as: every weekday at 9:00.": "Wann soll es laufen? Zum Beispiel: werktags um 9 Uhr.",
    "It changes a task that you have. If it is a new one, put its title in quotes.": (
        "Das ändert eine Aufgabe, die du hast. Ist es eine neue, setze ihren Titel in Anführungszeichen."
    ),
    "a new task": "eine neue Aufgabe",
    "Is this a new task, or is it about one that you have?": "Ist das eine neue Aufgabe, oder geht es um eine, die du hast?",
    "Is this when? If not, say it in other words.": "Ist dann gemeint? Wenn nicht, sag es mit anderen Worten.",
    "yes": "ja",
    "These run on {first}.": "Diese laufen am {first:%d.%m.%Y}.",
    "These run from {first} to {last}.": "Diese laufen vom {first:%d.%m.%Y} bis zum {last:%d.%m.%Y}.",
    "No day was understood, so these are all, and not only those of one time.": (
        "Kein Tag war verständlich: das sind alle, und nicht nur die einer Zeit."
    ),
    "{count} more are not shown.": "{count} weitere fehlen hier.",
    "Only the newest {count} tasks were looked at.": "Nur die {count} neuesten Aufgaben wurden angesehen.",
    "Its results are no longer sent anywhere; they stay in its history.": (
        "Ihre Ergebnisse werden nicht mehr verschickt; sie bleiben in ihrem Verlauf."
    ),
    "It asks for several things. Say one, then the other.": "Das sind mehrere Bitten. Sag eine, dann die andere.",
    "Where does the value of {field!r} end? Quotes say so, as in {cure}": (
        "Wo endet der Wert von {field!r}? Anführungszeichen sagen es: {cure}"
    ),
    "This seems to change a task, and how is not understood. Say it like this: move my report to Monday at 9:00. "
    "If it is a new task, put its title in quotes.": (
        "Das scheint eine Aufgabe zu ändern, und wie, ist nicht verständlich. Sag es so: verschiebe meinen Bericht auf Montag "
        "um 9 Uhr. Ist es eine neue Aufgabe, setze ihren Titel in Anführungszeichen."
    ),
    **{
        f"This seems to {operation} a task, and none of them is named. Say its title.": (
            f"Das soll anscheinend eine Aufgabe {german}, und keine ist genannt. Sag ihren Titel."
        )
        for operation, german in _OPERATIONS.items()
    },
    **{
        f"The draft can only {operation} the whole task, as soon as you confirm it, and not until or at another time. "
        "Is that meant?": (
            f"Der Entwurf kann die ganze Aufgabe nur {infinitive}, sobald du ihn bestätigst, nicht bis oder zu einer "
            "anderen Zeit. Ist das gemeint?"
        )
        for operation, infinitive in _OPERATIONS.items()
    },
    "which time counts on those days?": "welche Zeit gilt an diesen Tagen?",
    "those days only at their own time": "an diesen Tagen nur zu ihrer eigenen Zeit",
    "both times on those days": "an diesen Tagen zu beiden Zeiten",
    # errors
    "{text!r} can mean {choices}": "{text!r} kann bedeuten: {choices}",
    "; or ": "; oder ",
    "Say what is meant.": "Sag, was gemeint ist.",
    "{text!r} cannot be scheduled": "{text!r} lässt sich nicht planen",
    "{text!r} is not understood": "{text!r} ist nicht verständlich",
    "{text!r} is not understood at {words!r}": "{text!r} ist bei {words!r} nicht verständlich",
    "; the closest that is understood is {phrase!r}: {meaning}": "; verständlich wäre {phrase!r}: {meaning}",
    # changes
    "The time zone stays {zone}.": "Die Zeitzone bleibt {zone}.",
    "It runs once, and no longer repeats.": "Es läuft einmal und wiederholt sich nicht mehr.",
    # answers
    "make it {schedule}": "besser {schedule}",
    "at {time}": "um {time}",
    "{time} in the morning": "{time} am Vormittag",
    "{time} in the afternoon": "{time} am Nachmittag",
    "once, at {first}": "einmal, um {first}",
    "every hour from {first} to {last}": "stündlich von {first} bis {last}",
    "minutes before the hour": "Minuten vor der Stunde",
    "spread evenly": "gleichmäßig verteilt",
    "in these months of every year": "in diesen Monaten jedes Jahres",
    "on the first day of the month": "am ersten Tag des Monats",
    "on every day of the month": "an jedem Tag des Monats",
    "the midnight at the start of the day": "Mitternacht am Anfang des Tages",
    "the midnight at the end of the day": "Mitternacht am Ende des Tages",
    "{count} times in total": "insgesamt {count}-mal",
    "only in months that have that day": "nur in Monaten, die diesen Tag haben",
    "on the last day of shorter months": "in kürzeren Monaten am letzten Tag",
    "one such day each month": "ein solcher Tag im Monat",
    "every {nth} weeks": "alle {nth} Wochen",
    "the first of each month": "der erste jedes Monats",
    "every one": "jeder",
    "only number {nth} of them": "nur der {nth}. davon",
    "each of them once": "jeder davon einmal",
    "all of them": "alle",
    "both": "beide",
    "every time": "jedes Mal",
    "only the next time": "nur das nächste Mal",
    "{first} and {then}": "{first} und {then}",
    "{weekday}, {day:%Y-%m-%d}": "{weekday}, {day:%d.%m.%Y}",
    "today, {day:%Y-%m-%d}": "heute, {day:%d.%m.%Y}",
    "{day} {month}": "{day}. {month}",
    "the one on {day}": "der am {day}",
    "every two weeks": "alle zwei Wochen",
    "every two months": "alle zwei Monate",
    "every two years": "alle zwei Jahre",
    # assumptions
    "The words were read as {language}.": "Die Wörter wurden als {language} gelesen.",
    "It is in every quarter.": "Es ist in jedem Quartal.",
    "It is in every year.": "Es ist in jedem Jahr.",
    "It runs on {weekday}.": "Es läuft am {weekday}.",
    "It runs on day {day} of the month.": "Es läuft am {day}. des Monats.",
    "It runs on {month} {day}.": "Es läuft am {day}. {month}.",
    "Only the one on {old:%Y-%m-%d at %H:%M} moves, to {new:%Y-%m-%d at %H:%M}.": (
        "Nur der am {old:%d.%m.%Y um %H:%M} wird verschoben, auf den {new:%d.%m.%Y um %H:%M}."
    ),
    "No time was given, so it is {time}.": "Ohne Uhrzeit ist es um {time}.",
    "About {time} is {time}.": "Ungefähr {time} ist {time}.",
    "{time} is noon.": "{time} ist mittags.",
    "{time} is in the morning.": "{time} ist am Vormittag.",
    "It begins at {start}.": "Es beginnt um {start}.",
    "It ends at {end}.": "Es endet um {end}.",
    "Monday to Friday are business days, also holidays.": "Montag bis Freitag sind Werktage, auch Feiertage.",
    "It is from {start:%Y-%m-%d} to {until:%Y-%m-%d}.": "Es ist vom {start:%d.%m.%Y} bis {until:%d.%m.%Y}.",
    "It applies to these months every year.": "Es gilt für diese Monate in jedem Jahr.",
    "Midnight is the start of the day.": "Mitternacht ist der Anfang des Tages.",
    "The last day is {until:%Y-%m-%d}.": "Der letzte Tag ist der {until:%d.%m.%Y}.",
    "The interval counts from now.": "Der Abstand zählt ab jetzt.",
    "It is in every week.": "Es ist in jeder Woche.",
    "It is in every month.": "Es ist in jedem Monat.",
    "Only {day:%Y-%m-%d} is excluded.": "Nur der {day:%d.%m.%Y} ist ausgenommen.",
    "It leaves out {first:%Y-%m-%d} to {last:%Y-%m-%d}.": "Vom {first:%d.%m.%Y} bis {last:%d.%m.%Y} läuft es nicht.",
    "{meant}, not {typed}": "{meant}, nicht {typed}",
    "as it was typed": "wie getippt",
    "{typed!r} is read as {meant!r}.": "{typed!r} wird als {meant!r} gelesen.",
    "That is on {days}, in the night.": "Das ist am {days}, in der Nacht.",
    "The schedule does not run then, so nothing changes.": "Der Zeitplan läuft dann nicht, also ändert sich nichts.",
    # further hints
    "this looks like {name}; write when it runs in English, German or Dutch, give its locale, or put a title that is "
    "meant so in quotes": (
        "das sieht nach {name} aus; schreib auf Englisch, Deutsch oder Niederländisch, wann es läuft, gib die Locale an, "
        "oder setze einen Titel, der so gemeint ist, in Anführungszeichen"
    ),
    "at most {count} can be skipped at once": "höchstens {count} lassen sich auf einmal auslassen",
    "it runs only {count} times more": "es läuft nur noch {count}-mal",
    "that moves it to another day; give the new days and times": (
        "das verschiebt es auf einen anderen Tag; nenne die neuen Tage und Uhrzeiten"
    ),
    "say which one moves by its day": "sag durch seinen Tag, welcher Termin verschoben wird",
    "it runs {count} times on {day:%Y-%m-%d}; say which one should move": (
        "am {day:%d.%m.%Y} läuft es {count}-mal; sag, welcher Termin verschoben werden soll"
    ),
    "{day:%Y-%m-%d} is a {weekday}": "der {day:%d.%m.%Y} ist ein {weekday}",
    "name a day that every month has": "nenne einen Tag, den jeder Monat hat",
    "give its date, for example: except 2026-11-26": "nenne das Datum, zum Beispiel: außer am 26.11.2026",
    "name a time zone by its city, or write it as Europe/London": (
        "nenne die Zeitzone nach ihrer Stadt, oder schreib sie wie Europe/London"
    ),
    "count it in days or weeks, from a weekday or a day of the month": (
        "zähle es in Tagen oder Wochen, ab einem Wochentag oder einem Tag des Monats"
    ),
    "make two schedules of it": "mach zwei Zeitpläne daraus",
    "name the days, for example: every Monday and Tuesday": "nenne die Tage, zum Beispiel: jeden Montag und Dienstag",
    "it says {rate} times but names {named}; make them agree": (
        "es soll {rate}-mal sein, genannt sind aber {named}; bring das in Einklang"
    ),
    "give the time of day before the end, for example: every day at 9:00 until Friday at 17:00": (
        "nenne die Uhrzeit vor dem Ende, zum Beispiel: jeden Tag um 9:00 bis Freitag um 17:00"
    ),
    "give a window (from 9:00 to 17:00) or a start (starting at 9:00)": (
        "nenne einen Zeitraum (von 9:00 bis 17:00) oder einen Anfang (ab 9:00)"
    ),
    "give an end date instead of a number of times": "nenne ein Ende statt einer Anzahl",
    "say the times before and after midnight one by one": "sag die Zeiten vor und nach Mitternacht einzeln",
    "add 'every' if it repeats, or list the dates": "sag 'jeden', wenn es sich wiederholt, oder nenne die Daten",
    "give the date: which days are holidays is not known here": "nenne das Datum: welche Tage frei sind, ist hier nicht bekannt",
    "the default time has passed today; give a time": "die übliche Uhrzeit ist heute vorbei; nenne eine Uhrzeit",
    "write 00:00 and say on which day": "schreib 0:00, und an welchem Tag",
    "describe the whole schedule again": "beschreib den ganzen Zeitplan neu",
    "it does not run at this time; say at which it should run": "um diese Zeit läuft es nicht; sag, um welche es laufen soll",
    "it runs on other days than these; say on which it should run": (
        "es läuft an anderen Tagen; sag, an welchen es laufen soll"
    ),
}
