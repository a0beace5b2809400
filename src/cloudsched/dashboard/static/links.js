// Links and forms that fail keep the page: before the browser leaves it, the page asks whether there is an answer to be
// had. Links that show another part of the same page are followed in place: focus and scroll stay, and so does "back".
import { follow, reach } from "./live.js";

const passed = new WeakSet();
let hasMoved = false;

export function followLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const url = new URL(link.getAttribute("href"), document.baseURI);
    const isPart = url.hash && url.href.split("#")[0] === location.href.split("#")[0];
    if (isPart || link.target || link.hasAttribute("download") || url.origin !== location.origin) return;
    event.preventDefault();
    if ("stay" in link.dataset && !document.body.dataset.address) stay(url); // else the address is not the document's
    else reach(() => location.assign(url), false);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method === "dialog" || passed.delete(form)) return;
    event.preventDefault();
    reach(() => {
      passed.add(form);
      form.requestSubmit(event.submitter);
    }, true);
  });
  addEventListener("popstate", () => hasMoved && follow());
}

async function stay(url) {
  url.hash = "";
  const before = location.href;
  hasMoved = true;
  history.pushState(null, "", url);
  if (!(await follow()) && location.href === url.href) history.replaceState(null, "", before);
}
