// While somebody types in a form, asks for what "Check" would answer, and shows what is read back and what is wrong.
import { morph } from "./morph.js";

const DELAY = 500;

export function preview() {
  const form = document.querySelector("form[data-preview]");
  if (!form) return;
  let timer = 0;
  let asked = new AbortController();
  const stop = () => {
    clearTimeout(timer);
    asked.abort();
  };
  form.addEventListener("submit", stop); // what is sent changes the task, and a later question would be refused
  form.addEventListener("input", () => {
    stop();
    timer = setTimeout(async () => {
      asked = new AbortController();
      const data = new URLSearchParams(new FormData(form));
      data.set("verb", "check");
      try {
        const response = await fetch(location.href, { method: "POST", body: data, signal: asked.signal });
        show(form, new DOMParser().parseFromString(await response.text(), "text/html"));
      } catch {
        // The next letter asks again, and so does the button.
      }
    }, DELAY);
  });
}

function show(form, fresh) {
  if (!fresh.querySelector("form[data-preview]")) return;
  for (const part of form.querySelectorAll("#preview, [data-error]")) {
    const next = fresh.getElementById(part.id);
    if (next && !part.contains(document.activeElement)) morph(part, next);
  }
  const zone = form.elements.timezone; // words may name their own
  if (zone && zone !== document.activeElement) zone.value = fresh.getElementById(zone.id)?.value ?? zone.value;
  for (const field of form.querySelectorAll("input, select, textarea")) {
    if (fresh.getElementById(field.id)?.getAttribute("aria-invalid")) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
}
