"""The lexicon of English."""

from __future__ import annotations

from cloudsched.language.lexicon import Language, number_words

_NO_SEND = (
    "stop sending|stop delivering|don't send|do not send|no longer send|don't deliver|do not deliver|no longer deliver"
)
_NO_MAIL = (
    "stop e-mailing|stop emailing|stop mailing|don't e-mail|don't email|don't mail|do not e-mail|do not email"
    "|do not mail|no longer e-mail|no longer email|no longer mail"
)
_NO_PUSH = "stop pushing|don't push|do not push|no longer push"

ENGLISH = Language(
    code="en",
    name="English",
    words={
        "number": number_words(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen"
        ),
        "tens": {
            20: "twenty",
            30: "thirty",
            40: "forty",
            50: "fifty",
            60: "sixty",
            70: "seventy",
            80: "eighty",
            90: "ninety",
        },
        "ordinal": number_words(
            "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
            "fifteenth sixteenth seventeenth eighteenth nineteenth",
            first=1,
        )
        | {20: "twentieth", 30: "thirtieth"},
        "ordinal-end": {
            -1: "last|very last|final",
            -2: "penultimate|next-to-last|second-to-last|second last|2nd last|2nd-to-last|last but one",
            -3: "last but two|third-to-last|antepenultimate",
        },
        "to-last": "to last|to the last|last|from last|from the end|to the end",
        "thousand": {1000: "thousand"},
        "fraction": {
            30: "half|half a|half an|1/2|½",
            15: "quarter|quarter of a|quarter of an|a quarter of an|¼",
            45: "three-quarters of an|three quarters of an|three-quarters of a|¾",
        },
        "and-half": {30: "and a half|and half|½", 15: "and a quarter|¼", 45: "and three quarters|¾"},
        "half": {30: "half", 15: "quarter|a quarter"},
        "article": "the|a|an",
        "a": "a|an|one",
        "each": {1: "every|each|ev|every single|each and every", 2: "all|on all"},
        "rest": (
            "all other days|on all other days|all the other days|on all the other days|the other days|on the other days"
        ),
        "consecutive": "in a row|in succession|consecutive|consecutively",
        "other": {2: "other|alternate|alternating"},
        "unit": {
            0: "second|seconds|sec|secs",
            1: "minute|minutes|min|mins",
            2: "hour|hours|hr|hrs",
            3: "day|days|day of the week|days of the week",
            4: "week|weeks|wk|wks",
            5: "month|months",
            6: "quarter|quarters",
            7: "year|years|yr|yrs",
            8: "fortnight|fortnights",
        },
        "too-short": {0: "millisecond|milliseconds|millis|ms|microsecond|microseconds"},
        "unit-short": number_words("s m h d w"),
        "day-word": "day|days",
        "the": "the|on the",
        "coming": "this coming|the coming|coming|this upcoming|the upcoming|upcoming|this next",
        "parity": {1: "odd|uneven", 2: "even"},
        "numbered": "numbered",
        "that-one": "one|ones|of them|of these|of those|one of them",
        "edge-noun": {
            -5: "month end|monthend|eom|end of month",
            5: "month start|start of month|beginning of month|month beginning",
            -6: "quarter end|eoq|end of quarter",
            6: "quarter start|start of quarter|beginning of quarter",
            -7: "year end|eoy|end of year",
            7: "year start|start of year|beginning of year",
        },
        "adverb": {
            1: "minutely",
            2: "hourly",
            3: "daily|everyday",
            4: "weekly",
            5: "monthly",
            6: "quarterly",
            7: "yearly|annually|annual",
            8: "fortnightly",
            9: "semi-annually|semiannually|semiannual|semi-annual|half-yearly|twice yearly",
        },
        "bi": {
            4: "biweekly|bi-weekly",
            5: "bimonthly|bi-monthly",
            7: "biyearly|bi-yearly|biannually|bi-annually|biannual",
            3: "bidaily|bi-daily",
            2: "bihourly|bi-hourly",
        },
        "tri": {4: "triweekly|tri-weekly", 5: "trimonthly|tri-monthly", 7: "triennially|triennial"},
        "part-adverb": {3: "nightly"},
        "minute-adverb": {30: "half-hourly|half hourly", 15: "quarter-hourly|quarter hourly"},
        "always": {1: "always|as a rule|without fail", 2: "regularly|on a regular basis"},
        "recurring": "recurring|repeating|recurrent|regular",
        "forever": "forever|for ever|indefinitely|until further notice|till further notice|with no end|for good",
        "generic": "reminder|alarm|notification|alert|task|job|timer|event|one|a|an|the|me",
        "yearly-event": "birthday|bday|b-day|anniversary",
        "change-verb": (
            "change|edit|modify|update|adjust|alter|rename|swap|switch|skip|move|shift|set back|postpone"
            "|reschedule|delay|snooze|put off|push back|bring forward|move up"
        ),
        "cancel-verb": {
            1: "don't|do not|no more|opt out of|unsubscribe me from|unsubscribe from|cancel|call off|stop|end"
            "|scrap|drop|dismiss|disable|deactivate|turn off|switch off|silence|unschedule",
            2: "delete|remove|erase|clear|get rid of",
            3: "pause|suspend|mute",
            4: "resume|unpause|restart",
        },
        "stop-reminding": (
            "stop reminding|stop notifying|stop alerting|stop pinging|quit reminding|don't remind|dont remind"
            "|do not remind|never remind|no longer remind|don't notify|dont notify|do not notify"
            "|no more reminders|no more reminder|stop sending me|stop the reminders|stop the reminder"
        ),
        "task-noun": (
            "reminder|reminders|alarm|alarms|notification|notifications|alert|alerts|timer|timers|task|tasks"
            "|that|this|these|those|everything"
        ),
        "onto": "into|about|regarding|concerning",
        "own": {1: "my|our|all my|all of my|any of my", 2: "the|this|that|these|those|all|all the|any"},
        "wish": (
            "i'd like to|i would like to|i need to|i have to|you should|would you|will you|we should|we need to"
            "|hey|hi|hello|ok|okay|oh|actually|no|now|so|well|sorry|just|then|and"
        ),
        "question-word": (
            "should i|should we|is|are|was|were|did|does|can i|have i|what|what's|whats|which|who|who's|whose"
            "|whom|how many|how much|how long|how often|how come|why|is there|are there|do i|did i|do we|am i"
            "|was i|were there|when do|when does|when did|when is|when's"
        ),
        "occasion": (
            "before|after|at lunch|over lunch|during lunch|at breakfast|over breakfast|during breakfast"
            "|at dinner|over dinner|with breakfast|with lunch|with dinner|with meals|with food|during dinner"
            "|at supper|at brunch|during the meeting|during my meeting|on arrival|upon arrival|on my way"
            "|on the way|on my way home|on the way home|once i|once we|once he|once she|once they|once it"
            "|as soon as|by the time|the moment|next time|the next time"
        ),
        "night-to": "in the night to|the night to|in the night before|in the early hours of|early hours of",
        "night-from": "in the night from|the night from|night from|night of",
        "relative": "that are|which are|who are|that is|which is|this is|these are",
        "idiom": (
            "look after|looking after|take after|named after|after all|after party|before and after|check if"
            "|check when|check whether|ask if|ask when|ask whether|see if|see when|find out if|find out when"
            "|know if|know when|decide if|decide when|wonder if|confirm if|confirm when|verify if|what if"
        ),
        "condition": {
            1: "if|when|whenever|while|unless|provided|assuming|since",
            2: "depending|weather|because",
        },
        "greeting": "good|mr|mrs|ms",
        "hedge": (
            "max|maybe|perhaps|possibly|probably|asap|soonish|early|late|earlier|later|sometime|somewhen"
            "|roughly|as required|as necessary|ideally|preferably"
        ),
        "half-known": {
            1: "sunrise|sunset|sunup|sundown|dawn|dusk|daybreak|nightfall|twilight|golden hour|high tide"
            "|low tide|full moon|new moon|equinox|solstice|spring equinox|payday|pay day|paydays"
            "|over the weekend|over the weekends|bedtime|teatime|dinnertime|suppertime|brunch time|first thing"
            "|last thing|start of business|opening time|closing time|rush hour|break time|in spring|in summer"
            "|in autumn|in winter|in the spring|in the summer|in the autumn|in the winter|in the fall"
            "|during summer|during winter|all summer|all winter|over the summer|this summer|next summer"
            "|this winter|next winter|semester|semesters|trimester|term time|schooldays|school days|schoolday"
            "|school day|school nights|match days|game days|days off|in term time|decade|decades|century"
            "|centuries|every sprint|each sprint|seasonally|periodically|intermittently|frequently|constantly"
            "|continuously|continually|repeatedly|infrequently|rarely|seldom|usually|normally|sporadically"
            "|someday|some day|one day|in time|on time|whenever possible|in the future|the other day|moonrise"
            "|moonset|midsummer|midwinter|during lent|during advent|hanukkah|eid|passover|semiweekly"
            "|semi-weekly|semimonthly|semi-monthly|bicentennial|workweek|work week|working week|midweek"
            "|mid-week|mid-month|midmonth|mid-year|midyear|evenly|randomly|at random|alternately",
            2: "my birthday|his birthday|her birthday|our anniversary",
        },
        "weekday": number_words(
            "monday|mon tuesday|tue|tues wednesday|wed|weds|wensday|wendsday thursday|thu|thur|thurs friday|fri "
            "saturday|sat sunday|sun"
        ),
        "weekdays": number_words("mondays|mons tuesdays wednesdays thursdays fridays saturdays sundays"),
        "dayset": {
            0: "weekday|workday|work day|working day|business day|week day",
            1: "weekend",
            2: "weekend day",
            3: "day of the week",
        },
        "daysets": {
            0: "m-f|weekdays|workdays|work days|working days|business days|week days",
            1: "weekends",
            10: "mwf",
            11: "tth|tuth",
            2: "weekend days",
        },
        "business": "workday|workdays|work day|work days|working day|working days|business day|business days",
        "on-or": {-1: "on or before|no later than", 1: "on or after|no earlier than"},
        "days-of": "days of",
        "moved": {-1: "moved before", 1: "moved after"},
        "moved-to": "moved to",
        "not-on": "that is not on",
        "month": number_words(
            "january|jan february|feb march|mar april|apr may june|jun july|jul august|aug september|sep|sept "
            "october|oct november|nov december|dec",
            first=1,
        ),
        "relday": {
            -1: "yesterday",
            0: "today|this day",
            1: "tomorrow|tmrw|tmr|tmw|tomorow|tommorow|tommorrow|the next day|next day|the following day|morrow",
            2: "day after tomorrow|the day after tomorrow|overmorrow|the day after tmrw|day after tmrw"
            "|the day after tmr",
        },
        "now": {0: "now|right now|immediately|asap|as soon as possible"},
        "tonight": {3: "tonight|later tonight"},
        "part": {
            0: "morning|forenoon",
            1: "afternoon",
            2: "evening",
            3: "night|night time|nighttime|nite",
            4: "lunchtime|lunch time",
        },
        "parts": number_words("mornings afternoons evenings nights lunchtimes"),
        "named-time": {720: "noon|midday|12 noon|12 midday|noonish|high noon|noontime", 0: "midnight|12 midnight"},
        "noon-mark": "noon|midday|lunchtime|lunch time",
        "day-end": {
            1: "end of day|the end of day|end of the day|the end of the day|eod|the eod",
            2: "cob|close of business|the close of business|close of play|end of business"
            "|end of the business day|end of the working day|end of the workday",
        },
        "about": "about|around|approximately|approx|roughly|circa|or about|at about|at around|at roughly|round about",
        "ish": "ish|or so|or thereabouts",
        "hour-mark": "h",
        "hours-said": "hours|hrs|hr|h",
        "part-of": "on the|during the|of the",
        "halfday": {0: "am|a m|in the am", 1: "pm|p m|in the pm"},
        "halfday-short": {0: "a", 1: "p"},
        "oclock": "o'clock|oclock",
        "past": {1: "past|after", -1: "to|before|till|of"},
        "clock-minute": "minute|minutes|min|mins",
        "feast": {
            101: "new year's day|new years day|new year",
            214: "valentine's day|valentines day|valentine's",
            1031: "halloween",
            1224: "christmas eve|xmas eve",
            1225: "christmas|christmas day|xmas|xmas day",
            1226: "boxing day",
            1231: "new year's eve|new years eve|nye",
            1: "easter|easter sunday",
            2: "good friday",
            3: "easter monday",
            4: "ash wednesday",
            5: "palm sunday",
            6: "maundy thursday|holy thursday",
            7: "holy saturday|easter saturday|easter eve",
            8: "ascension day|ascension",
            9: "pentecost|whit sunday|whitsun|pentecost sunday",
            10: "whit monday|pentecost monday",
            11: "corpus christi",
            12: "shrove tuesday|pancake day|fat tuesday",
            229: "leap day|leap days|leapday",
        },
        "holiday": {
            1: "holiday|holidays|public holiday|public holidays|bank holiday|bank holidays",
            2: "thanksgiving|thanksgiving day|ramadan|diwali|black friday|cyber monday|giving tuesday"
            "|super tuesday|super bowl sunday|mother's day|mothers day|father's day|fathers day|memorial day"
            "|labor day|labour day|independence day|veterans day|columbus day|presidents day|presidents' day"
            "|martin luther king day|mlk day|juneteenth|st patrick's day|saint patrick's day|mardi gras"
            "|canada day|australia day|anzac day|bastille day|guy fawkes night|burns night|chinese new year"
            "|lunar new year|groundhog day|earth day|groundhog|tax day",
        },
        "some": "early|late|mid|a few|few|several|a couple of|a couple|couple",
        "no-title": "mon|mons|tue|tues|wed|weds|thu|thur|thurs|fri",
        "vague": (
            "sometime|some time|anytime|any time|soon|later today|sometimes|often|occasionally|now and then"
            "|once in a while|from time to time|asap-ish|within|eventually|shortly|later on|at some point"
            "|at some stage|in a bit|in a little bit|in a while|in a little while|in a moment|in a jiffy"
            "|in due course|in the near future|in no time|before long|one of these days|sooner or later"
            "|a bit later|a little later|when i can|when you can"
            "|overnight|daytime|daytimes|during the day|during lunch|during work|during school|during class"
            "|during business hours|business hours|office hours|working hours|work hours|school hours|term time"
            "|odd days|odd weeks|even days|even weeks|alternate weeks|alternate days|alternate|alternating"
            "|as needed|if needed|when needed|onwards|at most|at mealtimes|just once|only once|at the latest"
            "|latest|on my shift"
        ),
        "at": "at|on the stroke of",
        "on": "on",
        "on-day": "on|on the|on day|on days|the|for|day|days",
        "in": "in|in the month of|during|within the month of",
        "of": "of|in|in the month of|of the month of",
        "per": "per|a|an|in a|every|each",
        "for": "for|stop after|end after|finish after|quit after|stop it after|end it after|stops after|ends after",
        "up": "up to",
        "from": "from",
        "between": "between",
        "to": "to|through|thru",
        "and": "and|and also|as well as|plus|and then",
        "or": "or",
        "also": "also|too|as well|additionally",
        "then": "and|and also|plus|also|and then",
        "start": (
            "starting|starting on|starting in|starting from|starts|starts on|start|beginning|beginning on"
            "|beginning in|as of|commencing|effective|from|beginning from|first on|not before|not earlier than"
            "|as from|with effect from|kicking off|kicking off on|begins|begins on"
        ),
        "onward": "on|onward|onwards|forward",
        "until": {
            1: "until|till|til|ending|ending on|up until|up to|ends|ends on|finishing|stopping|end on",
            2: "through|thru|up to and including|until and including|till and including|not after|no later than",
        },
        "inclusive": "inclusive|included",
        "before": {-1: "before"},
        "after": "after",
        "times": "times|time|x|sessions|occurrences|occurrence|repetitions|instances|runs|repeats",
        "twice": number_words("once twice thrice", first=1),
        "next": {1: "next|coming|the next|the coming|following|the following|upcoming", 0: "this|the current|current"},
        "in-total": "in total|altogether|overall|all told|in all|for a total of|a total of",
        "the-next": "the next|next|the coming|up to the next|up to",
        "ago": "ago",
        "hence": {1: "from now|hence|later|from today|from this moment|out", 2: "from right now"},
        "edge": {1: "beginning|start|the beginning|the start", -1: "end|the end"},
        "except": (
            "except|except for|except on|except in|except during|but not|but not on|but not in|excluding"
            "|other than|apart from|without|save for|not on|not in|not|never|never on|but never on|unless"
            "|not during|except if it is|excepting|minus|with the exception of|aside from|besides|barring"
            "|only not on|outside|omitting|skipping|but|but for|bar|bar the|save|excl|excl.|exclusive of"
            "|leaving out|not including|not counting|but never in|only not in|with no runs on|no|but no"
            "|but skip|but skipping|and skip|skip"
        ),
        "only": "only|just|exclusively",
        "polite": "please|pls|plz|thanks|thank you|kindly|sharp|exactly|on the dot",
        "repeat": "repeat|repeats|run|runs|running|occurring|happening|occurs|happens",
        "if-day": "if it is|if it's",
        "added": "extra on|extra runs on",
        "filler": "if there is one|if any|if it exists",
        "skip-back": "or the last day before, where there is no such day|or the last day of the month|or the last day",
        "skip-omit": (
            "only in months that have that day|in months that have that day|only in months that have it"
            "|only in years that have that day|only in years that have that week|only in leap years"
            "|if there is such a day"
        ),
        "skip-forward": "or the first day after, where there is no such day",
        "following": (
            "wherever i am|wherever i may be|wherever i happen to be|no matter where i am|wherever its owner is"
        ),
        "week-start": "weeks begin on|week begins on",
        "week-number": "week|weeks|week number",
        "day-number": "day|days",
        "minute-number": "minute|minutes|at minute|at minutes|minute past the hour",
        "the-hour": "the hour|of the hour|past the hour|after the hour|hour",
        "hour-number": "hour|hours",
        "second-number": "at second|at seconds",
        "hour-point": {
            0: "at the top of|on the hour|at the top of the hour|top of the hour|on the full hour"
            "|at the full hour|on the o'clock",
            30: "on the half hour|at the half hour|at the bottom of the hour|at half past|half past",
            15: "at quarter past|at a quarter past|quarter past|a quarter past|on the quarter hour",
            45: "at quarter to|at a quarter to|quarter to|a quarter to",
        },
        "synchronised": "synchronized|synchronised|on the clock|aligned",
        "remind": (
            "remind me to|remind me of|remind me about|remind me that|remind me|please remind me to"
            "|please remind me|remind us to|nudge me|ping me|alert me|notify me"
        ),
        "intro": {
            0: "run this|run it|do this|do it|execute this|trigger this|start this|repeat this|repeat it"
            "|please|please schedule|schedule me|i want to|can you|could you|schedule|set|set up a|set up an"
            "|create|add|let us|let's|don't forget|don't forget to|don't let me forget|don't let me forget to"
            "|hey|hi|yo|hello|i need to|i have to|i'd like to|help me remember to",
        },
        "intro-noun": (
            "set a reminder|set an alarm|add a reminder|create a reminder|set reminder|set alarm|new reminder"
        ),
        "verb-intro": {0: "make|run|execute|trigger|send"},
        "outro": "that|about|remind me to|remind me|remind me about|i want to|call it|titled|named|to|for",
        "zone-time": "time|local time|standard time|timezone|time zone|time-zone",
        "relocate": "move it|change it|switch it|reschedule it|shift it|move|change|switch|reschedule|shift",
        "make": {
            1: "make it|change it to|move it to|change to|move to|switch to|set it to|reschedule to|put it at|use",
            2: "make it|make that|change it|move it|change|move|reschedule|reschedule it|put it|do it"
            "|let it be|switch it|use",
        },
        "instead": "instead|rather|now",
        "add-more": "also|also on|add|and also|and also on|also at|plus|too|as well|and",
        "skip": "skip|leave out|drop|cancel|omit|miss",
        "more": "more|further",
        "instead-of": "instead of|rather than|in place of|in lieu of|not",
        "no-more": "no longer|no more|stop|remove|drop|no|not|not on|no longer on|take out|without|except|except on",
        "one": "one|occurrence|time|run|the next|the next one|the next time|the next occurrence|next time|next one",
        "same-time": "same time|at the same time|the same time|same hour|same time but|the same time but",
        "shift": {1: "later", -1: "earlier|sooner"},
        "postpone": {
            1: "postpone|postpone it|push|push it|push back|push it back|delay|delay it|move it back|defer it",
            -1: "bring it forward|bring forward|pull forward|move it forward",
        },
        "by": "by",
        "than": "of|than",
        "completion": "when done|after completion|after i finish|after i finish it|when finished|once done",
        "with": "with",
        "time": "time",
        "it": "it",
        "done": "done",
    },
    requests={
        "verb": {
            1: "change|set|switch|make|put|update|adjust|edit|correct|replace",
            13: "move|reschedule|shift|push",
            2: "skip|miss|leave out|omit|no",
            3: "add|also add",
            4: "no more|no longer",
            5: "postpone|delay|push back|defer|put off|snooze",
            6: "bring forward|move up|pull forward",
            7: "pause|suspend|mute",
            8: "resume|unpause|reactivate",
            9: "cancel|call off|drop",
            10: "stop|end|scrap|dismiss|disable|deactivate|turn off|switch off|quit|abandon",
            11: "delete|remove|erase|get rid of",
            12: "trigger|run|retry|execute",
            14: "rename|retitle",
        },
        "separable": {
            2: "give … a miss",
            5: "push … back|put … off|set … back|move … back",
            6: "bring … forward|move … up|pull … forward|move … forward",
            7: "put … on hold|put … on ice|put … on pause",
            8: "start … up again|start … again|turn … back on|switch … back on|bring … back|pick … up again"
            "|take … up again",
            9: "call … off",
            10: "turn … off|switch … off",
        },
        "mark": {
            1: "instead of|rather than|later|earlier|only",
            2: "is off|are off|is cancelled|is canceled|won't happen|does not take place|doesn't take place"
            "|is not happening|isn't happening",
            3: "also|too|as well|in addition|additionally",
            4: f"no longer|no more|any more|anymore|any longer|not|{_NO_SEND}|{_NO_MAIL}|{_NO_PUSH}",
        },
        "lasting": (
            "from now on|permanently|for good|in future|in the future|going forward|from here on|as of now"
            "|always|instead"
        ),
        "once": "just this once|only this once|this once|just once|only this time|just this time|this one time",
        "padding": (
            "please|pls|can you|could you|would you|will you|can we|could we|i want to|i'd like to"
            "|i would like to|i need to|let's|let us|ok|okay|hey|hi|so|now|actually|sorry|altogether|entirely"
            "|completely|for now|for the time being|same time|at the same time|the same time|thanks|thank you"
            "|just|then|you can|go ahead and"
        ),
        "copula": (
            "is|are|is now|should be|will be|has to be|needs to be|must be|takes place|take place|starts at|begins at"
        ),
        "pronoun": "it|this|that|them|this one|that one",
        "joint": "to|onto|until|till|by|into",
        "link": "of|to|from|with|for|in|on",
        "list-verb": "list|show|show me|tell me|give me|read me|display|see",
        "agenda": (
            "have i got|do i have|i have|did i have|we have|is coming up|coming up|is scheduled|scheduled"
            "|is planned|planned|is due|due|is on my|on my calendar|on my schedule|on my agenda|on my list"
            "|is next|up next|my agenda|my schedule|is left|have i|my day|my week|in store|lined up|on today"
            "|on tomorrow|on this week|on for"
        ),
        "noun": "appointment|appointments|job|jobs|schedules|to dos|todos",
        "becomes": "to|as|into",
        "label-lead": {1: "with|and|where", 2: "the"},
        "label-is": "is",
        "its": "its|it's",
        "field": {
            1: "title|name",
            2: "description|details",
            3: "purpose",
            4: "category|kind|type",
            5: "delivery|channel|channels|delivery channel|delivery channels|way of delivery",
            6: "time|times|day|days|date|hour|schedule|time zone|timezone|zone",
        },
        "via": "by|via|per|through|using|as|to|on|in|into|with",
        "channel": {
            1: "e-mail|email|e-mails|emails|mail",
            2: "inbox",
            3: "push|push notification|push notifications|push message|push messages|phone|mobile",
            4: "webhook",
            5: "telegram",
            6: "slack",
        },
        "me": "me|to me",
        "send": f"send|deliver|e-mail|email|mail|push|{_NO_SEND}|{_NO_MAIL}|{_NO_PUSH}",
        "send-by": {
            1: f"e-mail me|email me|mail me|{_NO_MAIL}",
            3: f"push me|{_NO_PUSH}",
        },
    },
    month_first=None,
    day_endings=("day", "days"),
    past=(
        r"(?i)((i|we) )?(\w*[aeiou]\w*[^aeiou\W]ed|paid|sent|bought|sold|met|went|got|gave|took|told|wrote|made|did"
        r"|had|was|were|came|saw|lost|found|spoke|spent)( (the|a|an|my|our|his|her|their|it|to|with)\b|$)"
        r"|(\S+ )?(paid|sent|bought|sold|done)$"
    ),
    innocent=frozenset({"bald", "begin", "fast", "kello", "pazar", "sabah", "shopping", "steps"}),
)
