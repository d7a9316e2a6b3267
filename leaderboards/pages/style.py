"""How an HTML page looks: one style sheet, light or dark as the reader's system is, for any width."""

STYLE = """\
:root { color-scheme: light dark; --text: #1b1f24; --ground: #ffffff; --line: #d0d7de; --soft: #f3f5f7;
  --link: #0550ae; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --ground: #0d1117; --line: #3d444d; --soft: #161b22; --link: #79b8ff; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--text); background: var(--ground);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
p, ul { max-width: 48rem; overflow-wrap: anywhere; }
h1, h2, h3 { line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); padding-bottom: 0.3rem; }
h3 { margin-top: 2.2rem; }
a { color: var(--link); }
code { background: var(--soft); padding: 0.1em 0.35em; border-radius: 4px; }
.scroll { overflow-x: auto; margin: 1rem 0; border: 1px solid var(--line); border-radius: 6px; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums;
  min-width: 100%; }
caption { text-align: left; padding: 0.5rem 0.75rem; font-weight: 600; background: var(--soft); }
th, td { padding: 0.35rem 0.75rem; border-top: 1px solid var(--line); text-align: right;
  white-space: nowrap; }
th { font-weight: 600; }
thead th { background: var(--soft); vertical-align: bottom; }
tbody th { position: sticky; left: 0; background: var(--ground); }
.left { text-align: left; }
td.left { white-space: normal; min-width: 8rem; }
td.best { font-weight: 700; background: var(--soft); }
figure { margin: 1.5rem 0; max-width: 52rem; }
figure svg { width: 100%; height: auto; }
figcaption { font-weight: 600; font-size: 0.875rem; margin-bottom: 0.3rem; }
@media print { .scroll { overflow: visible; border: 0; }
  h2, h3 { break-after: avoid; } figure { break-inside: avoid; } }
"""
