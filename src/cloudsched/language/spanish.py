"""The lexicon of Spanish."""

from __future__ import annotations

from cloudsched.language.lexicon import Language

_NUMBERS = """
    cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete
    dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete
    veintiocho veintinueve
""".split()  # noqa: SIM905 -- easier to read
_TENS = {20: "vigésimo|vigésima", 30: "treinta|trigésimo", 40: "cuarenta", 50: "cincuenta", 60: "sesenta"}
_ORDINALS = {
    1: "primer|primero|primera|primeros",
    2: "segundo|segunda",
    3: "tercer|tercero|tercera",
    4: "cuarto|cuarta",
    5: "quinto|quinta",
    6: "sexto|sexta",
    7: "séptimo|séptima",
    8: "octavo|octava",
    9: "noveno|novena",
    10: "décimo|décima",
}
_DAYS = ("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo")

SPANISH = Language(
    code="es",
    name="Spanish",
    words={
        "number": {number: word for number, word in enumerate(_NUMBERS) if number != 1}
        | {1: "un|uno|una"}
        | {
            ten + unit: f"{word} y {_NUMBERS[unit]}" + (f"|{word} y un|{word} y una" if unit == 1 else "")
            for ten, word in ((30, "treinta"), (40, "cuarenta"), (50, "cincuenta"), (60, "sesenta"))
            for unit in range(1, 10)
        },
        "tens": _TENS,
        "ordinal": _ORDINALS,
        "ordinal-end": {-1: "último|última|últimos|últimas", -2: "penúltimo|penúltima", -3: "antepenúltimo"},
        "fraction": {30: "media", 15: "cuarto de|un cuarto de", 45: "tres cuartos de"},
        "minute-unit": {30: "media hora", 15: "cuarto de hora", 45: "tres cuartos de hora"},
        "and-half": {30: "y media|y medio", 15: "y cuarto"},
        "after-hour": {30: "y media", 15: "y cuarto|y un cuarto", -15: "menos cuarto|menos un cuarto"},
        "minus": {1: "menos"},
        "plus": {1: "y"},
        "article": {1: "el|la|los|las|un|una|lo"},
        "a": {1: "un|una"},
        "the": {1: "el"},
        "habit": {1: "los|todos los|las"},
        "each": {1: "cada|todos los|todas las|todo el|todo|toda|todos|todas"},
        "unit": {
            0: "segundo|segundos|seg",
            1: "minuto|minutos|min",
            2: "hora|horas",
            3: "día|días",
            4: "semana|semanas",
            5: "mes|meses",
            6: "trimestre|trimestres",
            7: "año|años",
            8: "quincena|quincenas",
            9: "semestre|semestres",
        },
        "too-short": {0: "milisegundo|milisegundos|ms|microsegundo|microsegundos"},
        "unit-short": {0: "s", 1: "m", 2: "h", 3: "d"},
        "day-word": {1: "día|días"},
        "adverb": {
            2: "cada hora",
            3: "diariamente|diario|diaria|a diario|cotidiano",
            4: "semanalmente|semanal|semanales",
            5: "mensualmente|mensual|mensuales",
            6: "trimestralmente|trimestral",
            7: "anualmente|anual|anuales",
            8: "quincenalmente|quincenal",
            9: "semestralmente|semestral",
        },
        "bi": {4: "bisemanal|bisemanalmente", 5: "bimensual|bimestral|bimensualmente", 7: "bianual|bienal"},
        "always": {1: "siempre", 2: "regularmente"},
        "recurring": {1: "recurrente|periódico|periódica|habitual"},
        "forever": {1: "para siempre|indefinidamente|hasta nuevo aviso"},
        "change-verb": {
            1: "cambia|cambiar|cambie|modifica|modificar|actualiza|actualizar|edita|editar|renombra|renombrar|salta"
            "|saltar|sáltate",
            2: "mueve|mover|aplaza|aplazar|pospón|posponer|retrasa|retrasar|adelanta|adelantar|reprograma|reprogramar"
            "|traslada|trasladar",
        },
        "cancel-verb": {
            1: "cancela|cancelar|cancele|anula|anular|desactiva|desactivar|detén|detener|termina|terminar|acaba",
            2: "borra|borrar|elimina|eliminar|quita|quitar",
            3: "pausa|pausar|suspende|suspender",
            4: "reanuda|reanudar",
        },
        "stop-reminding": {
            1: "no me recuerdes|ya no me recuerdes|no me avises|ya no me avises|deja de recordarme|deja de avisarme"
            "|para de recordarme|no más recordatorios|nunca me recuerdes"
        },
        "task-noun": {
            1: "recordatorio|recordatorios|alarma|alarmas|tarea|tareas|notificación|notificaciones|aviso|avisos"
            "|alerta|alertas|eso|esto|todo"
        },
        "onto": {1: "sobre|que|acerca de"},
        "own": {1: "mi|mis|nuestro|nuestra|todos mis|todas mis", 2: "el|la|los|las|este|esta|ese|esa|todos los"},
        "wish": {
            1: "quiero|quisiera|me gustaría|puedes|podrías|puede|podría|tengo que|hola|oye|ok|vale|no|ahora|bueno|y"
        },
        "question-word": {
            1: "qué|cuál|cuáles|quién|cuántos|cuántas|cuánto|por qué|hay|tengo que hacer|cuándo es|cuándo tengo"
        },
        "occasion": {
            1: "antes de|antes del|después de|después del|tras|en el almuerzo|durante el almuerzo|en la comida"
            "|en la cena|durante la cena|en el desayuno"
            "|durante la reunión|al llegar|al volver|de camino|la próxima vez|en cuanto|tan pronto como|una vez que"
        },
        "idiom": {1: "ver si|saber si|preguntar si|comprobar si|después de todo"},
        "condition": {1: "si|cuando|mientras|siempre que", 2: "porque"},
        "yearly-event": {1: "cumpleaños|aniversario"},
        "half-known": {
            1: "amanecer|atardecer|anochecer|puesta de sol|salida del sol|luna llena|luna nueva|día de pago"
            "|mi cumpleaños|en primavera|en verano|este verano|en otoño|en invierno|este invierno|década|siglo"
            "|vacaciones escolares|días de escuela|días de clase|días de colegio|días lectivos|día lectivo"
            "|después del trabajo|antes del trabajo|con frecuencia|frecuentemente|a menudo"
            "|raramente|a veces|constantemente|periódicamente|normalmente|algún día|cuaresma|ramadán"
        },
        "weekday": {
            0: "lunes|lun",
            1: "martes|mar",
            2: "miércoles|mié",
            3: "jueves|jue",
            4: "viernes|vie",
            5: "sábado|sáb",
            6: "domingo|dom",
        },
        "weekdays": {5: "sábados", 6: "domingos"},
        "dayset": {
            0: "día laborable|día hábil|día de semana|día de la semana|día de trabajo",
            1: "fin de semana",
        },
        "daysets": {
            0: "días laborables|días hábiles|días de semana|días de la semana|entre semana|días de trabajo|laborables",
            1: "fines de semana|los fines de semana",
        },
        "business": {1: "día laborable|días laborables|día hábil|días hábiles|día de trabajo|días de trabajo"},
        "month": {
            1: "enero|ene",
            2: "febrero|feb",
            3: "marzo",
            4: "abril|abr",
            5: "mayo",
            6: "junio|jun",
            7: "julio|jul",
            8: "agosto|ago",
            9: "septiembre|setiembre|sept|sep",
            10: "octubre|oct",
            11: "noviembre|nov",
            12: "diciembre|dic",
        },
        "edge-noun": {
            -5: "fin de mes|final de mes|fin del mes|finales de mes|final del mes",
            5: "principio de mes|inicio de mes|comienzo de mes|principios de mes",
            -6: "fin de trimestre|final de trimestre|fin del trimestre",
            -7: "fin de año|final de año|fin del año",
        },
        "relday": {
            -1: "ayer",
            0: "hoy",
            1: "mañana|el día siguiente|día siguiente|próximo día|el día después",
            2: "pasado mañana|el día después de mañana|día después de mañana",
        },
        "now": {0: "ahora|ahora mismo|ya|inmediatamente|lo antes posible|cuanto antes"},
        "tonight": {0: "esta mañana|esta madrugada", 1: "esta tarde", 3: "esta noche", 4: "este mediodía"},
        "part": {0: "mañana|madrugada", 1: "tarde", 3: "noche", 4: "mediodía"},
        "parts": {0: "mañanas|madrugadas", 1: "tardes", 3: "noches"},
        "named-time": {720: "mediodía|medio día", 0: "medianoche|media noche"},
        "day-end": {
            1: "al finalizar el día|al final del día|fin del día|final del día|el fin del día|el final del día"
        },
        "about": {1: "sobre|sobre las|alrededor de|alrededor de las|aproximadamente|hacia|hacia las|a eso de"},
        "halfday": {0: "am|a m|horas am", 1: "pm|p m"},
        "oclock": {1: "en punto|hora|horas|h|hs|hrs"},
        "hour-mark": {1: "h|hs"},
        "hours-said": {1: "horas|h|hrs"},
        "hour-point": {0: "a la hora en punto|en punto de cada hora"},
        "feast": {
            101: "año nuevo|día de año nuevo",
            106: "reyes|día de reyes|epifanía",
            214: "san valentín|día de san valentín",
            501: "día del trabajo|día del trabajador",
            1101: "todos los santos|día de todos los santos",
            1224: "nochebuena",
            1225: "navidad|día de navidad",
            1231: "nochevieja|fin de año|víspera de año nuevo",
            1: "pascua|domingo de pascua|domingo de resurrección",
            2: "viernes santo",
            3: "lunes de pascua",
            4: "miércoles de ceniza",
            5: "domingo de ramos",
            6: "jueves santo",
            7: "sábado santo",
            9: "pentecostés",
        },
        "holiday": {1: "festivo|festivos|día festivo|días festivos|feriado|feriados|día feriado|días feriados"},
        "vague": {
            1: "pronto|más tarde|luego|de vez en cuando|algunos|algunas|unos|unas|varios|varias|temprano|tarde"
            "|en un rato|dentro de un rato|al rato|en breve|en un momento|en un ratito|dentro de poco|en unos momentos"
        },
        "at": {1: "a las|a la|a|al|las|la"},
        "on": {1: "el|los|en|al|en el|para el|para los|las"},
        "on-day": {1: "el|los|el día|los días"},
        "in": {1: "en|dentro de|al cabo de|en el mes de|en un plazo de"},
        "of": {1: "de|del|de la|en|al|de los|del mes de|en el"},
        "part-of": {1: "de la|por la|en la|a la|del|por las|de las"},
        "per": {1: "por|al|a la|cada|en la|por cada"},
        "for": {1: "durante|por|para"},
        "from": {1: "de|desde|desde las|de las|desde la|de la"},
        "between": {1: "entre|entre las"},
        "to": {1: "a|a las|al|hasta|hasta las|hasta el|a la"},
        "and": {1: "y|e|y también|así como|más"},
        "or": {1: "o|u"},
        "also": {1: "también|además"},
        "then": {1: "y|y también"},
        "start": {
            1: "a partir de|a partir del|a partir|desde|desde el|empezando|empezando el|comenzando|comenzando el"
            "|a contar de|a contar desde|iniciando|iniciando el"
        },
        "onward": {1: "en adelante"},
        "until": {1: "hasta|hasta el|hasta la|hasta los|hasta finales de"},
        "before": {1: "antes de|antes del"},
        "after": {1: "después de|después del|tras"},
        "times": {1: "veces|vez|ocasiones|repeticiones"},
        "next": {
            1: "próximo|próxima|el próximo|la próxima|siguiente|el siguiente|la siguiente",
            0: "este|esta|estos|esa",
        },
        "next-after": {1: "que viene|próximo|próxima|siguiente|entrante"},
        "coming": {1: "este próximo"},
        "the-next": {1: "los próximos|las próximas|los siguientes|las siguientes"},
        "hence": {1: "a partir de ahora|a partir de hoy|desde ahora|desde hoy|más tarde"},
        "edge": {
            1: "principio|el principio|principios|inicio|el inicio|comienzo",
            -1: "final|el final|fin|el fin|finales",
        },
        "except": {
            1: "excepto|excepto el|excepto los|salvo|salvo el|salvo los|menos|menos el|menos los|menos en"
            "|a excepción de"
            "|pero no|pero no el|pero no los|pero no en|excepto en|salvo en|sin|sin los|con excepción de|no|no los"
            "|nunca"
        },
        "only": {1: "solo|sólo|solamente|únicamente"},
        "polite": {1: "por favor|gracias|exactamente"},
        "following": {1: "dondequiera que esté|esté donde esté"},
        "week-start": {1: "las semanas empiezan el|la semana empieza el"},
        "week-number": {1: "semana|semanas"},
        "day-number": {1: "día|días"},
        "parity": {1: "impar|impares", 2: "par|pares"},
        "other": {2: "otro|otra|segundo|segunda"},
        "that-one": {1: "del mes"},
        "in-total": {1: "en total"},
        "remind": {1: "recuérdame|recuérdame que|recuérdame de|recordarme|avísame|por favor recuérdame"},
        "intro": {0: "quiero|quisiera|programa|programar|puedes|podrías|ejecuta"},
        "outro": {0: "de", 1: "recuérdame|recuérdame que|que|para"},
        "zone-time": {1: "hora local"},
        "zone-of": {1: "hora de|hora del|hora de la|horario de|horario del"},
        "relocate": {1: "cámbialo|cambia|muévelo|mueve|pásalo|pasa"},
        "make": {2: "cámbialo a|cambia a|ponlo|ponlo a|mejor|muévelo a|pásalo a|hazlo|que sea"},
        "instead": {1: "mejor|en su lugar|en vez"},
        "instead-of": {1: "en vez de|en lugar de"},
        "add-more": {1: "también|añade|agrega|también los|además"},
        "skip": {1: "salta|omite|cancela|sáltate"},
        "no-more": {1: "ya no|no|sin|quita|elimina|ya no los"},
        "one": {1: "próxima|la próxima|el próximo|la próxima vez"},
        "shift": {1: "más tarde|después", -1: "más temprano|antes"},
        "postpone": {1: "aplaza|aplázalo|pospón|posponlo|retrasa|retrásalo"},
        "stop-after": {1: "para después de|termina después de|acaba después de"},
        "more": {1: "más"},
    },
    month_first=False,
    clock24=True,
    folds_accents=True,
    innocent=frozenset({"note", "pendant", "sans", "mars", "midi", "date", "once", "table", "tide", "lent", "sport"}),
)
