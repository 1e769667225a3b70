/* The fields of the page, its answer and its address. */
const root = document.getElementById("yours"), form = root.querySelector("form");
const note = root.querySelector(".tp-note[role]");
const copy = text => navigator.clipboard?.writeText(text) ?? Promise.reject();
const [out, beside, rest, link] = ["answer", "peer", "rest", "link"].map(name => root.querySelector(`.tp-${name}`));
const inputs = [...form.elements].filter(one => one.name), starts = inputs.map(one => one.value);
const changed = () => inputs.filter((one, i) => one.value !== starts[i]);
const restore = () => inputs.forEach((one, i) => { one.value = starts[i]; });
let waiting, shown = $dict();

/* A word about one field stands at it, any other above the answer. */
function say(text, name) {
  note.textContent = text;
  if (name) form.elements[name].closest("details")?.setAttribute("open", "");
  (name ? form.elements[name].closest(".tp-control") : form).append(note);
}

/* The answer to what the fields say; where it is refused, the refusal, and the answer before stays. */
function show() {
  clearTimeout(waiting);
  $forget();
  try {
    const asked = $dict(inputs.map(one => [one.name, carried.plain(one.value)]));
    out.innerHTML = carried.first(asked);
    shown = asked;
    waiting = setTimeout(() => {  // when this is painted
      rest.innerHTML = carried.rest(asked);
      waiting = setTimeout(() => { beside.innerHTML = carried.peers(asked); });
    }, 20);
    say("");
    return "";
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    say(error.message, carried.fieldOf(error.message));
    return error.message;
  }
}

function remember() {
  const pairs = changed().map(one => `yours.${one.name}=${encodeURIComponent(one.value)}`).join("&");
  history.replaceState(null, "", pairs ? "#" + pairs : location.pathname + location.search);
  link.href = "#" + (pairs || "yours");
}

/* A link's setting, none is the start: all of it is right, or a note says why not. Other links leave the page alone. */
function readHash() {
  const mine = location.hash.slice(1).split("&").filter(pair => pair.startsWith("yours."));
  if (!mine.length && !["", "#yours"].includes(location.hash)) return;
  let wrong;
  restore();
  try {
    for (const pair of mine) {
      const [name, ...parts] = pair.slice(6).split("=").map(decodeURIComponent), text = parts.join("=");
      carried.check($dict([[name, carried.plain(text)]]));
      form.elements[name].value = text;
    }
    wrong = show();
  } catch (error) { wrong = error instanceof URIError ? "the link cannot be read" : error.message; }
  for (const one of changed()) one.closest("details")?.setAttribute("open", "");
  if (!wrong) return;
  restore();
  show();
  say(`${wrong}. The start is shown.`, carried.fieldOf(wrong));
}

form.addEventListener("input", show);
form.addEventListener("change", () => { show(); remember(); });
form.addEventListener("reset", event => { event.preventDefault(); restore(); show(); remember(); });
root.addEventListener("click", event => {
  const { target } = event, copied = target.closest("[data-copy]"), number = target.closest("[data-name]");
  if (copied) copy(copied.previousSibling.textContent).then(() => { copied.textContent = "Copied"; }, () => {
    getSelection().selectAllChildren(copied.previousSibling); copied.textContent = "Selected"; });
  if (number) window.tpWhy(number.textContent, ...carried.reasons(shown, number.dataset.name));
  if (target !== link) return;
  event.preventDefault();
  copy(link.href).then(() => say("The link is copied."), () => { location.href = link.href; });
});
window.addEventListener("hashchange", readHash);
if (location.hash) readHash();
window.tpYours = { ...carried, dict: $dict, plain: $plain, fmt: $fmt };
