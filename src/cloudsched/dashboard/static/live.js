// Keeps a page live: asks whether anything has changed, and only then fetches the same address and changes in place what
// differs, without moving focus, scroll or selection.
import { morph, settle } from "./morph.js";
import { showNow } from "./relative.js";
import { showFresh, showStale } from "./stale.js";

const body = document.body;
const every = Number(body.dataset.every) * 1000;
export const BUSY_AFTER = 300; // milliseconds: what is quicker is not worth a word
const [SLOW, LONGEST, LONGEST_FORM] = [5000, 20_000, 60_000]; // without an answer for so long it is said, or given up
const main = document.getElementById("main");
let failures = 0;
let timer = 0;
let looking = Promise.resolve();
let seen = Date.now();
let cursor = body.dataset.cursor || null; // of the latest change that the page shows
let held = null; // a page of which something waits until pointer, focus or selection are gone
let calm = "";
let saidUntil = 0; // what a form has done stays to be read, though the page goes on

const address = () => (body.dataset.address ? new URL(body.dataset.address, location.href).href : location.href);

document.addEventListener("ask", refresh);

export function start() {
  if (!every) return; // a form: what somebody types stays as it is
  calm = document.getElementById("live")?.textContent ?? "";
  schedule(every);
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : lookNow()));
}

export function setBusy(isBusy) {
  if (isBusy) main.setAttribute("aria-busy", "true");
  else main.removeAttribute("aria-busy");
}

function schedule(delay) {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(lookNow, delay);
}

function lookNow() {
  looking = Promise.all([looking, look()]).then(() => null); // another one may still be under way
  return looking;
}

async function look() {
  clearTimeout(timer);
  if (!every) return;
  const slow = setTimeout(showStale, SLOW, 0);
  try {
    const response = await askForNews();
    const news = response.ok ? await response.json() : { cursor: null };
    if (news.iso) showNow(news);
    if (news.cursor === null || news.cursor !== cursor) await fetchPage();
    else if (held) show(held);
    cursor ??= news.cursor;
    failures = 0;
    showFresh();
    if (!held) say(calm);
    schedule(every);
  } catch {
    fail();
  }
  clearTimeout(slow);
  document.dispatchEvent(new Event("looked"));
}

function askForNews() {
  const shown = new URL(address());
  const question = new URL(`${body.dataset.root}changes`, location.href);
  question.searchParams.set("at", shown.pathname.slice(new URL(body.dataset.root, location.href).pathname.length));
  question.searchParams.set("open", main.querySelector("[data-open]") ? "1" : "");
  question.searchParams.set("tz", document.getElementById("clock")?.dataset.zone ?? ""); // a task's page has its own
  return ask(question);
}

// Says that no answer came, and since when what is shown may be wrong; asks again, less and less often.
export function fail(what = "") {
  failures += 1;
  const wait = Math.min(30, 2 ** failures);
  say(`Not live since ${document.querySelector("#clock time")?.textContent ?? "a while ago"}.`);
  showStale(every ? wait : null, what);
  if (every) schedule(wait * 1000);
}

// Goes somewhere only if there is an answer to be had: the browser's own page of errors would take the place of this one.
export async function reach(go, sent = "") {
  const busy = setTimeout(setBusy, BUSY_AFTER, true);
  try {
    await askForNews();
    go();
  } catch {
    fail(`What you chose was not opened${sent}: this page is kept.`);
  }
  clearTimeout(busy);
  setBusy(false);
}

export async function refresh() {
  cursor = null;
  await lookNow();
}

async function ask(url) {
  const response = await fetch(url, { headers: { Accept: "text/html, application/json" }, signal: AbortSignal.timeout(LONGEST) });
  if (response.status >= 500) throw new Error(String(response.status));
  return response;
}

async function fetchPage() {
  show(await (await ask(address())).text());
}

export async function submit(form, button) {
  const data = new FormData(form, button);
  const dots = document.createTextNode("…");
  button?.append(dots);
  setBusy(true);
  await looking; // it may ask for the very task that this deletes
  if ("watch" in form.dataset) schedule(every); // what happens meanwhile shows meanwhile
  else clearTimeout(timer);
  try {
    const body = new URLSearchParams(data);
    const response = await fetch(form.action, { method: "POST", body, signal: AbortSignal.timeout(LONGEST_FORM) });
    const text = await response.text();
    if (response.status >= 500) throw new Error(findWords(text));
    clearTimeout(timer);
    await looking; // what it has asked for is older than this
    const here = new URL(address()).pathname;
    const isHere = new URL(response.url).pathname === here;
    const { pathname, search } = new URL(form.action); // a search names the one run that was moved
    const isAboutThis = pathname.startsWith(`${here}/verbs/`); // which is gone if this is left
    if (response.ok && isAboutThis && (search || !isHere)) {
      location.assign(response.url);
      return;
    }
    if (response.ok ? isHere : !every) show(text, true);
    else {
      await refresh();
      repeat(parse(text), response);
    }
    main.querySelector(".note[role]")?.scrollIntoView({ block: "nearest" });
    if (every) schedule(every);
  } catch (error) {
    const words = error.name === "Error" ? `${error.message} ` : "";
    fail(`${words}What you sent may have been done, or not: this page and what you typed are kept. Look before you send it again.`);
  }
  setBusy(false);
  dots.remove();
  if (!main.querySelector("#said [role=alert]")) button?.closest("details.ask")?.removeAttribute("open"); // it is answered
}

// What the server says of its trouble.
function findWords(text) {
  const notes = parse(text).querySelectorAll("main .note p:not(.row)");
  return [...notes].map((each) => each.textContent.trim()).join(" ");
}

const parse = (text) => new DOMParser().parseFromString(text, "text/html");

function say(text) {
  const live = document.getElementById("live");
  if (live && text && live.textContent !== text) live.textContent = text;
}

function show(text, isAsked = false) {
  const fresh = parse(text);
  const next = fresh.getElementById("main");
  if (!next) throw new Error("not a page");
  cursor = fresh.body.dataset.cursor || null;
  if (main.hasAttribute("aria-busy")) next.setAttribute("aria-busy", "true");
  const live = [document.getElementById("live"), next.querySelector("#live")];
  if (live[0] && live[1]) live[1].textContent = live[0].textContent; // it speaks only when it changes
  const said = main.querySelector("#said");
  if (isAsked) saidUntil = Date.now() + 10_000;
  else if (said && Date.now() < saidUntil) next.querySelector("#said")?.replaceWith(said.cloneNode(true));
  let waiting = 0;
  for (const list of isAsked ? [] : next.querySelectorAll("tbody")) waiting += settle(list, main);
  const isWhole = morph(main, next);
  held = isWhole && !waiting ? null : text;
  if (waiting) say(`${waiting} more. They show when you leave the list, or press r.`);
  document.title = fresh.title;
  document.dispatchEvent(new Event("shown"));
  for (const part of [".clock", ".views", ".foot"]) {
    const [now, then] = [document.querySelector(part), fresh.querySelector(part)];
    if (now && then) morph(now, then);
  }
}

// What was done is said here, too, though the answer is another view's. A refusal stays until another form is sent.
function repeat(answer, { ok, url }) {
  const note = answer.querySelector(ok ? "#said .note" : "main .note");
  for (const each of note?.querySelectorAll(".row, [data-plain]") ?? []) each.remove(); // this page is kept
  for (const form of note?.querySelectorAll("form") ?? []) form.action = new URL(form.getAttribute("action"), url).href;
  main.querySelector("#said").replaceChildren(...(note ? [document.importNode(note, true)] : []));
  saidUntil = ok ? Date.now() + 10_000 : Infinity;
}
