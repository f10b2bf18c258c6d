// The choice of the theme: the system's, light or dark. It is kept in this browser.

const THEMES = ["system", "light", "dark"];
const button = document.getElementById("theme");

function chosen() {
  const kept = localStorage.getItem("theme");
  return THEMES.includes(kept) ? kept : "system";
}

function apply(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.textContent = `Theme: ${theme}`;
  document.dispatchEvent(new Event("theme"));
}

button.hidden = false;
button.addEventListener("click", () => {
  const theme = THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length];
  localStorage.setItem("theme", theme);
  apply(theme);
});
apply(chosen());
