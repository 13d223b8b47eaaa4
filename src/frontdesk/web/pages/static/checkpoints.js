// After a restore the list says so, with the way to undo it, where what was there before had to be kept for that. Where
// a checkpoint had it already, that one is named, and the page shows what is different now.

import "./site.js";
import { main, say, words } from "./page.js";

document.addEventListener("acted", ({ target, detail: { checkpoint, safety } }) => {
  if (!target.matches("[data-restores]")) return;
  if (safety.before_restore !== checkpoint.id) {
    return say("ok", words("restored", { number: checkpoint.number, before: safety.number }));
  }
  const list = new URL(main.dataset.list, location.href);
  list.searchParams.set("restored", checkpoint.id);
  list.searchParams.set("undo", safety.id);
  location.assign(list);
});
