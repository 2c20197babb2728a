// The pages work without this module. With it they change in place, results go on as one
// scrolls, photos can be dropped and pasted, and every step has a key.

const root = document.documentElement;
const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const say = (text) => { one("#note").textContent = text; };
const complain = ({ name }) => name === "AbortError" || say("The server does not answer.");
const box = one("#q");
const help = one("#help");
root.classList.add("scripted");

async function read(address, signal) {
  const answer = await fetch(address, { signal });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// Pages. Only the element `main` changes. Those that were left are kept, so that going back
// finds the same photos at the same place.
const left = new Map();
let place = history.state?.place ?? 0;
let request = new AbortController();

function leave() {
  const { title, activeElement } = document;
  left.set(place, { main: one("main"), title, sentence: box.value, activeElement, y: scrollY });
}

function show({ main, title, sentence }) {
  one("main").replaceWith(main);
  document.title = title;
  box.value = sentence;
  one("#live").textContent = one("[data-said]", main)?.textContent.trim() ?? "";
  say("");
  help.close();
  prepare(main);
}

function lead(target) {
  target?.scrollIntoView();
  target?.focus({ preventScroll: true });
}

async function go(address, isBack = false) {
  request.abort();
  request = new AbortController();
  const { signal } = request;
  root.classList.add("loading");
  try {
    const page = await read(address, signal);
    const sentence = one("#q", page);
    if (!sentence) return location.assign(address); // no page of the usual kind
    if (!isBack) {
      leave();
      for (const later of left.keys()) if (later > place) left.delete(later);
      place += 1;
      history.pushState({ place }, "", address);
    }
    show({ main: one("main", page), title: page.title, sentence: sentence.value });
    if (location.hash) lead(one(location.hash));
    else if (!isBack) scrollTo(0, 0);
    if (document.activeElement === document.body) one("main").focus({ preventScroll: true });
  } catch (error) {
    complain(error);
  } finally {
    if (signal === request.signal) root.classList.remove("loading");
  }
}

addEventListener("popstate", (event) => {
  request.abort();
  leave();
  place = event.state?.place ?? 0;
  const kept = left.get(place);
  if (!kept) return go(location.href, true);
  show(kept);
  kept.activeElement?.focus({ preventScroll: true });
  scrollTo(0, kept.y);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || link.target || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const isHere = link.pathname + link.search === location.pathname + location.search;
  if (link.id === "ask") help.showModal();
  else if (link.rel === "next") more();
  else if (isHere && link.hash) lead(one(link.hash));
  else go(link.href);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("#search, .wanted")) return;
  event.preventDefault();
  const given = [...new FormData(form)].map(([name, text]) => [name, text.trim()]);
  const asked = given.filter(([, text]) => text);
  const { pathname, hash } = new URL(form.action);
  go(`${pathname}${asked.length ? `?${new URLSearchParams(asked)}` : ""}${hash}`);
});

// Results that go on.
const watcher = new IntersectionObserver((entries) => {
  if (entries.some((entry) => entry.isIntersecting)) more();
}, { rootMargin: "900px" });

async function more() {
  const end = one("#more");
  const feeds = all("[role=feed]");
  const last = all(".photo").at(-1);
  if (end.dataset.busy) return;
  end.dataset.busy = "yes";
  for (const feed of feeds) feed.ariaBusy = "true";
  try {
    const page = await read(one("a[rel=next]", end).href, request.signal);
    for (const part of all("#above, #below", page)) {
      const own = one(`#${part.id}`);
      if (own) one("[role=feed]", own).append(...all(".photo", part));
      else end.before(part);
    }
    if (end.contains(document.activeElement)) last.focus();
    end.replaceWith(one("#more", page));
    prepare(one("main"));
  } catch (error) {
    complain(error);
    delete end.dataset.busy;
  } finally {
    for (const feed of feeds) feed.ariaBusy = null;
  }
}

function prepare(main) {
  for (const photo of all(".photo", main)) {
    photo.tabIndex = 0;
    one(".open", photo).tabIndex = -1;
  }
  showChosen();
  watcher.disconnect();
  for (const link of all("#more a[rel=next]", main)) watcher.observe(link);
}

// Chosen photos. They stay chosen from search to search.
const chosen = new Set(JSON.parse(sessionStorage.getItem("chosen") ?? "[]"));

function showChosen() {
  one("#n-chosen").textContent = `${chosen.size} photo${chosen.size === 1 ? "" : "s"} chosen`;
  one("#chosen").classList.toggle("empty", chosen.size === 0);
  for (const choice of all(".choose")) choice.checked = chosen.has(choice.value);
  sessionStorage.setItem("chosen", JSON.stringify([...chosen]));
}

document.addEventListener("change", ({ target }) => {
  if (!target.matches(".choose")) return;
  chosen[target.checked ? "add" : "delete"](target.value);
  showChosen();
});
one("#chosen").addEventListener("formdata", ({ formData }) => {
  formData.delete("number");
  for (const number of chosen) formData.append("number", number);
});
one("#copy").addEventListener("click", () => {
  const body = new URLSearchParams(new FormData(one("#chosen")));
  fetch("/names", { method: "POST", body }).then((answer) => answer.text())
    .then((names) => navigator.clipboard.writeText(names))
    .then(() => say("Names copied."), () => say("The names could not be copied."));
});
one("#clear").addEventListener("click", () => { chosen.clear(); showChosen(); });
one("#copy").hidden = !navigator.clipboard; // browsers have it for this machine and HTTPS

// Photos to search with: picked, pasted or dropped.
function send(files) {
  const file = one("#photo");
  const most = Number(file.dataset.mostBytes);
  if (!files.length) return;
  if (files[0].size > most) return say(`A photo may have ${most / 1e6} MB.`);
  file.files = files;
  root.classList.add("loading");
  file.form.submit();
}

one("#photo").addEventListener("change", ({ target }) => send(target.files));
addEventListener("paste", ({ clipboardData: { files, types } }) => {
  if (!types.includes("text/plain")) send(files);
});
addEventListener("pageshow", () => root.classList.remove("loading"));
for (const kind of ["dragover", "dragleave", "drop"]) {
  addEventListener(kind, (event) => {
    const { files, types } = event.dataTransfer;
    if (!types.includes("Files")) return;
    event.preventDefault();
    root.classList.toggle("dropping", kind === "dragover");
    if (kind === "drop") send(files);
  });
}

// New photos.
async function follow() {
  const { busy, said, photos } = await (await fetch("/look")).json();
  one("#looked").textContent = said;
  one("#n-photos").textContent = photos;
  one("#look button").disabled = busy;
  if (busy) setTimeout(() => follow().catch(complain), 1000);
}

one("#look").addEventListener("submit", (event) => {
  event.preventDefault();
  fetch("/look", { method: "POST", redirect: "manual" }).then(follow).catch(complain);
});
if ("busy" in one("#looked").dataset) follow().catch(complain);

// Keys.
function step(photo, by) {
  const photos = all(".photo");
  photos[photos.indexOf(photo) + by]?.focus();
}

function climb(photo, direction) {
  const top = (other) => Math.round(other.getBoundingClientRect().top);
  const aside = (other) => Math.abs(other.offsetLeft - photo.offsetLeft);
  const others = all(".photo").filter((other) => direction * (top(other) - top(photo)) > 0);
  const row = direction * Math.min(...others.map((other) => direction * top(other)));
  others.filter((other) => top(other) === row).sort((a, b) => aside(a) - aside(b))[0]?.focus();
}

const onPhoto = {
  Enter: (photo) => one(".open", photo).click(),
  " ": (photo) => one(".choose", photo).click(),
  s: (photo) => go(`${one(".open", photo).href}#similar`),
  ArrowLeft: (photo) => step(photo, -1),
  ArrowRight: (photo) => step(photo, 1),
  ArrowUp: (photo) => climb(photo, -1),
  ArrowDown: (photo) => climb(photo, 1),
  PageUp: (photo) => step(photo, -1),
  PageDown: (photo) => step(photo, 1),
  "Ctrl Home": () => box.focus(),
  "Ctrl End": () => one("#look button").focus(),
};
const inBox = { Escape: () => box.blur(), ArrowDown: () => one(".photo")?.focus() };
const links = { Escape: ".back", ArrowLeft: "#previous", ArrowRight: "#next" };
const anywhere = { "/": () => { box.focus(); box.select(); }, "?": () => help.showModal() };

addEventListener("keydown", (event) => {
  const { target, altKey, metaKey } = event;
  const key = event.ctrlKey ? `Ctrl ${event.key}` : event.key;
  const isTyping = target.matches("input:not([type=checkbox])");
  const link = isTyping ? null : one(links[key] ?? "#none");
  const does = (target.matches(".photo") && onPhoto[key]) || (target === box && inBox[key])
    || (target.matches(".choose") && key === "Enter" && (() => target.click()))
    || (link && (() => link.click()))
    || (!isTyping && one("#use-keys").checked && anywhere[key]);
  if (!does || help.open || altKey || metaKey) return;
  event.preventDefault();
  does(target);
});

one("#use-keys").checked = localStorage.getItem("keys") !== "false";
one("#use-keys").onchange = ({ target }) => localStorage.setItem("keys", target.checked);
prepare(one("main"));
