// What every page does with script: stays live, remembers the zone, sends forms without leaving, and takes keys.
import { bulk } from "./bulk.js";
import { BUSY_AFTER, refresh, setBusy, start, submit } from "./live.js";
import { keep } from "./keep.js";
import { takeKeys } from "./keys.js";
import { preview } from "./preview.js";
import { stay } from "./stay.js";

const zone = `cloudsched-zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
if (!document.cookie.split("; ").includes(zone)) {
  const path = new URL(document.body.dataset.root, location.href).pathname;
  document.cookie = `${zone}; path=${path}; SameSite=Strict; max-age=31536000`;
  refresh();
}
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
document.querySelector(".views [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
takeKeys();
preview();
stay();
bulk();
keep();
start();
