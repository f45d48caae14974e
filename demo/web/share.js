// A button that copies the address of what is seen.

import { h } from "./dom.js";

export function share() {
  const button = h("button", { type: "button", class: "share" }, "Copy link");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      prompt("The link to this view:", location.href);
    }
    setTimeout(() => (button.textContent = "Copy link"), 2000);
  });
  return button;
}
