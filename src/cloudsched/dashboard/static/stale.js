// Says loudest of all that what the page shows may be wrong: no answer has come since.
let note = null;
let said = "";
let ticking = 0;

// `wait` is in how many seconds the page asks again: 0 if it is asking, null if it never does by itself, as a form.
// `what` is what failed last.
export function showStale(wait, what = "") {
  clearInterval(ticking);
  if (!note) {
    const shown = document.querySelector("#clock time")?.textContent ?? "";
    note = document.createElement("div");
    note.className = "gone";
    note.innerHTML = '<p role="alert"></p><p></p><button class="btn small">Try now</button>';
    const since = wait === null ? "" : ` since ${shown}`; // the page's own clock and zone, not the browser's
    said = `No answer${since}. This page is from ${shown} and may be out of date.`;
    note.firstChild.textContent = said;
    note.lastChild.hidden = wait === null;
    note.lastChild.addEventListener("click", () => document.dispatchEvent(new Event("ask")));
    document.querySelector(".top").append(note); // sticks with the bar, however high that is
    document.body.classList.add("stale");
  }
  if (what) note.firstChild.textContent = `${said} ${what}`; // the last takes the place of what was said before
  if (wait === null) return;
  let left = wait;
  const count = () => {
    note.children[1].textContent = left > 0 ? `Trying again in ${left} s.` : "Trying again.";
    left -= 1;
  };
  count();
  if (wait) ticking = setInterval(count, 1000);
}

export function showFresh() {
  clearInterval(ticking);
  note?.remove();
  note = null;
  document.body.classList.remove("stale");
}
