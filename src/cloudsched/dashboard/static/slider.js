// The slider of Time: moving only plans, and says where it stands; Enter or the button goes.
const STEPS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 24, PageDown: -24 };

function say() {
  const slider = document.getElementById("to");
  const planned = document.getElementById("planned");
  if (!slider || !planned) return;
  const format = new Intl.DateTimeFormat("en-GB", {
    weekday: "short", day: "2-digit", month: "short", year: "numeric",
    hour: "2-digit", minute: "2-digit", timeZone: planned.dataset.zone, timeZoneName: "longOffset",
  });
  const parts = format.formatToParts(new Date(Number(slider.value) * 1000));
  const part = Object.fromEntries(parts.map(({ type, value }) => [type, value]));
  const offset = part.timeZoneName.replace(/^GMT/, "").replace(":", "") || "+0000";
  const text = `${part.weekday} ${part.day} ${part.month} ${part.year} ${part.hour}:${part.minute} ${offset}`;
  planned.textContent = text;
  slider.setAttribute("aria-valuetext", text);
}

// At the document: a page that stays live may put another slider in the place of this one.
export function plan() {
  document.addEventListener("input", ({ target }) => target.id === "to" && say());
  document.addEventListener("keydown", (event) => {
    const slider = event.target;
    if (slider.id !== "to") return;
    if (event.key === "Enter") slider.form.requestSubmit(slider.form.querySelector("button"));
    const hours = STEPS[event.key];
    if (event.key !== "Enter" && !hours) return;
    event.preventDefault();
    if (hours) slider.value = Number(slider.value) + hours * 3600;
    say();
  });
  say();
}
