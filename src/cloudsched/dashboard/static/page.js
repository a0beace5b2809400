// What every page does with script: stays live, sends forms without leaving, and takes keys.
import { takeKeys } from "./keys.js";
import { followLinks } from "./links.js";
import { BUSY_AFTER, setBusy, start, submit } from "./live.js";
import { preview } from "./preview.js";

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method === "post" && !("plain" in form.dataset)) {
    event.preventDefault();
    submit(form, event.submitter);
  }
});
let busy = 0;
addEventListener("beforeunload", () => (busy = setTimeout(setBusy, BUSY_AFTER, true)));
addEventListener("pageshow", () => {
  clearTimeout(busy);
  setBusy(false);
});
// What is cut is whole under the pointer.
function nameCut() {
  for (const each of document.querySelectorAll(".cut tbody :is(th > a, small), .two, .lines, .tag, .wf a")) {
    const isCut = each.scrollHeight > each.clientHeight || each.scrollWidth > each.clientWidth;
    if (isCut) each.title = each.textContent.trim().replace(/\s+/g, " ");
  }
}
document.addEventListener("shown", nameCut);
addEventListener("resize", nameCut);
nameCut();
takeKeys();
preview();
followLinks();
start();
