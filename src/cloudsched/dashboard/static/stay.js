// Links that show another part of the same page are followed in place: focus and scroll stay, and so does "back".
import { follow } from "./live.js";

let hasMoved = false;

export function stay() {
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a[data-stay]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (document.body.dataset.address) return; // this page's address is not the document's
    event.preventDefault();
    const url = new URL(link.href);
    url.hash = "";
    const before = location.href;
    hasMoved = true;
    history.pushState(null, "", url);
    if (!(await follow()) && location.href === url.href) history.replaceState(null, "", before);
  });
  addEventListener("popstate", () => hasMoved && follow());
}
