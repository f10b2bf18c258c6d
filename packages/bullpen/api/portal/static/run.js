// The button that computes the reports: starts a run, shows its progress, then loads the page again.

const button = document.getElementById("run");
const state = document.getElementById("run-state");
const POLL_MS = 1000;

async function call(path, method) {
  const answer = await fetch(path, { method, headers: { "Content-Type": "application/json" }, body: method === "POST" ? "{}" : undefined });
  const body = await answer.json();
  if (!answer.ok) throw new Error([body.error, body.hint].filter(Boolean).join(". "));
  return body;
}

async function follow() {
  for (;;) {
    const run = await call("/api/reports/run", "GET");
    if (run.state === "failed") throw new Error([run.error, run.hint].filter(Boolean).join(". "));
    if (run.state !== "running") return location.reload();
    const seconds = run.started_at ? Math.round((Date.now() - run.started_at) / 1000) : 0;
    state.textContent = seconds > 0 ? `Computing for ${seconds} s …` : "Computing …";
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

async function guarded(work) {
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    state.textContent = error.message;
    button.disabled = false;
  }
}

button.addEventListener("click", () =>
  guarded(async () => {
    state.textContent = "Starting …";
    await call("/api/reports/run", "POST");
    await follow();
  }),
);

// A run that is in progress already, started in another window or by the service.
const running = await call("/api/reports/run", "GET").catch(() => null);
if (running?.state === "running") guarded(follow);
