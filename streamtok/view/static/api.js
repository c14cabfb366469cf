// Questions to the server that the page came from. Nothing else is ever asked.

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Error("the server does not answer: is streamtok view still running?");
  }
  if (response.ok) return response;
  const text = await response.text();
  let message = text.trim() || response.statusText;
  try {
    message = JSON.parse(text).error;
  } catch { /* it is plain text */ }
  throw new Error(message);
}

export const get = async (path) => (await ask(path, {})).json();

export const getText = async (path) => (await ask(path, {})).text();

export const post = async (path, question) => (await ask(`api/${path}`, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question),
})).json();
