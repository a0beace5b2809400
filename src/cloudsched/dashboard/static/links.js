// Links and forms that fail keep the page: before the browser leaves it, the page asks whether there is an answer to be
// had.
import { reach } from "./live.js";

const passed = new WeakSet();

export function followLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const url = new URL(link.getAttribute("href"), document.baseURI);
    const isPart = url.hash && url.href.split("#")[0] === location.href.split("#")[0];
    if (isPart || link.target || link.hasAttribute("download") || url.origin !== location.origin) return;
    event.preventDefault();
    reach(() => location.assign(url));
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method === "dialog" || passed.delete(form)) return;
    event.preventDefault();
    reach(() => {
      passed.add(form);
      form.requestSubmit(event.submitter);
    }, ", and nothing was sent");
  });
}
