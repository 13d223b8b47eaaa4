// What became of somebody, by their name. A role that is chosen in the list stays chosen while the list changes.

import { keeping } from "./live.js";
import { say, words } from "./page.js";
import "./site.js";

keeping((replace) => {
  const selects = () => [...document.querySelectorAll("#known-people form select")];
  const chosen = selects().filter((each) => !each.selectedOptions[0].defaultSelected);
  replace();
  chosen.forEach(({ form, value }) => {
    const same = selects().find((each) => each.form.dataset.said === form.dataset.said);
    if (same) same.value = value;
  });
});

document.addEventListener("acted", ({ target, detail }) => {
  if (detail === false) say("bad", words("people_nothing"));
  else if (detail.principal) say("ok", words("people_let_in", { who: detail.principal, role: detail.role }));
  if (target.matches("[data-clears]")) target.reset();
});
