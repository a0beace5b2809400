// Keeps a page live: fetches the same address, and changes in place what differs, without moving focus or selection.
const body = document.body;
const every = Number(body.dataset.every) * 1000;
let failures = 0;
let timer = 0;
let seen = Date.now();

const address = () => (body.dataset.address ? new URL(body.dataset.address, location.href).href : location.href);

export function start() {
  if (!every) return; // a form: what somebody types stays as it is
  schedule(every);
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
}

function schedule(delay) {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(refresh, delay);
}

export async function refresh() {
  clearTimeout(timer);
  if (!every) return;
  try {
    const response = await fetch(address(), { headers: { Accept: "text/html" } });
    if (response.status >= 500) throw new Error(String(response.status));
    show(await response.text());
    failures = 0;
    seen = Date.now();
    schedule(every);
  } catch {
    failures += 1;
    const wait = Math.min(30, 2 ** failures);
    say(`Not live since ${new Date(seen).toLocaleTimeString()}. It is asked again in ${wait} s.`);
    schedule(wait * 1000);
  }
}

export async function submit(form, button) {
  const data = new FormData(form, button);
  const label = button?.textContent;
  if (button) button.textContent = `${label}…`;
  try {
    const response = await fetch(form.action, { method: "POST", body: new URLSearchParams(data) });
    const text = await response.text();
    if (response.ok && response.redirected && new URL(response.url).pathname !== location.pathname && "go" in form.dataset) {
      location.assign(response.url);
      return;
    }
    show(text, { only: response.ok ? sameView(response.url) : true });
    if (response.ok && !sameView(response.url)) await refresh();
  } catch {
    say("The request did not arrive. Nothing was changed here.");
  }
  if (button?.isConnected && button.textContent === `${label}…`) button.textContent = label;
}

const sameView = (url) => new URL(url).pathname === new URL(address()).pathname;

function say(text) {
  const live = document.getElementById("live");
  if (live && live.textContent !== text) live.textContent = text;
}

function show(text, { only = true } = {}) {
  if (!only) return;
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const main = document.getElementById("main");
  const next = fresh.getElementById("main");
  if (!next) throw new Error("not a page");
  for (const list of next.querySelectorAll("tbody")) settle(list, main);
  morph(main, next);
  document.title = fresh.title;
  for (const part of [".clock", ".views", ".foot"]) {
    const [now, then] = [document.querySelector(part), fresh.querySelector(part)];
    if (now && then) morph(now, then);
  }
}

// Nothing moves under the pointer: while it, or the focus, is in a list, its rows keep their order and new ones wait.
function settle(list, main) {
  const keys = (rows) => [...rows].map((row) => row.dataset.key);
  const caption = list.closest("table").caption?.textContent;
  const old = [...main.querySelectorAll("tbody")].find((each) => each.closest("table").caption?.textContent === caption);
  if (!old || !old.matches(":hover, :focus-within") || !keys(old.rows).every(Boolean)) return;
  const fresh = new Map([...list.rows].map((row) => [row.dataset.key, row]));
  const waiting = [...fresh.keys()].filter((key) => !keys(old.rows).includes(key)).length;
  list.replaceChildren(...[...old.rows].map((row) => fresh.get(row.dataset.key) ?? row.cloneNode(true)));
  if (waiting) queueMicrotask(() => say(`${waiting} new. They show when you leave the list, or press r.`));
}

function morph(now, next) {
  if (now.nodeType !== next.nodeType || now.nodeName !== next.nodeName) {
    now.replaceWith(document.importNode(next, true));
    return;
  }
  if (now.nodeType !== Node.ELEMENT_NODE) {
    if (now.nodeValue !== next.nodeValue) now.nodeValue = next.nodeValue;
    return;
  }
  if (now.matches("input, textarea, select")) return; // what somebody types is theirs
  const kept = now.nodeName === "DETAILS" ? ["open"] : now.id === "main" ? ["tabindex"] : [];
  for (const { name, value } of next.attributes) {
    if (!kept.includes(name) && now.getAttribute(name) !== value) now.setAttribute(name, value);
  }
  for (const { name } of [...now.attributes]) {
    if (!kept.includes(name) && !next.hasAttribute(name)) now.removeAttribute(name);
  }
  if ("keep" in now.dataset) return;
  const [old, fresh] = [[...now.childNodes], [...next.childNodes]];
  if (old.some((node) => node.dataset?.key)) {
    morphKeyed(now, old, fresh);
    return;
  }
  fresh.forEach((node, index) => (old[index] ? morph(old[index], node) : now.append(document.importNode(node, true))));
  for (const node of old.slice(fresh.length)) node.remove();
}

function morphKeyed(parent, old, fresh) {
  const known = new Map(old.filter((node) => node.dataset?.key).map((node) => [node.dataset.key, node]));
  const wanted = fresh.filter((node) => node.nodeType === Node.ELEMENT_NODE);
  const rows = wanted.map((node) => {
    const row = known.get(node.dataset.key);
    if (!row) return document.importNode(node, true);
    morph(row, node);
    return row;
  });
  for (const node of old) if (!rows.includes(node)) node.remove();
  rows.forEach((row, index) => {
    if (parent.children[index] !== row) parent.insertBefore(row, parent.children[index] ?? null);
  });
}
