"use strict";
(() => {
  const input = document.getElementById("search");
  if (!input) return;
  const said = document.getElementById("found");
  const cards = [...document.querySelectorAll(".card")];
  const plain = (text) => text.normalize("NFKD").toLowerCase();
  const texts = cards.map((card) => plain(card.querySelector(".words").textContent + " " + card.dataset.words));

  function search() {
    const words = plain(input.value).split(/\s+/).filter(Boolean);
    let shown = 0;
    cards.forEach((card, i) => {
      card.hidden = !words.every((word) => texts[i].includes(word));
      shown += !card.hidden;
    });
    said.textContent = words.length ? shown + " of " + cards.length : "";
  }

  document.getElementById("searching").hidden = false;
  input.addEventListener("input", search);
  search();
})();
