// Sessions and transcripts: what is opened stays open while the page changes.

import { keeping } from "./live.js";
import "./site.js";

keeping((replace) => {
  const opened = new Set([...document.querySelectorAll("[data-live] details[open]")].map(placeOf));
  const log = document.querySelector(".log");
  const from = log?.scrollTop;
  replace();
  document.querySelectorAll("[data-live] details").forEach((each) => {
    if (opened.has(placeOf(each))) each.open = true;
  });
  // At its newest line a transcript stays there; who reads what was said before is not moved.
  if (log) log.scrollTop = from;
});

// Where it stands in the page, by the message that it is part of.
function placeOf(details) {
  const message = details.closest("[id]");
  return `${message.id} ${[...message.querySelectorAll("details")].indexOf(details)}`;
}
