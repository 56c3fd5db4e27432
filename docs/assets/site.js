document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
