// The API page: theme, addresses and languages of the examples. The page can be read without it.
import { startTheme } from "./theme.js";

const LANGUAGE = "api-language";

const theme = document.getElementById("theme");
theme.hidden = false;
startTheme(theme, () => {});

/** The examples name the address under which this page was opened, also behind a proxy. */
function nameThisServer() {
  const here = new URL(".", location.href).href.replace(/\/$/, "");
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    walker.currentNode.data = walker.currentNode.data.replaceAll(document.body.dataset.base, here);
  }
}

/** One listing per operation is shown, in the language that was chosen at any of them. */
function show(language) {
  for (const figure of document.querySelectorAll(".examples figure")) {
    figure.classList.toggle("chosen", figure.dataset.language === language);
    for (const button of figure.querySelectorAll("[aria-pressed]")) {
      button.setAttribute("aria-pressed", String(button.textContent === language));
    }
  }
}

function button(text, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "quiet";
  made.textContent = text;
  made.addEventListener("click", action);
  return made;
}

function choose(language, group) {
  localStorage.setItem(LANGUAGE, language);
  const before = group.getBoundingClientRect().top;
  show(language);
  window.scrollBy(0, group.getBoundingClientRect().top - before); // listings above have other heights now
  [...group.querySelectorAll(".chosen [aria-pressed=true]")].forEach((each) => each.focus());
}

function addButtons() {
  for (const group of document.querySelectorAll(".examples")) {
    const languages = [...group.children].map((figure) => figure.dataset.language);
    for (const caption of group.querySelectorAll("figcaption")) {
      caption.replaceChildren(...languages.map((language) => {
        const made = button(language, () => choose(language, group));
        made.setAttribute("aria-pressed", "false");
        return made;
      }));
    }
  }
  if (!navigator.clipboard) return; // only https and this machine have it
  for (const figure of document.querySelectorAll("figure")) {
    const copy = button("Copy", async () => {
      await navigator.clipboard.writeText(figure.querySelector("code").textContent);
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    });
    copy.classList.add("copy");
    figure.querySelector("figcaption").append(copy);
  }
}

nameThisServer();
addButtons();
document.documentElement.classList.add("scripted");
const known = [...document.querySelectorAll(".examples figure")].map((figure) => figure.dataset.language);
const stored = localStorage.getItem(LANGUAGE);
show(known.includes(stored) ? stored : known[0]);
