// Sends questions to the server of the page, and to no other server.

async function ask(path, options) {
  let response;
  try {
    response = await fetch(`api/${path}`, { credentials: "same-origin", ...options });
  } catch {
    throw new Error("the server does not answer: is streamtok view still running?");
  }
  if (response.ok) return response.json();
  const text = await response.text();
  let message = text.trim() || response.statusText;
  try {
    message = JSON.parse(text).error;
  } catch { /* plain text */ }
  throw new Error(message);
}

export const get = (path) => ask(path, {});

export const post = (path, question) => ask(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question),
});
