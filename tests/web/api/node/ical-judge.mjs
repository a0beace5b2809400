// Reads a list of {ics, end} in JSON; writes for each the instants before `end` that ical.js finds, in seconds.
import { readFileSync } from "node:fs";
import ICAL from "ical.js";

function findInstants({ ics, end }) {
  ICAL.TimezoneService.reset();
  const calendar = new ICAL.Component(ICAL.parse(ics));
  for (const zone of calendar.getAllSubcomponents("vtimezone")) ICAL.TimezoneService.register(zone);
  const found = new Set();
  for (const component of calendar.getAllSubcomponents("vevent")) {
    const event = new ICAL.Event(component);
    if (!event.isRecurring()) {
      found.add(event.startDate.toUnixTime());
      continue;
    }
    const occurrences = event.iterator();
    for (let next = occurrences.next(); next; next = occurrences.next()) {
      if (next.toUnixTime() >= end) break;
      found.add(next.toUnixTime());
    }
  }
  return [...found].filter((at) => at < end).sort((a, b) => a - b);
}

process.stdout.write(
  JSON.stringify(
    JSON.parse(readFileSync(process.argv[2], "utf8")).map((ask) => {
      try {
        return findInstants(ask);
      } catch (error) {
        return String(error);
      }
    }),
  ),
);
