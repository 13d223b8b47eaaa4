// What became of somebody, by their name.

import "./site.js";
import { say, words } from "./page.js";

document.addEventListener("acted", ({ target, detail }) => {
  if (detail === false) say("bad", words("people_nothing"));
  else if (detail.principal) say("ok", words("people_let_in", { who: detail.principal, role: detail.role }));
  if (target.matches("[data-clears]")) target.reset();
});
