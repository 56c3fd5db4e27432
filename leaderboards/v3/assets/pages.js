/* A copy button for each command. Without this script, and where the browser has no clipboard, the command can be selected. */
for (const place of document.querySelectorAll(".command")) {
  const text = place.querySelector("pre");
  const button = document.createElement("button");
  const done = (word) => { button.textContent = word; setTimeout(() => { button.textContent = "copy"; }, 2000); };
  button.type = "button";
  button.textContent = "copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      done("copied");
    } catch {
      getSelection().selectAllChildren(text);
      done(document.execCommand("copy") ? "copied" : "selected");
    }
  });
  place.append(button);
}
