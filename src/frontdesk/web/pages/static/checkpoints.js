// After a restore the list says so, with the way to undo it.

import "./site.js";
import { main } from "./page.js";

document.addEventListener("acted", ({ target, detail }) => {
  if (!target.matches("[data-restores]")) return;
  const list = new URL(main.dataset.list, location.href);
  list.searchParams.set("restored", detail.checkpoint.id);
  list.searchParams.set("undo", detail.safety.id);
  location.assign(list);
});
