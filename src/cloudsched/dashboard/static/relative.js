// Times as the server writes them: relative, in two units that are cut and not rounded (times.py).
const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
const ALONE = { d: 30, min: 10 }; // from so many on, the smaller unit is left out
const BLANK = "\u00a0";

export function writeRelative(milliseconds) {
  if (!milliseconds) return "now";
  return milliseconds > 0 ? `in ${writeDuration(milliseconds / 1000)}` : `${writeDuration(-milliseconds / 1000)} ago`;
}

function writeDuration(seconds) {
  if (seconds >= 0.1 && seconds < 10 && seconds % 1) return `${(Math.floor(seconds * 10) / 10).toFixed(1)}${BLANK}s`;
  const at = UNITS.findIndex(([, size]) => seconds >= size);
  const [[unit, size], [small, part] = ["", 1]] = UNITS.slice(at); // the last of them if there is none
  const [large, rest] = [Math.floor(seconds / size), Math.floor((seconds % size) / part)];
  const whole = `${large.toLocaleString("en-US")}${BLANK}${unit}`;
  return !small || !rest || large >= ALONE[unit] ? whole : `${whole}${BLANK}${rest}${BLANK}${small}`;
}

// Shows what time it is at the API, and how far away from it the times on the page are.
export function showNow({ iso, clock, mode }) {
  const time = document.querySelector("#clock time");
  if (!time) return;
  const now = Date.parse(iso);
  set(time, clock);
  time.setAttribute("datetime", iso);
  const tag = document.querySelector("#clock .tag");
  if (tag && mode) set(tag, `local clock ${mode}`);
  for (const each of document.querySelectorAll("main time.t")) set(each, writeRelative(Date.parse(each.dateTime) - now));
}

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
