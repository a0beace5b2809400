// Times as the server writes them: relative, in two units that are cut and not rounded (times.py).
const [MINUTE, HOUR, DAY] = [60, 3600, 86400];
const BLANK = "\u00a0";

export function writeRelative(milliseconds) {
  if (!milliseconds) return "now";
  return milliseconds > 0 ? `in ${writeDuration(milliseconds / 1000)}` : `${writeDuration(-milliseconds / 1000)} ago`;
}

function writeDuration(seconds) {
  const whole = Math.floor(seconds);
  if (whole < MINUTE) {
    const hasTenths = seconds >= 0.1 && seconds < 10 && seconds !== whole;
    return `${hasTenths ? (Math.floor(seconds * 10) / 10).toFixed(1) : whole}${BLANK}s`;
  }
  if (whole < HOUR) return two(Math.floor(whole / MINUTE), "min", whole % MINUTE, "s", whole >= 10 * MINUTE);
  if (whole < DAY) return two(Math.floor(whole / HOUR), "h", Math.floor((whole % HOUR) / MINUTE), "min", false);
  return two(Math.floor(whole / DAY), "d", Math.floor((whole % DAY) / HOUR), "h", whole >= 30 * DAY);
}

function two(large, largeUnit, small, smallUnit, alone) {
  const first = `${large.toLocaleString("en-US")}${BLANK}${largeUnit}`;
  return alone || !small ? first : `${first}${BLANK}${small}${BLANK}${smallUnit}`;
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
