"use strict";

// The pages of approvers. What is to be sent stands in data attributes, put there by the server.

const outcome = document.getElementById("outcome");

async function send(path, said) {
  const answer = await fetch(path, {
    method: "POST",
    credentials: "same-origin",
    redirect: "error",
    headers: { "content-type": "application/json", "x-frontdesk-page": "1" },
    body: JSON.stringify(said),
  });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(told.detail || `The server answered ${answer.status}.`);
  return told;
}

async function attempt(act) {
  const buttons = [...document.querySelectorAll("button")];
  buttons.forEach((button) => (button.disabled = true));
  outcome.className = "";
  outcome.textContent = "One moment …";
  try {
    await act();
  } catch (error) {
    outcome.className = "failed";
    outcome.textContent = error.message;
    buttons.forEach((button) => (button.disabled = false));
  }
}

function decide(button) {
  const asked = button.closest("[data-decision]");
  const reason = document.getElementById("reason").value.trim();
  return attempt(async () => {
    const told = await send(asked.dataset.decision, {
      approves: button.dataset.approves === "true",
      digest: asked.dataset.digest,
      reason: reason || null,
      t: asked.dataset.link || null,
    });
    outcome.className = told.status;
    outcome.textContent = told.message;
    asked.hidden = true;
  });
}

document.querySelectorAll("button[data-approves]").forEach((button) => {
  button.addEventListener("click", () => decide(button));
});

document.getElementById("sign-in")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const token = document.getElementById("token");
  attempt(async () => {
    await send(event.target.dataset.session, { token: token.value });
    token.value = "";
    location.assign(location.pathname);
  });
});

document.getElementById("sign-out")?.addEventListener("click", (event) => {
  attempt(async () => {
    await send(event.target.dataset.session, {});
    location.assign(location.pathname);
  });
});
