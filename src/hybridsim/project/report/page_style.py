"""Style sheet of the summary page, for light and dark mode and for print."""

STYLE = """
:root { color-scheme: light dark; --text: #1c1f23; --back: #ffffff; --quiet: #697077; --line: #dde1e5; --soft: #f4f6f8;
  --good: #1a7f4b; --warning: #b35900; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e3e6e9; --back: #16191c; --quiet: #9aa2aa; --line: #333a40; --soft: #20252a;
    --good: #4cc38a; --warning: #f0a04b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 0.7rem; }
header p { margin: 0.3rem 0 1.4rem; }
.status { font-weight: 600; }
.status.good { color: var(--good); }
.status.warning { color: var(--warning); }
.quiet { color: var(--quiet); font-size: 0.87em; font-weight: 400; }
.cards { display: flex; flex-wrap: wrap; gap: 0.8rem; }
.card { flex: 1 1 14rem; background: var(--soft); border-radius: 0.5rem; padding: 0.8rem 1rem; }
.card .label { font-size: 0.87em; }
.card .value { font-size: 1.45rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.remarks { border-left: 3px solid var(--warning); padding-left: 1rem; margin-top: 1.6rem; }
.remarks h2 { margin-top: 0; }
.remarks ul { margin: 0; padding-left: 1.1rem; }
.remarks li { white-space: pre-line; overflow-wrap: anywhere; }
img { display: block; width: 100%; height: auto; background: #ffffff; border-radius: 0.5rem; padding: 0.6rem;
  border: 1px solid var(--line); margin-bottom: 0.9rem; }
.wide { overflow-x: auto; margin-bottom: 0.6rem; }
table { border-collapse: collapse; width: 100%; min-width: 36rem; font-size: 0.93em; }
th, td { padding: 0.3rem 0.7rem 0.3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { color: var(--quiet); font-weight: 600; font-size: 0.9em; white-space: nowrap; }
tbody th { font-weight: 500; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.total td, .total th { color: var(--quiet); border-bottom-width: 2px; }
.mark { color: var(--warning); white-space: nowrap; }
.path, code { overflow-wrap: anywhere; }
code { font-size: 0.92em; }
@media print { img, section { break-inside: avoid; } }
"""
