// A secret is in the answer to the wish for it alone: it is shown here, once, and nowhere kept.

import "./site.js";
import { say, words } from "./page.js";

document.addEventListener("acted", ({ target, detail }) => {
  if (detail === false) say("bad", words("passes_nothing"));
  const secret = detail.token ?? detail.url;
  if (!secret) return;
  const shown = document.getElementById("given-secret");
  shown.textContent = secret;
  document.getElementById("given").hidden = false;
  shown.focus();
  if (target.matches("[data-clears]")) target.reset();
});
