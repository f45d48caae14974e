// What is pressed in an answer goes to the server as what it asks for; see verdict_card.py.
element.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button || !element.contains(button)) return;
  if (button.dataset.ask) {
    trigger("click", { ask: button.dataset.ask });
  } else if (button.dataset.word) {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", on);
    const kept = [...element.querySelectorAll('[data-word][aria-pressed="true"]')];
    trigger("click", { kept: kept.map((chip) => Number(chip.dataset.word)) });
  }
});
