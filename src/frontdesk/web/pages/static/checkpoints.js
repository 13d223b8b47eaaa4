// After a restore the list says so, with the way to undo it, where what was there before had to be kept for that.

import "./site.js";
import { main } from "./page.js";

document.addEventListener("acted", ({ target, detail }) => {
  if (!target.matches("[data-restores]") || detail.safety.before_restore !== detail.checkpoint.id) return;
  const list = new URL(main.dataset.list, location.href);
  list.searchParams.set("restored", detail.checkpoint.id);
  list.searchParams.set("undo", detail.safety.id);
  location.assign(list);
});
