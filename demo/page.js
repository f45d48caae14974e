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
  new MutationObserver(attach).observe(document.body, { childList: true, subtree: true });
}
