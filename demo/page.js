() => {
  // Plotly's hover labels hold no pictures, so the card below the map shows what is pointed at.
  const attach = () => {
    const plot = document.querySelector("#halo-map .js-plotly-plot");
    if (!plot || plot.haloReady || !plot.on) return;
    plot.haloReady = true;
    const show = (event) => {
      const card = document.querySelector("#halo-card .halo-hover");
      const [, source, text] = event.points[0].customdata || [];
      if (!card || !text) return;
      card.querySelector("p").textContent = text;
      const picture = card.querySelector("img");
      picture.hidden = !source;
      if (source) picture.src = source;
      picture.alt = "";
    };
    plot.on("plotly_hover", show);
    plot.on("plotly_click", show);
  };

  // An answer is drawn anew after each press. The focus stays on the button that was pressed,
  // and the address reproduces the question.
  let pressed = null;
  let link = null;
  document.addEventListener("click", (event) => {
    pressed = event.target.closest("[data-key]")?.dataset.key ?? null;
  });
  const settle = () => {
    const answer = document.querySelector("#halo-answer .halo-answer");
    if (answer && answer.dataset.link !== link) {
      link = answer.dataset.link;
      history.replaceState(null, "", link);
    }
    if (pressed && document.activeElement === document.body) {
      document.querySelector(`#halo-answer [data-key="${CSS.escape(pressed)}"]`)?.focus();
    }
  };
  const update = () => {
    attach();
    settle();
  };
  new MutationObserver(update).observe(document.body, { childList: true, subtree: true });
}
