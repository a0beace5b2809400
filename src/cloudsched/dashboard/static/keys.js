// Keys. Single ones are off while somebody types, and can be switched off (WCAG 2.1.4).
import { refresh } from "./live.js";

const OFF = "cloudsched-keys-off";
let leader = false;

export function takeKeys() {
  const dialog = document.getElementById("keys");
  const box = document.getElementById("keys-off");
  box.checked = localStorage.getItem(OFF) === "1";
  box.addEventListener("change", () => localStorage.setItem(OFF, box.checked ? "1" : "0"));
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (key === "Escape") document.activeElement.blur();
    if (dialog.open || event.altKey) return;
    if (event.ctrlKey || event.metaKey) {
      if (key.toLowerCase() !== "k") return;
      search();
    } else if (target.matches("input:not([type=checkbox]), select, textarea")) return;
    else if (key === "?") dialog.showModal();
    else if (box.checked || !press(key, target)) return;
    event.preventDefault();
  });
}

// Returns whether the key does anything here.
function press(key, target) {
  if (leader) {
    leader = false;
    const link = document.querySelector(`.views [data-key="${CSS.escape(key)}"]`);
    link?.click();
    return link;
  }
  const actions = { g: () => (leader = true), "/": search, j: () => step(1), k: () => step(-1), u: utc, r: again, x: choose, X: chooseTo };
  if (key in actions) return actions[key](), true;
  if (key === " " && target.closest("a, button, summary, [type=checkbox]")) return false; // it presses that
  if (key.startsWith("Arrow") && target.closest("pre")) return false; // it moves that
  const named = document.querySelector(`main [data-press~="${CSS.escape(key === " " ? "Space" : key)}"]`);
  named?.focus({ preventScroll: true });
  named?.click();
  if (named?.matches(".ask[open] > summary")) named.parentElement.querySelector("button").focus();
  return named;
}

const search = () => document.getElementById("find").select();
const list = (what) => [...document.querySelectorAll(what)].filter((each) => each.checkVisibility());
const find = () => document.activeElement.closest("tr")?.querySelector("td.pick input");
const choose = () => find()?.click();

// Ticks all from the last row that was ticked up to the one that has the focus.
function chooseTo() {
  const boxes = list("td.pick input");
  const here = boxes.indexOf(find());
  const from = Math.max(0, boxes.findLastIndex((box, index) => index < here && box.checked));
  for (const box of boxes.slice(from, here + 1)) if (!box.checked) box.click();
}

function again() {
  document.activeElement.blur(); // what waited for that shows, too
  refresh();
}

function utc() {
  const links = list(".tools .seg a:not([aria-current])");
  (links.find((link) => link.textContent === "UTC") ?? links[0])?.click();
}

function step(by) {
  const rows = list("[data-row]");
  const index = rows.indexOf(document.activeElement);
  rows[Math.min(rows.length - 1, Math.max(0, index < 0 ? 0 : index + by))]?.focus();
}
