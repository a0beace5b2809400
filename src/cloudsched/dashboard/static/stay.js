// Links that show another part of the same page are followed in place: focus and scroll stay, and so does "back".
import { follow } from "./live.js";

let hasMoved = false;

export function stay() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-stay]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (document.body.dataset.address) return; // this page's address is not the document's
    event.preventDefault();
    const url = new URL(link.href);
    url.hash = "";
    hasMoved = true;
    history.pushState(null, "", url);
    follow(link.href);
  });
  addEventListener("popstate", () => hasMoved && follow(location.href));
}
