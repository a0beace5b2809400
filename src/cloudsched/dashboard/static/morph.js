// Changes a page into a fresh one in place: only what differs is touched, so that focus, scroll and selection stay.

// Returns whether all of it could be changed: what is selected stays as it is until it no longer is.
export function morph(now, next) {
  if (now.nodeType !== next.nodeType || now.nodeName !== next.nodeName) {
    if (isSelected(now)) return false;
    now.replaceWith(document.importNode(next, true));
    return true;
  }
  if (now.nodeType !== Node.ELEMENT_NODE) {
    if (now.nodeValue === next.nodeValue) return true;
    if (isSelected(now)) return false;
    now.nodeValue = next.nodeValue;
    return true;
  }
  if (now.matches("input:not([type=hidden]), textarea, select")) return true; // what somebody types is theirs
  copyAttributes(now, next);
  const [old, fresh] = [[...now.childNodes], [...next.childNodes]];
  if (old.some((node) => node.dataset?.key)) return morphKeyed(now, old, fresh);
  let isWhole = true;
  fresh.forEach((node, index) => {
    if (old[index]) isWhole = morph(old[index], node) && isWhole;
    else now.append(document.importNode(node, true));
  });
  for (const node of old.slice(fresh.length)) {
    if (isSelected(node)) isWhole = false;
    else node.remove();
  }
  return isWhole;
}

// Nothing moves under the pointer: while it, the focus or a selection is in a list, its rows keep their order, and new
// ones wait. Returns how many wait.
export function settle(list, main) {
  const keys = (rows) => [...rows].map((row) => row.dataset.key);
  const caption = list.closest("table").caption?.firstChild?.textContent;
  const lists = [...main.querySelectorAll("tbody")];
  const old = lists.find((each) => each.closest("table").caption?.firstChild?.textContent === caption);
  if (!old || !keys(old.rows).every(Boolean)) return 0;
  if (!old.matches(":hover, :focus-within") && !isSelected(old)) return 0;
  const fresh = new Map([...list.rows].map((row) => [row.dataset.key, row]));
  const waiting = [...fresh.keys()].filter((key) => !keys(old.rows).includes(key)).length;
  list.replaceChildren(...[...old.rows].map((row) => fresh.get(row.dataset.key) ?? row.cloneNode(true)));
  return waiting;
}

function isSelected(node) {
  const selection = getSelection();
  return !selection.isCollapsed && selection.containsNode(node, true);
}

function copyAttributes(now, next) {
  const kept = now.nodeName === "DETAILS" ? ["open"] : now.id === "main" ? ["tabindex"] : [];
  for (const { name, value } of next.attributes) {
    if (!kept.includes(name) && now.getAttribute(name) !== value) now.setAttribute(name, value);
  }
  for (const { name } of [...now.attributes]) {
    if (!kept.includes(name) && !next.hasAttribute(name)) now.removeAttribute(name);
  }
}

function morphKeyed(parent, old, fresh) {
  const known = new Map(old.filter((node) => node.dataset?.key).map((node) => [node.dataset.key, node]));
  const wanted = fresh.filter((node) => node.nodeType === Node.ELEMENT_NODE);
  let isWhole = true;
  const rows = wanted.map((node) => {
    const row = known.get(node.dataset.key);
    if (!row) return document.importNode(node, true);
    isWhole = morph(row, node) && isWhole;
    return row;
  });
  for (const node of old) if (!rows.includes(node)) node.remove();
  rows.forEach((row, index) => {
    if (parent.children[index] !== row) parent.insertBefore(row, parent.children[index] ?? null);
  });
  return isWhole;
}
