"""The lexicon of German. The settings at the end have the differences in word order and notation."""

from __future__ import annotations

from cloudsched.language.lexicon import Language, number_words

_UNITS = number_words("ein zwei drei vier fünf sechs sieben acht neun", first=1)
_TENS = {20: "zwanzig", 30: "dreißig", 40: "vierzig", 50: "fünfzig"}
_ORDINALS = number_words(
    "erste* zweite* dritte* vierte* fünfte* sechste* siebte* achte* neunte* zehnte* elfte* zwölfte* dreizehnte* "
    "vierzehnte* fünfzehnte* sechzehnte* siebzehnte* achtzehnte* neunzehnte* zwanzigste*",
    first=1,
)
_ORDINALS |= {20 + number: f"{unit}undzwanzigste*" for number, unit in _UNITS.items()}
_ORDINALS |= {30: "dreißigste*", 31: "einunddreißigste*"}


_WEEKDAYS = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonnabend", "sonntag")


GERMAN = Language(
    code="de",
    name="German",
    words={
        "number": number_words(
            "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
            "siebzehn achtzehn neunzehn"
        )
        | {ten + number: f"{unit}und{word}" for number, unit in _UNITS.items() for ten, word in _TENS.items()},
        "tens": _TENS,
        "ordinal": _ORDINALS,
        "ordinal-end": {
            -1: "letzte*",
            -2: "vorletzte*",
            -3: "drittletzte*",
            -4: "viertletzte*",
            -5: "fünftletzte*",
        },
        "to-last": "letzte*",
        "fraction": {30: "halben|halbe|einer halben|einer halbe|½", 15: "viertel|einer viertel|¼", 45: "dreiviertel|¾"},
        "and-half": {
            30: "½|und eine halbe|und ein halbes|und eine halbe stunde|und eine halbe minute",
            15: "und eine viertelstunde",
        },
        "halves": {
            3: "anderthalb|anderthalbe|eineinhalb|eineinhalbe",
            5: "zweieinhalb",
            7: "dreieinhalb",
            9: "viereinhalb",
            11: "fünfeinhalb",
        },
        "half": {-15: "dreiviertel|drei viertel", -30: "halb", 15: "viertel"},
        "article": "der|die|das|den|dem|des|ein|eine|einen|einem|einer|eines|ne|nen|ner|nem",
        "a": "ein|eine|einen|einem|einer",
        "each": "jd|jeden|jede|jedes|jeder|jedem|alle|allen",
        "unit": number_words(
            "sekunde|sekunden minute|minuten|min stunde|stunden|std tag|tage|tagen|tages woche|wochen "
            "monat|monate|monaten|monats quartal|quartale|quartalen|quartals jahr|jahre|jahren|jahres"
        ),
        "too-short": {0: "millisekunde|millisekunden|ms|mikrosekunde|mikrosekunden"},
        "unit-short": number_words("s m h d"),
        "day-word": "tag|tages|tage",
        "the": "am|den|dem|der",
        "coming": "kommende*",
        "parity": {1: "ungerade*", 2: "gerade*"},
        "that-one": "des monats|im monat",
        "edge-noun": {
            -5: "monatsende|monatsletzter|monatsletzten|ultimo|monatsultimo|ende des monats",
            5: "monatsanfang|monatserster|monatsersten|monatsbeginn",
            -6: "quartalsende|quartalsultimo",
            6: "quartalsanfang|quartalsbeginn|quartalsersten",
            -7: "jahresende|jahresultimo",
            7: "jahresanfang|jahresbeginn",
        },
        "adverb": number_words(
            "minütlich~ stündlich~ täglich~|alltäglich~|tagtäglich~|tgl|tägl "
            "wöchentlich~|allwöchentlich~ monatlich~|allmonatlich~ "
            "vierteljährlich~|quartalsweise~|quartalsmäßig~ jährlich~|alljährlich~ "
            "vierzehntägig~|vierzehntäglich~|zweiwöchentlich~|zweiwöchig~|14-tägig~ halbjährlich~",
            first=1,
        ),
        "part-adverb": {
            0: "allmorgendlich~",
            2: "allabendlich~",
            3: "allnächtlich~|nächtlich~",
        },
        "minute-adverb": {30: "halbstündlich~", 15: "viertelstündlich~"},
        "minute-unit": {30: "halbe stunde", 15: "viertelstunde|viertel stunde", 45: "dreiviertelstunde"},
        "hourly-point": {0: "jede volle stunde|zu jeder vollen stunde|zur vollen stunde jeder stunde"},
        "always": {1: "immer|jeweils|stets|jedes mal", 2: "regelmäßig"},
        "recurring": "wiederkehrend~|regelmäßig~|wiederholend~",
        "forever": "für immer|unbefristet|bis auf weiteres|auf unbestimmte zeit|dauerhaft",
        "yearly-event": "geburtstag|jahrestag|hochzeitstag|namenstag",
        "change-verb": {
            1: "ändere|änder|ändern|bearbeite|bearbeiten|aktualisiere|aktualisieren|benenne|überspringe"
            "|überspringen|tausche|tauschen",
            2: "verschiebe|verschieb|verschieben|verlege|verleg|verlegen|vertage|vertagen",
        },
        "cancel-verb": {
            1: "storniere|stornieren|beende|beenden|stoppe|stopp|stoppen|streiche|streich|streichen"
            "|deaktiviere|deaktivieren|annulliere|annullieren|schalte|schalt|cancele|cancel|abbrechen|absagen"
            "|abstellen|ausschalten",
            2: "lösche|lösch|löschen|entferne|entfern|entfernen",
            3: "pausiere|pausieren|unterbrich|unterbrechen",
            4: "setze fort|fortsetzen",
        },
        "stop-reminding": (
            "erinnere mich nicht|erinner mich nicht|erinnere mich nie|hör auf mich|höre auf mich|hör auf, mich"
            "|höre auf, mich|keine erinnerung|keine erinnerungen|nicht mehr erinnern|benachrichtige mich nicht"
        ),
        "task-noun": (
            "erinnerung|erinnerungen|wecker|alarm|alarme|aufgabe|aufgaben|benachrichtigung|benachrichtigungen"
            "|das|dies|alles"
        ),
        "onto": "auf|über|wegen|zu",
        "own": {
            1: "mein|meine|meinen|meiner|meinem|meines|unser|unsere|unseren|unseres|alle meine|alle meinen",
            2: "die|der|das|den|diese|diesen|dieser|dieses|alle",
        },
        "wish": (
            "ich möchte|ich will|ich würde gern|ich würde gerne|kannst du|könntest du|würdest du|können sie"
            "|könnten sie|hallo|hey|hi|ok|okay|ach|nein|also|jetzt|nun|doch|dann|und"
        ),
        "question-word": (
            "was|welche|welcher|welches|welchen|wer|wen|wem|wessen|wie viele|wie viel|wie lange|wie oft|warum"
            "|wieso|wann ist|wann habe|wann muss|gibt es|habe ich|hatte ich|muss ich|bin ich"
        ),
        "occasion": (
            "vor dem|vor der|vorm|vor meinem|vor meiner|nach dem|nach der|nach meinem|nach meiner"
            "|beim mittagessen|beim frühstück|beim abendessen|beim essen|auf dem weg|auf dem heimweg"
            "|nächstes mal|beim nächsten mal|bei ankunft|bei der ankunft"
        ),
        "night-to": "in der nacht auf|in der nacht auf den|in der nacht zum|in der nacht zu|nacht auf|nacht zum",
        "night-from": "in der nacht von|in der nacht vom|nacht von|nacht vom",
        "intro": (
            "hey|hallo|hi|äh|ähm|also|trag mir|trage mir|trag|stell mir|stelle mir|schreib mir|mach mir"
            "|setz mir|kannst du mich|könntest du mich|kannst du mir|kannst du|könntest du|vergiss nicht"
            "|nicht vergessen|denk dran|denk daran|denke daran|merk dir|ich muss|ich möchte|ich will|ich soll"
            "|dass ich|plane|plan"
        ),
        "intro-noun": "stell einen wecker|stelle einen wecker|neue erinnerung",
        "closer": "ein|muss|erinnern|nicht vergessen|auf|an|soll",
        "idiom": "vor der tür|vor dem haus|nach dem rechten",
        "condition": {
            1: "wenn|falls|sobald|solange|sofern|seit",
            2: "weil|obwohl",
        },
        "greeting": "gut|gute|guten|schönen|herr|herrn|frau",
        "hedge": (
            "max|maximal|vielleicht|eventuell|evtl|möglichst|gleich|bald|früh|spät|früher|später|zeitig"
            "|irgendwann|wahrscheinlich|bedarf|regen|schnee|gutem wetter|schlechtem wetter|schönem wetter"
        ),
        "half-known": (
            "sonnenaufgang|sonnenuntergang|morgendämmerung|abenddämmerung|dämmerung|vollmond|neumond|zahltag"
            "|nach feierabend|vor feierabend|ladenschluss|mein geburtstag|meinem geburtstag|im frühling"
            "|im frühjahr|im sommer|im herbst|im winter|semester|trimester|jahrzehnt|jahrhundert|schuljahr"
            "|ferien|schulferien|schultag|schultage|schultagen|schultags|ferientagen|spieltagen|freien tagen"
            "|im advent|in der fastenzeit|ramadan|periodisch|häufig|ständig|dauernd|fortlaufend|wiederholt"
            "|selten|meistens|normalerweise|gewöhnlich|irgendwann|eines tages|wochenmitte|monatsmitte"
            "|jahresmitte|zur teezeit"
        ),
        "weekday": number_words(
            "montag|mo dienstag|di mittwoch|mi donnerstag|do freitag|fr samstag|sa|sonnabend sonntag|so"
        ),
        "weekdays": number_words("montags dienstags mittwochs donnerstags freitags samstags|sonnabends sonntags"),
        "dayset": number_words("werktag|arbeitstag|wochentag wochenende wochenendtag"),
        "daysets": {
            0: "werktags|wochentags|arbeitstage|werktage|wochentage|werktagen|arbeitstagen|wochentagen|alltags"
            "|unter der woche",
            1: "wochenends|wochenenden",
        },
        "business": "werktag|werktags|werktage|werktagen|arbeitstag|arbeitstags|arbeitstage|arbeitstagen",
        "on-or": {-1: "am oder vor|spätestens am", 1: "am oder nach|frühestens am"},
        "days-of": "tagen von",
        "moved": {-1: "verschoben vor", 1: "verschoben nach"},
        "moved-to": "verschoben auf",
        "not-on": "der nicht ist in|nicht in|der nicht frei ist in",
        "month": number_words(
            "januar|jänner|jan februar|feb märz|mär april|apr mai juni|jun juli|jul august|aug september|sep|sept "
            "oktober|okt november|nov dezember|dez",
            first=1,
        ),
        "relday": {-1: "gestern", 0: "heute|gleich heute", 1: "morgen|gleich morgen", 2: "übermorgen"},
        "now": {0: "jetzt|sofort"},
        "tonight": {
            0: "heute morgen|heute früh|heute vormittag",
            1: "heute nachmittag",
            2: "heute abend",
            3: "heute nacht",
            4: "heute mittag",
        },
        "part": number_words("vormittag|morgen|früh nachmittag abend nacht mittag"),
        "parts": number_words("vormittags|morgens|frühmorgens nachmittags abends nachts mittags"),
        "named-time": {720: "mittag|zwölf uhr mittags", 0: "mitternacht|mitternachts"},
        "noon-mark": "mittag|mittags|zu mittag|am mittag",
        "day-end": {
            1: "ende des tages|das ende des tages|tagesende",
            2: "büroschluss|dienstschluss|geschäftsschluss|ende des arbeitstages|ende des arbeitstags|feierabend",
        },
        "about": "gegen|etwa|ungefähr|circa|ca|so gegen|um etwa|um circa|um ca|um ungefähr|so um",
        "ish": "rum|herum",
        "hour-mark": "h",
        "hours-said": "uhr",
        "halfday": {0: "morgens|vormittags|früh", 1: "nachmittags|abends"},
        "oclock": "uhr",
        "hour-point": {0: "zur vollen stunde|zu jeder vollen stunde|um voll", 30: "zur halben stunde|um halb"},
        "past": {1: "nach", -1: "vor"},
        "clock-minute": "minuten|minute|min",
        "feast": {
            101: "neujahr",
            1224: "heiligabend",
            1225: "weihnachten",
            1231: "silvester",
            1: "ostern|ostersonntag",
            2: "karfreitag",
            3: "ostermontag",
            4: "aschermittwoch",
            5: "palmsonntag",
            6: "gründonnerstag",
            7: "karsamstag|ostersamstag",
            8: "christi himmelfahrt|himmelfahrt|vatertag",
            9: "pfingsten|pfingstsonntag",
            10: "pfingstmontag",
            11: "fronleichnam",
            12: "faschingsdienstag|fastnachtsdienstag|veilchendienstag",
            229: "schalttag|schalttagen",
            106: "dreikönig|heilige drei könige",
            501: "tag der arbeit|maifeiertag",
            1003: "tag der deutschen einheit",
            1031: "reformationstag",
            1101: "allerheiligen",
            1206: "nikolaus|nikolaustag",
            1226: "zweiter weihnachtstag|zweiten weihnachtstag",
        },
        "holiday": "feiertag|feiertage|feiertagen|feiertags",
        "some": "ein paar|einige",
        "vague": (
            "bald|mehrmals|mehrfach|manchmal|oft|gelegentlich|demnächst|später|nachher|in kürze|in einer weile"
            "|in einem moment|in einem augenblick|bei gelegenheit|zu gegebener zeit|in nächster zeit"
            "|mit ausnahme|abgesehen|weniger|frei|mitte|fast|beinahe|höchstens|mindestens|frühestens"
            "|kurz|hin und wieder|öfters|zeitnah|bzw|jedesmal|jedoch|vorerst|vorgestern|neulich|überübermorgen"
            "|advent|sommerferien|urlaub|danach|vorher|erst|bei bedarf|zum essen|beim essen|den ganzen"
            "|die ganze"
        ),
        "at": "um|zu|um punkt|um schlag",
        "on": "am|an|an den|an dem|zum|den|gleich am|spätestens|spätestens am",
        "on-day": "am|an",
        "in": "in|im",
        "of": "des|der|vom|im|in|von",
        "per": "pro|am|im|in der|je|die",
        "for": "für|höre auf nach|hör auf nach|beende es nach|stopp nach|ende nach|endet nach",
        "for-after": "lang",
        "from": "von|vom",
        "between": "zwischen",
        "to": "bis|bis zum",
        "and": "und|sowie|und auch",
        "or": "oder",
        "also": "auch|ebenfalls",
        "then": "und|und auch",
        "start": "ab|ab dem|ab der|beginnend|beginnend am|von|vom|beginnend mit dem|erstmals|erstmals am",
        "onward": "an",
        "until": {
            1: "bis|bis zum|bis zur",
            2: "bis einschließlich|bis einschließlich zum|bis inklusive|bis inkl|bis und mit|spätestens bis",
        },
        "inclusive": "einschließlich|inklusive|eingeschlossen",
        "before": {-1: "vor"},
        "after": "nach",
        "times": "mal|male",
        "twice": number_words("einmal zweimal dreimal viermal fünfmal sechsmal", first=1),
        "next": {
            2: "übernächste*",
            1: "nächste*|kommende*|folgende*",
            0: "diesen|diese|dieser|dieses|diesem",
        },
        "in-total": "insgesamt|im ganzen",
        "the-next": "die nächsten|die kommenden|den nächsten|den kommenden|nächsten|kommenden",
        "consecutive": "hintereinander|nacheinander|in folge|am stück|aufeinanderfolgende*",
        "counted-weekday": number_words(
            "montage|montagen dienstage|dienstagen mittwoche|mittwochen donnerstage|donnerstagen freitage|freitagen "
            "samstage|samstagen|sonnabende|sonnabenden sonntage|sonntagen"
        ),
        "rest": "an allen anderen tagen|alle anderen tage|an den anderen tagen|an den übrigen tagen",
        "hence": "ab jetzt|ab heute",
        "edge": {1: "anfang|beginn", -1: "ende"},
        "except": "außer|außer an|außer am|außer im|nicht|aber nicht|nicht am|nicht im|ohne|ausgenommen|nie",
        "only": "nur|nur noch|ausschließlich",
        "polite": "bitte|danke|mal|bitte mal|mal bitte|doch mal",
        "skip-back": "oder am letzten tag davor, wo dieser tag fehlt",
        "skip-forward": "oder am ersten tag danach, wo dieser tag fehlt",
        "skip-omit": (
            "nur in monaten mit diesem tag|nur in jahren mit diesem tag|nur in jahren mit dieser woche"
            "|nur in schaltjahren"
        ),
        "if-day": "wenn es|falls es",
        "if-day-end": "ist",
        "added": "zusätzlich am|und zusätzlich am",
        "synchronised": "nach der uhr",
        "minute-number": "zur minute|in minute|zu minute",
        "the-hour": "der stunde|der vollen stunde",
        "hour-number": "stunde",
        "second-number": "zur sekunde",
        "following": (
            "egal wo ich bin|egal, wo ich bin|egal wo ich gerade bin|egal, wo ich gerade bin|wo immer ich bin"
            "|wo immer ich gerade bin|wo auch immer ich bin|wo auch immer ich gerade bin"
            "|egal wo sein besitzer ist"
        ),
        "week-start": "wochen beginnen am|woche beginnt am",
        "week-number": "woche|wochen|kalenderwoche|kalenderwochen|kw",
        "remind": "erinnere mich daran|erinnere mich|erinner mich|bitte erinnere mich",
        "outro": {
            0: "an den|an die|an das|an dem|an meinen|an meine|an mein|an",
            1: "daran|erinnere mich daran|erinnere mich|dran|daran erinnern|dran erinnern|erinnern|dass"
            "|dass ich|daran dass|ne erinnerung|eine erinnerung|einen termin",
        },
        "zone-time": "zeit|ortszeit",
        "zone-of": "ortszeit in|ortszeit von|zeit in|zeit von|ortszeit",
        "relocate": "verschiebe es|verschieb es|verlege es|ändere es",
        "make": {
            1: "mach es um|ändere es auf|verschiebe es auf",
            2: "mach es|mach das|verschiebe es|lieber|besser|doch lieber|erst|stattdessen",
        },
        "instead": "stattdessen|lieber",
        "add-more": "auch|auch am|zusätzlich",
        "skip": "überspringe|lass aus",
        "skip-after": "auslassen|überspringen|weglassen|aussetzen|ausfallen lassen|entfällt|fällt aus",
        "more": "weitere|noch",
        "instead-of": "statt|anstatt|anstelle von|nicht|und nicht",
        "no-more": "nicht mehr|nicht mehr am|nicht|ohne",
        "one": "das nächste|den nächsten|das nächste mal|nächsten|nächste",
        "shift": {1: "später|nach hinten", -1: "früher|nach vorne|nach vorn"},
    },
    requests={
        "verb": {
            1: "ändere|änder|ändern|mach|mache|setz|setze|stell|stelle|stellen|umstellen|tausche|tauschen",
            13: "verschieb|verschiebe|verschieben|verleg|verlege|verlegen|leg|lege|legen|schieb|schiebe"
            "|schieben|umlegen|pack",
            2: "überspring|überspringe|überspringen|ausfallen lassen|auslassen|aussetzen|weglassen|kein|keine"
            "|keinen|ausfallen",
            3: "ergänze|ergänz|ergänzen|hinzufügen|dazunehmen",
            5: "vertag|vertage|vertagen|aufschieben|nach hinten verschieben|nach hinten verlegen",
            6: "vorverlegen|vorziehen|nach vorne verlegen|nach vorne verschieben|nach vorn verlegen",
            7: "pausier|pausiere|pausieren|unterbrich|unterbrechen",
            8: "fortsetzen|reaktivier|reaktiviere|reaktivieren|weitermachen|wiederaufnehmen",
            9: "storniere|stornier|stornieren|cancel|cancle|cancele|canceln|absagen|streich|streiche|streichen",
            10: "beende|beenden|stopp|stoppe|stoppen|abstellen|ausschalten|deaktivier|deaktiviere|deaktivieren"
            "|abbrechen",
            11: "lösch|lösche|löschen|entfern|entferne|entfernen",
            12: "starte|starten|ausführen|auslösen|anstoßen",
            14: "umbenennen|benenn|benenne",
        },
        "separable": {
            1: "stell … um|stelle … um|soll … sein|sollen … sein|findet … statt|finden … statt",
            2: "fällt … aus|fallen … aus|lass … ausfallen|lass … aus|lasse … ausfallen|setz … aus|setze … aus"
            "|findet … nicht statt",
            3: "nimm … dazu|füg … hinzu|füge … hinzu",
            5: "schieb … auf|schieb … nach hinten|verschieb … nach hinten|verschiebe … nach hinten",
            6: "zieh … vor|ziehe … vor|leg … vor|verleg … vor|verlege … nach vorne|verschieb … nach vorne"
            "|verschiebe … nach vorne",
            7: "leg … auf eis|lege … auf eis|halt … an|halte … an",
            8: "mach … wieder weiter|mach … weiter|mache … weiter|setz … fort|setze … fort|setz … wieder fort"
            "|nimm … wieder auf|schalte … wieder ein|schalt … wieder ein|starte … wieder|fang … wieder an"
            "|aktiviere … wieder",
            9: "sag … ab|sage … ab",
            14: "benenn … um|benenne … um",
            12: "führ … aus|führe … aus|lös … aus|löse … aus|stoß … an|lass … laufen",
            10: "stell … ab|stelle … ab|schalte … ab|schalt … ab|schalte … aus|schalt … aus|hör … auf"
            "|höre … auf|brich … ab",
        },
        "mark": {
            1: "statt|anstatt|anstelle von|später|früher|nur|nur noch|erst",
            2: "entfällt|entfallen|ist abgesagt|pausiert",
            3: "auch|zusätzlich|zusätzlich auch|auch noch|außerdem|ebenfalls|auch zusätzlich",
            4: "nicht mehr|nicht länger|nicht",
        },
        "lasting": (
            "ab jetzt|ab sofort|dauerhaft|künftig|in zukunft|zukünftig|von jetzt an|von nun an|ab nun|immer"
            "|stattdessen|lieber"
        ),
        "once": "nur diesmal|diesmal|dieses mal|nur dieses mal|nur dies eine mal|ausnahmsweise|nur einmal",
        "padding": (
            "bitte|kannst du|könntest du|würdest du|ich möchte|ich will|ok|okay|hey|hallo|mal|doch|doch mal"
            "|bitte mal|vorerst|erst mal|erstmal|erst einmal|komplett|ganz|gleiche zeit|zur gleichen zeit"
            "|zur selben zeit|danke|gleiche uhrzeit|um die gleiche zeit|wir können|lass uns|jetzt"
        ),
        "copula": "ist|sind|wird|soll|sollen|soll sein|findet|finden|beginnt|beginnt um",
        "pronoun": "es|das|sie|ihn|den termin",
        "joint": "auf|auf den|auf die|zu|bis|um|in den|zum",
        "link": "mit|mit dem|mit der|mit den|von|vom|für|zu|zum|zur|bei|beim|bei der|im",
        "list-verb": "zeig|zeige|zeig mir|zeige mir|liste|nenn mir|sag mir|gib mir",
        "agenda": (
            "steht|stehen|ist geplant|geplant|habe ich|hab ich|ist los|ist dran|liegt an|ist fällig|fällig"
            "|anstehend|anstehende|meine termine|mein kalender|auf dem plan|auf dem programm|kommt|muss ich"
        ),
        "noun": "termin|termine|terminen|aufträge",
        "becomes": "in|auf|zu|als|um zu|um in|um auf",
        "label-lead": {1: "mit|und|wobei", 2: "der|die|das|den|dem"},
        "label-is": "ist",
        "its": "ihren|ihre|ihr|seinen|seine|sein|dessen|deren",
        "field": number_words(
            "titel|name|namen beschreibung|details zweck kategorie|art zustellung|versand|kanal|kanäle "
            "zeit|zeiten|uhrzeit|tag|tage|datum|termin|zeitplan|zeitzone|zone",
            first=1,
        ),
        "via": "per|via|über|als|mit|durch|in|ins|an|ans|auf|aufs",
        "channel": number_words(
            "e-mail|email|e-mails|emails|mail|mails postfach|posteingang|inbox "
            "push|push-nachricht|push-nachrichten|push-benachrichtigung|push-mitteilung|handy|smartphone|telefon "
            "webhook telegram slack",
            first=1,
        ),
        "me": "mir|an mich",
        "send": "schick|schicke|schicken|send|sende|senden|zuschicken|zusenden|verschick|verschicke|verschicken|maile",
        "send-by": {1: "mail mir|maile mir|e-maile mir|emaile mir", 3: "push mir|pushe mir"},
    },
    month_first=False,
    past=(
        r"(?i:(ich |wir )?(hab|habe|haben|hatte|hatten|war|waren|wurde|wurden) )"
        r"|(.* )?([a-zäöüß]*ge|be|ver|er|ent|zer)(?!.*cht$)[a-zäöüß]{3,}t$"
    ),
    innocent=frozenset({"jour", "fixe", "tag", "andere", "echter", "later", "begin"}),
    day_endings=("tag", "tage", "tagen", "tags"),
    endings={"*": "|n|r|s|m", "~": "|e|er|es|en|em"},
    ordinal_dot=True,
    part_adverbs=True,
    verbs_last=True,
    compounds={
        f"{day}{part}": len(day)
        for day in _WEEKDAYS
        for part in ["früh", "morgen", "vormittag", "mittag", "nachmittag", "abend", "abends", "nacht", "nachts"]
    },
    clock24=True,
)
