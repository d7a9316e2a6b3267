// Wide tables are scrolled by the keyboard, too; of nested lists of links only the outermost is a landmark.
addEventListener("load", () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
  for (const nested of document.querySelectorAll(".md-nav .md-nav, .md-code__nav")) {
    nested.setAttribute("role", "none");
    for (const name of ["aria-label", "aria-labelledby", "aria-expanded"]) nested.removeAttribute(name);
  }
});
