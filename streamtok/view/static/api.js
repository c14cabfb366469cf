// Questions to the server that the page came from. Nothing else is ever asked.

// Answers may come in another order than their questions. next() begins a question; what it gives
// says whether the question is still the last one, so whether its answer is the one to show.
export class Questions {
  #last = 0;

  next() {
    this.#last += 1;
    const mine = this.#last;
    return () => mine === this.#last;
  }
}

async function checked(response) {
  if (response.ok) return response;
  let message = response.statusText;
  const text = await response.text();
  try {
    message = JSON.parse(text).error;
  } catch {
    message = text.trim() || message;
  }
  throw new Error(message);
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(`api/${path}`, { credentials: "same-origin", ...options });
  } catch {
    throw new Error("the server does not answer: is streamtok view still running?");
  }
  return checked(response);
}

export async function get(path) {
  return (await send(path, {})).json();
}

export async function post(path, question) {
  const headers = { "Content-Type": "application/json" };
  return (await send(path, { method: "POST", headers, body: JSON.stringify(question) })).json();
}

export async function postBytes(path, bytes) {
  const headers = { "Content-Type": "application/octet-stream" };
  return (await send(path, { method: "POST", headers, body: bytes })).json();
}
