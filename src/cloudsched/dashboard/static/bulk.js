// Buttons for many tasks follow the rows that are ticked: what none of them allows is dashed, and says why.
export function bulk() {
  document.addEventListener("change", follow);
  document.addEventListener("shown", follow);
  document.addEventListener("submit", (event) => {
    if (event.submitter?.matches("#bulk [aria-disabled]")) event.preventDefault();
  });
  follow();
}

function follow() {
  const form = document.getElementById("bulk");
  if (!form) return;
  const rows = [...document.querySelectorAll("tr[data-verbs]")];
  const ticked = rows.filter((row) => row.querySelector("td.pick input")?.checked);
  const isFiltered = "filtered" in form.dataset;
  const asked = ticked.length || !isFiltered ? ticked : rows;
  const verbs = new Set(asked.flatMap((row) => row.dataset.verbs.split(" ")));
  const refused = [];
  for (const button of form.querySelectorAll("button")) {
    const isPossible = verbs.has(button.value) || (!ticked.length && isFiltered && "more" in form.dataset);
    if (isPossible) button.removeAttribute("aria-disabled");
    else button.setAttribute("aria-disabled", "true");
    if (!isPossible) refused.push(button.textContent.trim().replace("…", ""));
  }
  const which = ticked.length ? `${ticked.length === 1 ? "the ticked task" : `any of the ${ticked.length} ticked tasks`}` : "any task here";
  const note = document.getElementById("bulk-why");
  const why = !ticked.length && !isFiltered ? note.dataset.why : refused.length ? `Not possible now for ${which}: ${refused.join(", ").toLowerCase()}.` : "";
  if (note.textContent !== why) note.textContent = why;
}
