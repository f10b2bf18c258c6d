// Draws each figure of the page with Plotly, in the colours of the theme.

const SERIES = {
  light: ["#2456c4", "#c2571a", "#2a8061", "#8d4bab", "#b3861b", "#3d8fb0", "#b8476d", "#8b9099"],
  dark: ["#86aaf7", "#f0a26f", "#6fcaa6", "#cf9be6", "#e5c463", "#7fcbe6", "#f094b3", "#8b9099"],
};

// A state has the same colour on every page.
const RED = ["#b3261e", "#f2938c"], AMBER = ["#b3861b", "#e5c463"];
const GREEN = ["#2a8061", "#6fcaa6"], VIOLET = ["#8d4bab", "#cf9be6"];
const STATES = {
  "dead": RED, "messages dead": RED,
  "failed": AMBER, "runs failed": AMBER, "lost": AMBER,
  "completed": GREEN, "delivered": GREEN, "messages done": GREEN,
  "unknown": VIOLET,
};

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function layoutOf(figure) {
  const style = getComputedStyle(document.body);
  const line = getComputedStyle(document.querySelector(".view")).borderTopColor;
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, automargin: true };
  const layout = figure.layout;
  return {
    ...layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: style.fontFamily, size: 12, color: style.color },
    margin: { l: 8, r: 8, t: 8, b: 8 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    hovermode: figure.traces.some((each) => each.type === "heatmap") ? "closest" : "x unified",
    hoverlabel: { bgcolor: isDark() ? "#1e2125" : "#ffffff", font: { color: style.color } },
    colorway: SERIES[isDark() ? "dark" : "light"],
    xaxis: { ...axis, showgrid: false, ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis },
  };
}

function colourOf(name) {
  return STATES[name]?.[isDark() ? 1 : 0];
}

function traceOf(trace) {
  if (trace.type !== "heatmap") {
    const colour = colourOf(trace.name);
    return { ...trace, marker: { color: colour }, line: { color: colour, width: 2 } };
  }
  const scale = isDark()
    ? [[0, "#1e2125"], [1, "#86aaf7"]]
    : [[0, "#ffffff"], [1, "#2456c4"]];
  return { ...trace, colorscale: scale, xgap: 2, ygap: 2 };
}

function draw() {
  for (const place of document.querySelectorAll(".chart")) {
    const figure = JSON.parse(place.nextElementSibling.textContent);
    Plotly.react(place, figure.traces.map(traceOf), layoutOf(figure), { displayModeBar: false });
    sizes.observe(place);
  }
}

// Plotly itself follows only the size of the window, and not that of its place.
const sizes = new ResizeObserver((entries) => {
  for (const each of entries) Plotly.Plots.resize(each.target);
});

document.addEventListener("theme", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
