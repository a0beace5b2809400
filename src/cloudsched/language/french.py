"""The lexicon of French."""

from __future__ import annotations

from cloudsched.language.lexicon import Language

_NUMBERS = """
    zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit
    dix-neuf
""".split()  # noqa: SIM905 -- easier to read
_TENS = {20: "vingt", 30: "trente", 40: "quarante", 50: "cinquante", 60: "soixante"}
_ORDINALS = {
    1: "premier|première|premiers|premières",
    2: "deuxième|second|seconde",
    3: "troisième",
    4: "quatrième",
    5: "cinquième",
    6: "sixième",
    7: "septième",
    8: "huitième",
    9: "neuvième",
    10: "dixième",
    11: "onzième",
    12: "douzième",
    15: "quinzième",
    20: "vingtième",
    30: "trentième",
}
_DAYS = ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche")

FRENCH = Language(
    code="fr",
    name="French",
    words={
        "number": dict(enumerate(_NUMBERS))
        | {1: "un|une"}
        | {ten + 1: f"{word} et un|{word} et une" for ten, word in _TENS.items()},
        "tens": _TENS,
        "ordinal": _ORDINALS,
        "ordinal-end": {
            -1: "dernier|dernière|derniers|dernières",
            -2: "avant-dernier|avant-dernière|pénultième",
        },
        "fraction": {30: "demi|une demi"},
        "minute-unit": {
            30: "demi heure|demie heure|demi heures|demies heures",
            15: "quart d'heure",
            45: "trois quarts d'heure",
        },
        "and-half": {30: "et demie|et demi", 15: "et quart"},
        "after-hour": {30: "et demie|et demi", 15: "et quart|et un quart", -15: "moins le quart|moins quart"},
        "minus": {1: "moins"},
        "article": {1: "le|la|les|l'|un|une|du|des|au|aux"},
        "a": {1: "un|une"},
        "the": {1: "le"},
        "habit": {1: "le|les|l'"},
        "each": {1: "chaque|tous les|toutes les|tout les|à chaque|tous|toutes"},
        "unit": {
            0: "seconde|secondes|sec",
            1: "minute|minutes|min|mn",
            2: "heure|heures",
            3: "jour|jours|journée",
            4: "semaine|semaines",
            5: "mois",
            6: "trimestre|trimestres",
            7: "an|ans|année|années",
            8: "quinzaine|quinzaines",
            9: "semestre|semestres",
        },
        "too-short": {0: "milliseconde|millisecondes|ms|microseconde|microsecondes"},
        "unit-short": {0: "s", 1: "m", 2: "h", 3: "j"},
        "day-word": {1: "jour|jours"},
        "adverb": {
            2: "toutes les heures|chaque heure|horaire",
            3: "quotidiennement|quotidien|quotidienne|journalier|journalière|journellement",
            4: "hebdomadaire|hebdomadairement|hebdo",
            5: "mensuel|mensuelle|mensuellement",
            6: "trimestriel|trimestrielle|trimestriellement",
            7: "annuel|annuelle|annuellement",
            9: "semestriel|semestrielle|semestriellement",
        },
        "bi": {4: "bihebdomadaire|bi-hebdomadaire", 5: "bimensuel|bimensuelle|bimestriel|bimestrielle", 7: "bisannuel"},
        "out-of": {2: "sur deux|sur 2", 3: "sur trois|sur 3", 4: "sur quatre|sur 4"},
        "always": {1: "toujours|systématiquement", 2: "régulièrement"},
        "recurring": {1: "récurrent|récurrente|régulier|régulière"},
        "forever": {1: "pour toujours|indéfiniment|jusqu'à nouvel ordre"},
        "change-verb": {
            1: "change|changer|modifie|modifier|renomme|renommer|actualise|actualiser|mets à jour|saute|sauter",
            2: "déplace|déplacer|décale|décaler|reporte|reporter|repousse|repousser|avance|avancer|remets|remettre",
        },
        "cancel-verb": {
            1: "annule|annuler|annulez|arrête|arrêter|arrêtez|stoppe|stopper|désactive|désactiver|interromps",
            2: "supprime|supprimer|supprimez|efface|effacer|enlève|enlever|retire|retirer",
            3: "suspends|suspendre|mets en pause|mettre en pause",
            4: "reprends|reprendre|relance|relancer",
        },
        "stop-reminding": {
            1: "ne me rappelle plus|ne me rappelle pas|ne me rappelez plus|ne me rappelez pas|arrête de me rappeler"
            "|arrêtez de me rappeler|cesse de me rappeler|plus de rappel|plus de rappels|ne me préviens plus"
        },
        "task-noun": {
            1: "rappel|rappels|alarme|alarmes|tâche|tâches|notification|notifications|alerte|alertes|réveil"
            "|cela|ça|tout"
        },
        "onto": {1: "pour|sur|concernant|que"},
        "own": {1: "mon|ma|mes|notre|nos|tous mes|toutes mes", 2: "le|la|les|l'|ce|cet|cette|ces|tous les"},
        "wish": {
            1: "je voudrais|j'aimerais|j' aimerais|peux-tu|pouvez-vous|pourrais-tu|pourriez-vous|je dois|bonjour|salut"
            "|ok|non|alors|maintenant|et|puis"
        },
        "question-word": {
            1: "que|qu'est-ce que|quel|quelle|quels|quelles|qui|combien|pourquoi|est-ce que|y a-t-il|ai-je|quand est-ce"
        },
        "occasion": {
            1: "avant|après|au déjeuner|pendant le déjeuner|au petit déjeuner|au dîner|pendant le dîner"
            "|pendant la réunion"
            "|en arrivant|en rentrant|en chemin|la prochaine fois|à mon retour|une fois que"
        },
        "idiom": {1: "vérifier si|demander si|savoir si|voir si|après tout|avant tout"},
        "condition": {1: "si|quand|lorsque|tant|dès que|pendant que|aussitôt que", 2: "parce"},
        "yearly-event": {1: "anniversaire"},
        "half-known": {
            1: "lever du soleil|coucher du soleil|aube|crépuscule|pleine lune|nouvelle lune|jour de paie|jour de paye"
            "|mon anniversaire|au printemps|en été|cet été|en automne|en hiver|cet hiver|décennie|siècle"
            "|vacances scolaires|jour d'école|jours d'école|jours de classe|jours de congé|après le travail"
            "|avant le travail|fréquemment|souvent|rarement|parfois|constamment"
            "|périodiquement|généralement|habituellement|un de ces jours|un jour|prochainement|carême|ramadan"
        },
        "weekday": {day: f"{name}|{name[:3]}" for day, name in enumerate(_DAYS)},
        "weekdays": {day: f"{name}s" for day, name in enumerate(_DAYS)},
        "dayset": {
            0: "jour ouvré|jour ouvrable|jour de semaine|jour de la semaine|jour de travail",
            1: "week-end|weekend|fin de semaine",
        },
        "daysets": {
            0: "jours ouvrés|jours ouvrables|jours de semaine|jours de la semaine|jours de travail|en semaine"
            "|la semaine",
            1: "week-ends|weekends|fins de semaine|le week-end|le weekend|les week-ends|les weekends",
        },
        "business": {1: "jour ouvré|jours ouvrés|jour ouvrable|jours ouvrables|jour de travail|jours de travail"},
        "on-or": {-1: "au plus tard le", 1: "au plus tôt le"},
        "month": {
            1: "janvier|janv|jan",
            2: "février|févr|fév",
            3: "mars",
            4: "avril|avr",
            5: "mai",
            6: "juin",
            7: "juillet|juil",
            8: "août",
            9: "septembre|sept|sep",
            10: "octobre|oct",
            11: "novembre|nov",
            12: "décembre|déc",
        },
        "edge-noun": {
            -5: "fin du mois|fin de mois|fin de chaque mois",
            5: "début du mois|début de mois|début de chaque mois",
            -6: "fin du trimestre|fin de trimestre",
            -7: "fin d'année|fin de l'année",
        },
        "relday": {
            -1: "hier|la veille",
            0: "aujourd'hui|aujourd hui",
            1: "demain|le lendemain|lendemain|le jour suivant|jour suivant",
            2: "après-demain|le surlendemain|surlendemain",
        },
        "now": {0: "maintenant|tout de suite|immédiatement|dès que possible|aussi vite que possible"},
        "tonight": {
            0: "ce matin",
            1: "cet après-midi|cet aprèm",
            2: "ce soir",
            3: "cette nuit",
            4: "ce midi",
        },
        "part": {0: "matin|matinée", 1: "après-midi|aprèm", 2: "soir|soirée", 3: "nuit"},
        "parts": {0: "matins", 1: "les après-midis", 2: "soirs", 3: "nuits"},
        "named-time": {720: "midi", 0: "minuit"},
        "day-end": {1: "fin de journée|fin de la journée|la fin de la journée|fin du jour|la fin du jour"},
        "about": {1: "vers|environ|aux environs de|aux alentours de|autour de"},
        "halfday": {0: "am|a m", 1: "pm|p m"},
        "oclock": {1: "heure|heures|h"},
        "hour-mark": {1: "h"},
        "hours-said": {1: "heures|h"},
        "hour-point": {0: "à l'heure pile|à l'heure ronde", 30: "à la demie"},
        "feast": {
            101: "jour de l'an|nouvel an|le nouvel an",
            106: "épiphanie",
            214: "saint-valentin",
            501: "fête du travail",
            815: "assomption",
            1101: "toussaint",
            1111: "armistice",
            1224: "veille de noël|réveillon de noël",
            1225: "noël|jour de noël",
            1231: "saint-sylvestre|réveillon du nouvel an|veille du nouvel an",
            1: "pâques|dimanche de pâques",
            2: "vendredi saint",
            3: "lundi de pâques",
            4: "mercredi des cendres",
            8: "ascension|jeudi de l'ascension",
            9: "pentecôte",
            10: "lundi de pentecôte",
            12: "mardi gras",
        },
        "holiday": {1: "jour férié|jours fériés|férié|fériés", 2: "fête des mères|fête des pères|fête nationale"},
        "vague": {
            1: "bientôt|plus tard|un jour ou l'autre|de temps en temps|quelques|plusieurs|tôt|tard|mi|sous peu"
            "|d'ici peu"
            "|tout à l'heure|dans un moment|dans un instant|dans peu de temps|dans un petit moment|à l'occasion"
        },
        "at": {1: "à|a|aux"},
        "on": {1: "le|les|au|aux|la|l'|pour le|ce"},
        "on-day": {1: "le|les"},
        "in": {1: "dans|d'ici|en|au|au mois de|au mois d'"},
        "of": {1: "de|du|des|d'|de la|de l'|en|dans|au|du mois de|du mois d'|le|dans le"},
        "part-of": {1: "du|de|de l'|de la|dans|dans la|dans l'|le|au|en"},
        "per": {1: "par|chaque|tous les|toutes les"},
        "for": {1: "pendant|durant|pour"},
        "from": {1: "de|du|d'|à partir de"},
        "between": {1: "entre"},
        "to": {1: "à|au|a|jusqu'à|jusqu'au"},
        "and": {1: "et|ainsi que|et aussi|puis"},
        "or": {1: "ou|ou bien"},
        "also": {1: "aussi|également"},
        "then": {1: "et|et aussi"},
        "start": {
            1: "à partir de|à partir du|à partir d'|à partir|à compter de|à compter du|dès|dès le|depuis|depuis le"
            "|en commençant|en commençant le|commençant|commençant le|débutant|débutant le|à dater de|à dater du"
        },
        "onward": {1: "et après"},
        "until": {1: "jusqu'à|jusqu'au|jusqu'en|jusqu'à la|jusqu'aux|jusqu'a|jusque|jusqu'à fin"},
        "before": {1: "avant|avant le|avant la|avant l'"},
        "after": {1: "après|après le|après la|après l'"},
        "times": {1: "fois|occurrences|occurrence"},
        "next": {0: "ce|cet|cette|ces|cette même"},
        "next-after": {1: "prochain|prochaine|suivant|suivante|qui vient|à venir|d'après"},
        "coming": {1: "ce prochain"},
        "the-next": {1: "les prochains|les prochaines|les"},
        "hence": {1: "à partir de maintenant|à compter de maintenant|à partir d'aujourd'hui|plus tard"},
        "edge": {1: "début|le début|au début", -1: "fin|la fin|à la fin"},
        "except": {
            1: "sauf|excepté|excepté le|hors|hormis|à l'exception de|à l'exception du|à l'exception des|sauf le"
            "|sauf les"
            "|sauf la|sauf en|mais pas|mais pas le|mais pas en|sans|sans le|sauf pendant|pas le|pas en|jamais|jamais le"
        },
        "only": {1: "seulement|uniquement|exclusivement"},
        "polite": {1: "s'il te plaît|s'il vous plaît|svp|stp|merci|exactement|pile|précises|précise"},
        "following": {1: "où que je sois"},
        "week-start": {1: "les semaines commencent le|la semaine commence le"},
        "week-number": {1: "semaine|semaines"},
        "parity": {1: "impair|impaire|impairs|impaires", 2: "pair|paire|pairs|paires"},
        "that-one": {1: "du mois"},
        "in-total": {1: "au total|en tout"},
        "remind": {
            1: "rappelle-moi de|rappelle-moi d'|rappelle-moi|rappelez-moi de|rappelez-moi d'|rappelez-moi"
            "|me rappeler de"
            "|rappelle moi que|préviens-moi|fais-moi penser à"
        },
        "intro": {0: "je veux|je voudrais|planifie|programme|peux-tu|pouvez-vous"},
        "outro": {0: "de|d'", 1: "rappelle-moi de|rappelle-moi d'|rappelle-moi|rappelez-moi de|pour"},
        "zone-time": {1: "heure locale"},
        "zone-of": {1: "heure de|heure d'|heure du|heure des|à l'heure de|à l'heure d'|à l'heure du"},
        "relocate": {1: "passe-le|passe|décale-le|décale|déplace-le|déplace|change-le|change"},
        "make": {
            2: "change en|mets|mets-le|plutôt|décale à|déplace à|passe à|passe-le à|change pour|fais-le",
        },
        "instead": {1: "plutôt|à la place|au lieu"},
        "instead-of": {1: "au lieu de|au lieu du|plutôt que"},
        "add-more": {1: "aussi|aussi le|ajoute|également|également le|et aussi"},
        "skip": {1: "saute|passe|annule|ignore"},
        "no-more": {1: "plus|plus le|pas|pas le|sans|retire|enlève|arrête"},
        "one": {1: "prochaine|la prochaine|le prochain|prochaine fois|la prochaine fois"},
        "shift": {1: "plus tard", -1: "plus tôt"},
        "postpone": {1: "repousse|repousse-le|reporte|reporte-le|décale|décale-le"},
        "by": {1: "de|d'"},
        "stop-after": {1: "arrête après|arrête-toi après|termine après|stop après"},
        "more": {1: "de plus|encore"},
    },
    month_first=False,
    day_endings=("di", "dis"),
    clock24=True,
    elisions=frozenset({"l", "d", "qu", "jusqu", "lorsqu", "n", "s", "c", "j", "puisqu"}),
    folds_accents=True,
    innocent=frozenset({"note", "table", "media", "once", "entre", "sobre", "sera", "sport", "tide", "lent", "date"}),
)
