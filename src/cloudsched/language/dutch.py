"""The lexicon of Dutch. The settings at the end have the differences in word order and notation."""

from __future__ import annotations

from cloudsched.language.lexicon import Language, number_words

_NUMBERS = number_words(
    "nul één twee drie vier vijf zes zeven acht negen tien elf twaalf "
    "dertien veertien vijftien zestien zeventien achttien negentien"
)
_TENS = {20: "twintig", 30: "dertig", 40: "veertig", 50: "vijftig"}
_ORDINALS = number_words(
    "eerste tweede derde vierde vijfde zesde zevende achtste negende tiende elfde twaalfde dertiende veertiende "
    "vijftiende zestiende zeventiende achttiende negentiende twintigste",
    first=1,
)
_WEEKDAYS = ("maandag", "dinsdag", "woensdag", "donderdag", "vrijdag", "zaterdag", "zondag")
_PARTS = ("ochtend|morgen|voormiddag|vroeg", "middag|namiddag", "avond", "nacht")


def _compose(unit: int, tens: str) -> str:
    """Return a number of two digits: "eenentwintig", "tweeëntwintig"."""
    word = "een" if unit == 1 else _NUMBERS[unit]
    return f"{word}ën{tens}|{word}en{tens}" if word.endswith("e") else f"{word}en{tens}"


def _say_often(words: str) -> str:
    """Return the forms of parts of the day that repeat: "'s avonds"."""
    return "|".join(f"{before}{word}s" for word in words.split("|") for before in ("'s ", "s ", "s", ""))


_ORDINALS |= {20 + unit: _compose(unit, "twintigste") for unit in range(1, 10)}
_ORDINALS |= {30: "dertigste", 31: "eenendertigste"}

DUTCH = Language(
    code="nl",
    name="Dutch",
    words={
        "number": _NUMBERS
        | {1: "één|eén|éen|een uur"}
        | {ten + unit: _compose(unit, tens) for ten, tens in _TENS.items() for unit in range(1, 10)},
        "tens": _TENS,
        "ordinal": _ORDINALS,
        "ordinal-end": {
            -1: "laatste|allerlaatste",
            -2: "voorlaatste|een na laatste|één na laatste|op een na laatste",
            -3: "twee na laatste|op twee na laatste",
        },
        "to-last": "na laatste",
        "fraction": {30: "half|halve|een half|een halve|½", 15: "kwart|een kwart|¼", 45: "driekwart"},
        "and-half": {30: "½|en een half|en een halve|en half", 15: "en een kwart"},
        "halves": {3: "anderhalf|anderhalve", 5: "tweeënhalf|tweeënhalve|tweeeneenhalf|tweeenhalf", 7: "drieënhalf"},
        "half": {-30: "half", 15: "kwart|kwartier"},
        "article": "de|het|een|den|'t",
        "a": "een|één",
        "each": {1: "elke|elk|iedere|ieder|alle|om het", 3: "om de"},
        "other": {2: "andere"},
        "unit": number_words(
            "seconde|seconden|secondes|sec minuut|minuten|minuutjes|min uur|uren|uurtje|uurtjes dag|dagen "
            "week|weken|weekje|weekjes maand|maanden|maandje kwartaal|kwartalen jaar|jaren"
        ),
        "too-short": {0: "milliseconde|milliseconden|ms|microseconde|microseconden"},
        "unit-short": number_words("s m h|u d"),
        "day-word": "dag|dagen",
        "the": "op de",
        "coming": "komende|aanstaande|eerstkomende|eerstvolgende|komend|aanstaand|a s|as",
        "parity": {1: "oneven|de oneven", 2: "even|de even"},
        "that-one": "van de maand",
        "edge-noun": {
            -5: "maandeinde|einde van de maand|eind van de maand|einde maand|eind van elke maand|ultimo",
            5: "maandbegin|begin van de maand",
            -6: "kwartaaleinde|einde van het kwartaal|eind van het kwartaal",
            6: "kwartaalbegin|begin van het kwartaal",
            -7: "jaareinde|einde van het jaar|eind van het jaar",
            7: "jaarbegin|begin van het jaar",
        },
        "adverb": {
            3: "dagelijks|dagelijkse|alledaags",
            4: "wekelijks|wekelijkse",
            5: "maandelijks|maandelijkse",
            6: "driemaandelijks|driemaandelijkse",
            7: "jaarlijks|jaarlijkse",
            8: "tweewekelijks|tweewekelijkse|veertiendaags|veertiendaagse",
            9: "halfjaarlijks|halfjaarlijkse|elk half jaar|elk halfjaar|ieder half jaar|om het half jaar",
        },
        "bi": {5: "tweemaandelijks|tweemaandelijkse", 7: "tweejaarlijks|tweejaarlijkse"},
        "part-adverb": {3: "nachtelijks|nachtelijkse"},
        "minute-unit": {
            30: "half uur|halfuur|half uurtje|half uurtjes",
            15: "kwartier|kwartiertje",
            45: "drie kwartier|driekwartier",
        },
        "hourly-point": {0: "elk heel uur|ieder heel uur|op elk heel uur"},
        "always": {1: "altijd|steeds", 2: "regelmatig"},
        "recurring": "terugkerend|terugkerende|herhalend|herhalende|regelmatige",
        "forever": "voor altijd|voorgoed|tot nader order|voor onbepaalde tijd|zonder einde",
        "yearly-event": "verjaardag|verjaardagen|jubileum|trouwdag|huwelijksdag|geboortedag|naamdag|sterfdag",
        "change-verb": {
            1: "wijzig|wijzigen|verander|veranderen|pas aan|aanpassen|bewerk|bewerken|hernoem|hernoemen"
            "|sla over|overslaan|ruil|ruilen|verplaats|verplaatsen",
            2: "verzet|verzetten|verschuif|verschuiven|uitstellen",
        },
        "cancel-verb": number_words(
            "annuleer|annuleren|stop|stoppen|beëindig|beëindigen|schrap|schrappen|cancel|cancelen|afzeggen|uitzetten"
            "|uitschakelen|deactiveer|deactiveren|afbreken "
            "verwijder|verwijderen|wis|wissen pauzeer|pauzeren|onderbreek|onderbreken hervat|hervatten",
            first=1,
        ),
        "stop-reminding": (
            "herinner me niet|herinner me nooit|herinner mij niet|stop met herinneren|hou op met herinneren"
            "|houd op met herinneren|geen herinnering|geen herinneringen|niet meer herinneren|stop met me"
        ),
        "task-noun": (
            "herinnering|herinneringen|wekker|wekkers|alarm|alarmen|taak|taken|melding|meldingen|dat|dit|alles"
        ),
        "onto": "naar|over|voor|aan",
        "own": {1: "mijn|m'n|onze|ons|al mijn", 2: "de|het|deze|die|dat|alle"},
        "wish": (
            "ik wil|ik wil graag|ik zou graag|kun je|kan je|kunt u|wil je|wilt u|zou je|hallo|hoi|hey|hé|ok|oké"
            "|okay|oh|nee|nou|dus|nu|toch|dan|en"
        ),
        "question-word": (
            "wat|welke|welk|wie|hoeveel|hoe lang|hoe vaak|waarom|wanneer is|wanneer heb|wanneer moet|is er"
            "|zijn er|heb ik|had ik|moet ik|ben ik"
        ),
        "occasion": (
            "vóór de|vóór het|vóór mijn|vlak voor|net voor|na de|na het|na mijn|na afloop|tijdens|tijdens de"
            "|tijdens het|bij de lunch|bij het ontbijt|bij het avondeten|bij het eten|bij aankomst|onderweg"
            "|op weg|volgende keer|de volgende keer|uur voor het|uur voor de|uur voor mijn|minuten voor het"
            "|minuten voor de|minuten voor mijn|dag voor mijn"
        ),
        "night-to": "in de nacht op|in de nacht naar|nacht op",
        "night-from": "in de nacht van|nacht van",
        "intro": (
            "hey|hoi|hallo|hé|eh|ehm|dus|zet|noteer|noteer even|plan|plan in|kun je me|kan je me|kunt u me"
            "|kun je|kan je|kunt u|wil je me|wil je|wilt u me|wilt u|zou je me|zou je|vergeet niet"
            "|vergeet niet om|niet vergeten|denk eraan|denk eraan om|ik moet|ik wil|ik wil graag|dat ik"
            "|zorg dat ik|help me onthouden|laat me niet|we moeten"
        ),
        "intro-noun": (
            "zet een wekker|zet de wekker|zet een herinnering|maak een herinnering|nieuwe herinnering"
            "|zet een alarm|maak een herinnering aan|stel een herinnering in|zet wekker"
        ),
        "closer": "in|herinneren|niet vergeten|aan|eraan|moet",
        "idiom": "voor de deur|voor het huis|na afloop schoonmaken|als cadeau|als team|als eerste|zorg dat",
        "condition": {
            1: "als|wanneer|zodra|indien|zolang|tenzij|mits|nadat|voordat|terwijl|totdat|ingeval|sinds"
            "|elke keer als|elke keer dat|elke keer wanneer|tot ik|tot je|tot we|tot hij|tot ze|tot het|tot de"
            "|iedere keer als|iedere keer dat|telkens als|telkens wanneer",
            2: "omdat|hoewel",
        },
        "greeting": "goed|goede|goeden|meneer|mevrouw|dhr|mevr",
        "hedge": (
            "max|maximaal|misschien|wellicht|eventueel|mogelijk|waarschijnlijk|liefst|vroeg|laat|vroeger|later|ooit"
        ),
        "half-known": {
            1: "zonsopgang|zonsopkomst|zonsondergang|dageraad|schemering|volle maan|nieuwe maan|betaaldag"
            "|na werktijd|na het werk|voor het werk|na school|na schooltijd|bedtijd|etenstijd|sluitingstijd"
            "|openingstijd|in de lente|in het voorjaar|in de zomer|in de herfst|in het najaar|in de winter"
            "|deze zomer|deze winter|semester|trimester|decennium|eeuw|schooljaar|schooldag|schooldagen"
            "|schoolvakantie|schoolvakanties|vakantiedagen|wedstrijddagen|vrije dagen|vrije dag|in de advent"
            "|in de vasten|ramadan|periodiek|voortdurend|herhaaldelijk|zelden|meestal|normaal gesproken"
            "|gewoonlijk|doorgaans|ooit|op een dag|midden in de week|halverwege de week|halverwege de maand"
            "|medio",
            2: "mijn verjaardag|zijn verjaardag|haar verjaardag|onze trouwdag",
        },
        "weekday": number_words("maandag|ma dinsdag|di woensdag|wo donderdag|do vrijdag|vr zaterdag|za zondag|zo"),
        "weekdays": {at: f"{day}s|{day}en|'s {day}s" for at, day in enumerate(_WEEKDAYS)},
        "dayset": {0: "werkdag|weekdag|doordeweekse dag", 1: "weekend|weekeinde|in het weekend", 2: "weekenddag"},
        "daysets": {
            0: "werkdagen|weekdagen|doordeweeks|doordeweekse dagen|door de week",
            1: "weekends|weekenden|weekeinden|in de weekenden|in weekenden",
            2: "weekenddagen",
        },
        "business": "werkdag|werkdagen",
        "on-or": {-1: "op of voor|uiterlijk op", 1: "op of na|op zijn vroegst op"},
        "month": number_words(
            "januari|jan februari|feb maart|mrt april|apr mei juni|jun juli|jul augustus|aug september|sep|sept "
            "oktober|okt november|nov december|dec",
            first=1,
        ),
        "relday": number_words(
            "gisteren|gisteravond|gistermiddag|gisterochtend|gistermorgen|gisternacht vandaag morgen overmorgen",
            first=-1,
        ),
        "now": {0: "nu|onmiddellijk|meteen nu"},
        "tonight": number_words("vanochtend|vanmorgen vanmiddag vanavond vannacht"),
        "part": dict(enumerate(_PARTS)),
        "parts": {at: _say_often(words) for at, words in enumerate(_PARTS)},
        "named-time": {720: "twaalf uur 's middags|het middaguur", 0: "middernacht|twaalf uur 's nachts"},
        "day-end": {
            1: "einde van de dag|het einde van de dag|eind van de dag",
            2: "einde van de werkdag|eind van de werkdag|einde werkdag",
        },
        "about": "rond|omstreeks|ongeveer|circa|ca|tegen|zo rond|om ongeveer|rond een uur of|om een uur of|een uur of",
        "hour-mark": "h",
        "hours-said": "uur|u",
        "halfday": {0: _say_often("ochtend|morgen|voormiddag"), 1: _say_often("middag|namiddag|avond")},
        "oclock": "uur|u",
        "hour-point": {0: "op het hele uur|op het uur|op elk heel uur", 30: "op het halve uur"},
        "past": {1: "over", -1: "voor"},
        "clock-minute": "minuten|minuut|min",
        "feast": {
            101: "nieuwjaar|nieuwjaarsdag",
            106: "driekoningen",
            214: "valentijnsdag|valentijn",
            229: "schrikkeldag",
            427: "koningsdag",
            504: "dodenherdenking",
            505: "bevrijdingsdag",
            501: "dag van de arbeid",
            1031: "halloween",
            1101: "allerheiligen",
            1111: "sint maarten",
            1205: "sinterklaasavond|pakjesavond",
            1224: "kerstavond",
            1225: "kerst|kerstmis|kerstdag|eerste kerstdag|1e kerstdag",
            1226: "tweede kerstdag|2e kerstdag",
            1231: "oudjaar|oudejaarsavond|oudejaarsdag|oud en nieuw",
            1: "pasen|eerste paasdag|1e paasdag|paaszondag",
            2: "goede vrijdag",
            3: "paasmaandag|tweede paasdag|2e paasdag",
            4: "aswoensdag",
            5: "palmzondag",
            6: "witte donderdag",
            7: "paaszaterdag|stille zaterdag",
            8: "hemelvaart|hemelvaartsdag",
            9: "pinksteren|eerste pinksterdag|1e pinksterdag|pinksterzondag",
            10: "pinkstermaandag|tweede pinksterdag|2e pinksterdag",
            11: "sacramentsdag",
            12: "vastenavond",
        },
        "holiday": {1: "feestdag|feestdagen", 2: "moederdag|vaderdag|prinsjesdag|suikerfeest|offerfeest"},
        "some": "een paar|enkele|enige|een aantal",
        "vague": (
            "straks|binnenkort|zometeen|zo meteen|zo dadelijk|dadelijk|later|soms|vaak|af en toe|gauw|weldra"
            "|binnen|over een tijdje|over een poosje|over een tijd|een dezer dagen|te zijner tijd"
            "|zo snel mogelijk|zsm|op een gegeven moment|meermaals|vaker|een keertje|zo nu en dan|op termijn"
            "|met uitzondering|vrij|halverwege|bijna|hoogstens|minstens|op zijn vroegst|even voor"
            "|af en toe|telkens als|echter|voorlopig|eergisteren|onlangs|overovermorgen|advent|zomervakantie"
            "|daarna|daarvoor|ervoor|erna|vooraf|indien nodig|zo nodig|bij het eten|de hele|het hele"
            "|halve dagen|om de zoveel|om beurten|per toerbeurt|of twee|of drie|of vier|of vijf|of wat|of zo"
            "|overdag|afwisselend|op kantooruren|tijdens kantooruren"
        ),
        "at": "om|te",
        "on": "op|op de|op het|uiterlijk|uiterlijk op",
        "on-day": "op|op de",
        "in": "in",
        "ahead": "over",
        "of": "van|in",
        "per": "per|in de|in een|elke|elk|iedere|ieder",
        "for": "gedurende|stop na|eindig na|hou op na|houd op na|eindigt na",
        "for-after": "lang",
        "from": "van",
        "between": "tussen",
        "to": "tot|tot en met|tem|t e m|t / m",
        "and": "en|en ook|alsook|alsmede",
        "or": "of",
        "also": "ook|eveneens",
        "then": "en|en ook",
        "start": (
            "vanaf|van|met ingang van|m i v|ingaande|ingaand|te beginnen op|beginnend op|beginnend|startend op"
            "|vanaf de|voor het eerst|voor het eerst op|per"
        ),
        "onward": "af",
        "until": {1: "tot|tot aan", 2: "tot en met|tem|t e m|t / m|uiterlijk tot"},
        "inclusive": "inbegrepen|inclusief",
        "before": {-1: "voor|vóór"},
        "after": "na",
        "times": "keer|maal|x|keren",
        "twice": {
            1: "eenmaal|eenmalig|een keer|één keer|eens",
            2: "tweemaal",
            3: "driemaal",
            4: "viermaal",
            5: "vijfmaal",
        },
        "next": {1: "volgende|volgend|de volgende|komende|komend", 0: "deze|dit"},
        "in-total": "in totaal",
        "the-next": "de volgende|de komende|komende|volgende",
        "consecutive": "achter elkaar|achtereen|op rij|opeenvolgende|aaneen",
        "rest": "op alle andere dagen|alle andere dagen|op de andere dagen|op de overige dagen",
        "hence": "vanaf nu|vanaf vandaag",
        "edge": {1: "begin|het begin", -1: "eind|einde|het einde|het eind"},
        "except": (
            "behalve|behalve op|behalve in|uitgezonderd|niet|maar niet|maar niet op|niet op|niet in|nooit"
            "|met uitzondering van|nooit op"
        ),
        "than": "dan|naar",
        "only": "alleen|alleen maar|alleen nog|alleen nog maar|enkel|uitsluitend|slechts",
        "polite": "alsjeblieft|alstublieft|aub|a u b|svp|s v p|graag|dank je|dankjewel|bedankt|even|precies|stipt",
        "if-day": "als het een|indien het een",
        "if-day-end": "is",
        "the-hour": "het hele uur|het uur|van het uur",
        "following": "waar ik ook ben|ongeacht waar ik ben|waar ik ook maar ben",
        "week-start": "weken beginnen op|week begint op",
        "week-number": "week|weken|weeknummer",
        "remind": (
            "herinner me|herinner me er|herinner me aan|herinner me aan de|herinner me aan het"
            "|herinner me eraan|herinner me eraan om|herinner me eraan dat ik|herinner mij|herinner mij eraan"
            "|herinner mij eraan om|herinner me eraan dat|zet een herinnering voor|maak een herinnering voor"
            "|maak een herinnering aan voor|stel een herinnering in voor|waarschuw me|geef me een seintje"
            "|stuur me een herinnering|stuur me een melding|zet een herinnering om"
        ),
        "outro": {
            0: "aan de|aan het|aan mijn|aan|om|om te|met de titel",
            1: "eraan|eraan dat|eraan dat ik|eraan om|dat ik|dat|aan om|aan dat|aan dat ik|herinneren aan"
            "|herinneren aan de|herinneren aan het|herinneren aan mijn|eraan herinneren dat"
            "|eraan herinneren dat ik|eraan herinneren om|herinneren|eraan herinneren|herinneren om"
            "|herinner me eraan|herinner me aan|een herinnering voor",
        },
        "zone-time": "tijd|lokale tijd",
        "zone-of": "lokale tijd in|plaatselijke tijd in|tijd in|tijd van|lokale tijd van",
        "relocate": "verzet het|verplaats het|verschuif het|wijzig het",
        "make": {
            1: "maak er van|verzet het naar|verplaats het naar|zet het op|wijzig het naar",
            2: "maak er|maak het|doe maar|doe het|liever|toch|in plaats daarvan|verzet het",
        },
        "instead": "in plaats daarvan|liever",
        "add-more": "ook|ook op|ook om|daarnaast|bovendien",
        "skip": "sla over|sla|schrap",
        "skip-end": "over",
        "skip-after": "overslaan|laten vervallen|vervalt|gaat niet door|schrappen",
        "more": "verdere|nog",
        "instead-of": "in plaats van|i p v|ipv|niet|en niet",
        "no-more": "niet meer|niet meer op|niet",
        "one": "de volgende|de eerstvolgende|de volgende keer|de komende|volgende",
        "shift": {1: "later", -1: "eerder|vroeger"},
    },
    requests={
        "verb": {
            1: "wijzig|wijzigen|verander|veranderen|aanpassen|zet|maak",
            14: "hernoem|hernoemen",
            12: "voer uit|uitvoeren",
            13: "verzet|verzetten|verplaats|verplaatsen|verschuif|verschuiven|schuif",
            2: "overslaan|laten vervallen|schrappen|geen|skippen",
            3: "toevoegen",
            5: "uitstellen",
            6: "vervroegen|vervroeg",
            7: "pauzeer|pauzeren|onderbreek|onderbreken|stilleggen",
            8: "hervat|hervatten|voortzetten",
            9: "annuleer|annuleren|afzeggen|cancel|cancelen|afgelasten|schrap",
            10: "stop|stoppen|stopzetten|beëindig|beëindigen|uitzetten|uitschakelen|deactiveer|deactiveren",
            11: "verwijder|verwijderen|wis|wissen",
        },
        "separable": {
            1: "moet … zijn|moeten … zijn|vindt … plaats|vinden … plaats",
            2: "sla … over|laat … vervallen|laat … uitvallen|gaat … niet door|gaan … niet door|valt … uit",
            3: "voeg … toe",
            5: "stel … uit|schuif … op|schuif … naar achteren",
            6: "haal … naar voren|schuif … naar voren",
            7: "zet … op pauze|zet … stil|leg … stil",
            8: "ga … verder|ga … weer verder|zet … voort|pak … weer op|start … weer|zet … weer aan",
            9: "zeg … af|blaas … af|gelast … af",
            10: "zet … uit|schakel … uit|zet … stop",
            12: "voer … uit",
        },
        "mark": {
            1: "in plaats van|ipv|later|eerder|vroeger|alleen|alleen nog|pas om",
            2: "gaat niet door|gaan niet door|vervalt|vervallen|valt uit|is afgelast|is geannuleerd|overslaan",
            3: "ook|daarnaast|bovendien|eveneens",
            4: "niet meer|niet langer|niet",
            13: "verzetten naar|verplaatsen naar|verschuiven naar|verzetten tot",
        },
        "lasting": "voortaan|vanaf nu|in het vervolg|definitief|altijd|in plaats daarvan|liever",
        "once": "alleen deze keer|deze keer|alleen dit keer|dit keer|eenmalig|alleen vandaag|een keer",
        "padding": (
            "alsjeblieft|aub|graag|kun je|kan je|wil je|ik wil|ok|oké|hey|hoi|hallo|even|toch|maar|dan|nu"
            "|zelfde tijd|op dezelfde tijd|om dezelfde tijd|bedankt|voorlopig|helemaal|zou je|we kunnen"
            "|laten we"
        ),
        "copula": "is|zijn|wordt|moet|moeten|moet zijn|begint|begint om",
        "pronoun": "het|dat|die|hem|deze",
        "joint": "naar|naar de|op|tot|tot en met",
        "link": "van|van de|voor|voor de|met|met de|bij|in|mijn",
        "list-verb": "toon|toon me|laat|laat me|geef|noem|lijst",
        "agenda": (
            "staat|staan|staat er|is gepland|gepland|heb ik|komt eraan|komen eraan|mijn afspraken|mijn agenda"
            "|mijn planning|op de planning|op het programma|moet ik|op mijn lijst"
        ),
        "noun": "afspraak|afspraken|opdrachten|klusjes",
        "becomes": "in|naar|op|als",
        "label-lead": {1: "met|en|waarbij", 2: "de|het"},
        "label-is": "is",
        "its": "zijn|haar|hun",
        "field": number_words(
            "titel|naam beschrijving|details doel categorie|soort bezorging|kanaal|kanalen "
            "tijd|tijden|tijdstip|dag|dagen|datum|schema|tijdzone",
            first=1,
        ),
        "via": "per|via|als|met|in|op|naar",
        "channel": number_words(
            "e-mail|email|e-mails|emails|mail|mails postvak|inbox "
            "push|pushbericht|pushberichten|telefoon|mobiel webhook telegram slack",
            first=1,
        ),
        "me": "me|mij|aan mij",
        "send": "stuur|sturen|verstuur|versturen|zend|mail",
        "send-by": {1: "mail me|e-mail me", 3: "push me"},
    },
    month_first=False,
    past=(
        r"(?i:(ik |we )?(heb|hebben|had|hadden|werd|werden) )"
        r"|(.* )?([a-z]*ge|be|ver)(?!.*cht$)[a-z]{3,}[td]$"
    ),
    innocent=frozenset(
        """
        goed weten anders maakt denkt eerst geeft houdt verder nemen mogen werken slecht nieuw nieuws
        beginnen begint lange helpt kerel kleren teken volgen kaart stoel stopt dragen maat maan passen
        kunst ronde jagen wegen lever engel graaf stilte kern plant plank starten lager liter tassen tocht
        laden stoep graad zolder schaap donor meten herhalen laser voeg mand graan stomp noot strop halte
        wekken keten oever laken daken waken plaatselijk bedank mandje latex kers kersen korst loten keuren
        koren werkje kwast hall verzen tegel stift lader kuren palen telen weven kerven premies schrapen
        lasten moest wezen start hier last save late mars noch klokken more wet eet tag dank later feierabend
        """.split()  # noqa: SIM905 -- easier to read
    ),
    day_endings=("dag", "dagen"),
    ordinal_endings=("e", "de", "ste"),
    part_adverbs=True,
    compounds={
        f"{day}{part}": len(day)
        for day in (*_WEEKDAYS, "morgen", "overmorgen")
        for words in _PARTS
        for one in words.split("|")
        for part in (one, f"{one}en")
    },
    clock24=True,
    either_half=True,
    verbs_last=True,
)
