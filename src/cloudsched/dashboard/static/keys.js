// Keys. Single ones are off while somebody types, and can be switched off (WCAG 2.1.4).
import { refresh } from "./live.js";

const OFF = "cloudsched-keys-off";
const NAMES = { " ": "Space", "=": "+", "\u2212": "-" }; // as data-press names them, where that differs
let leader = false;

export function takeKeys() {
  const dialog = document.getElementById("keys");
  const box = document.getElementById("keys-off");
  box.checked = localStorage.getItem(OFF) === "1";
  box.addEventListener("change", () => localStorage.setItem(OFF, box.checked ? "1" : "0"));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.activeElement?.blur?.();
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !dialog.open) {
      event.preventDefault();
      return search();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (event.target.matches("input:not([type=checkbox]), select, textarea")) return;
    if (event.key === " " && event.target.closest("a, button, summary, [type=checkbox]")) return; // it presses that
    if (event.key.startsWith("Arrow") && event.target.closest("pre")) return; // it moves that
    if (event.key === "?") dialog.showModal();
    else if (walk(event.key)) event.preventDefault();
    else if (localStorage.getItem(OFF) === "1") return;
    else if (!press(event.key)) return;
    event.preventDefault();
  });
}

function press(key) {
  if (leader) {
    leader = false;
    const link = [...document.querySelectorAll(".views a")].find((each) => each.dataset.key === key);
    link?.click();
    return Boolean(link);
  }
  const actions = { g: () => (leader = true), "/": search, j: () => step(1), k: () => step(-1), u: utc, s: scale, r: again };
  if (key in actions) return actions[key](), true;
  if (key === "x" || key === "X") return choose(key === "X");
  const named = document.querySelector(`main [data-press~="${CSS.escape(NAMES[key] ?? key)}"]`);
  if (!named) return false;
  named.focus({ preventScroll: true });
  named.click();
  if (named.matches(".ask > summary") && named.parentElement.open) named.parentElement.querySelector("button").focus();
  return true;
}

// Ticks the row that has the focus; with Shift all from the last that was ticked up to here.
function choose(isRange) {
  const boxes = [...document.querySelectorAll("td.pick input")];
  const here = boxes.indexOf(document.activeElement.closest("tr")?.querySelector("td.pick input"));
  if (here < 0) return false;
  const from = isRange ? Math.max(0, boxes.findLastIndex((box, index) => index < here && box.checked)) : here;
  if (!isRange) boxes[here].click();
  else for (const box of boxes.slice(from, here + 1)) if (!box.checked) box.click();
  return true;
}

// The marks of a day are one tab stop: arrows move between them.
function walk(key) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
  const day = by && document.activeElement.closest(".week svg.c");
  if (!day) return false;
  const marks = [...day.querySelectorAll("a")].filter((each) => each.checkVisibility());
  marks[marks.indexOf(document.activeElement) + by]?.focus();
  return true;
}

const search = () => document.getElementById("find")?.select();
const scale = () => document.querySelector("[data-scale]")?.click();

function again() {
  document.activeElement?.blur?.();
  refresh();
}

function utc() {
  const links = [...document.querySelectorAll(".tools .seg a")];
  const other = links.find((link) => !link.hasAttribute("aria-current") && link.textContent === "UTC");
  (other ?? links.find((link) => !link.hasAttribute("aria-current")))?.click();
}

function step(by) {
  const rows = [...document.querySelectorAll("[data-row]")].filter((each) => each.checkVisibility());
  if (!rows.length) return;
  const index = rows.indexOf(document.activeElement);
  rows[Math.min(rows.length - 1, Math.max(0, index < 0 ? 0 : index + by))].focus();
}
