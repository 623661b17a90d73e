"use strict";
(() => {
  // Charts: the bundle is unpacked once; the page's content security policy lets it run only if its hash is right.
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  const packed = document.getElementById("plotly");
  const main = document.getElementById("main");

  const unpack = async () => {
    const bytes = Uint8Array.from(atob(packed.textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    if (!window.Plotly) throw new Error("the browser refused to run plotly.js");
  };

  const width = (plot) => Math.max(260, Math.floor(plot.clientWidth || main.clientWidth - 40));

  // A view box lets a drawn chart be scaled by style alone, which printing needs.
  const scalable = (plot) => {
    for (const svg of plot.querySelectorAll(".main-svg")) {
      const [w, h] = [parseFloat(svg.getAttribute("width")), parseFloat(svg.getAttribute("height"))];
      svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
      plot.style.setProperty("--ratio", `${w} / ${h}`);
    }
  };

  const draw = async (figure) => {
    const plot = figure.querySelector(".plot");
    const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
    const note = plot.firstElementChild;
    const narrow = width(plot) < 480;
    const fitted = {
      ...layout,
      width: width(plot),
      dragmode: matchMedia("(pointer: coarse)").matches ? false : layout.dragmode,
      ...(narrow && { font: { ...(layout.font || {}), size: 11 }, margin: { ...(layout.margin || {}), l: 48, r: 8 } }),
      // Names of lengths end at their ticks: plotly drops one that reaches beyond the chart, and that is the longest.
      ...(narrow && layout.xaxis?.ticktext && { xaxis: { ...layout.xaxis, tickangle: -45 } }),
    };
    note.remove();
    try {
      await Plotly.newPlot(plot, data, fitted, { displayModeBar: false, displaylogo: false, responsive: false });
      scalable(plot);
      figure.dataset.state = "drawn";
    } catch (error) {
      note.textContent = "The chart could not be drawn in this browser. The text and the table below carry what it shows.";
      plot.replaceChildren(note);
      figure.dataset.state = "failed";
      console.error(error);
    }
  };

  const all = async () => {
    if (!packed || !figures.length) return;
    try {
      await unpack();
    } catch (error) {
      for (const figure of figures) {
        figure.dataset.state = "failed";
        figure.querySelector(".plot p").textContent =
          "The chart could not be drawn in this browser. The text and the table below carry what it shows.";
      }
      console.error(error);
      return;
    }
    for (const figure of figures) await draw(figure);
  };
  const drawn = all().then(() => { document.documentElement.dataset.charts = "done"; });

  let timer;
  let last = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === last) return;
    last = innerWidth;
    clearTimeout(timer);
    timer = setTimeout(async () => {
      await drawn;
      for (const figure of figures.filter((f) => f.dataset.state === "drawn")) {
        const plot = figure.querySelector(".plot");
        await Plotly.relayout(plot, { width: width(plot) });
        scalable(plot);
      }
    }, 150);
  });

  // Print everything but code: sections that are closed on the screen are open on paper.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open]):not(.code)")];
    for (const part of opened) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of opened) part.open = false;
  });

  // A link into a closed section opens it.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
})();
