"""The look of the page: light and dark, wide and narrow, on paper."""

CSS = """
:root { color-scheme: light dark;
  --ground: #ffffff; --card: #f5f6f8; --ink: #1b1d21; --dim: #5a606b; --line: #d5d9e0;
  --good: #00694b; --bad: #a8380a;
  --c0: #0072b2; --c1: #c24e00; --c2: #00805c; }
@media (prefers-color-scheme: dark) { :root {
  --ground: #15171b; --card: #1f2228; --ink: #e6e8ec; --dim: #a3aab6; --line: #3a3f49;
  --good: #4fd0a5; --bad: #ff9d6b;
  --c0: #56b4e9; --c1: #f0904a; --c2: #3ecfa0; } }
@media print { :root { --card: #ffffff; } section { break-inside: avoid; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 1.2rem clamp(0.8rem, 3vw, 2rem) 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0.4rem 0 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 0.6rem; padding-bottom: 0.2rem;
  border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.2rem 0 0.4rem; }
p { margin: 0.5rem 0; }
.sub, figcaption, .note { color: var(--dim); font-size: 0.9rem; overflow-wrap: anywhere; }
.cards { display: grid; gap: 0.8rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-left: 5px solid var(--dim);
  border-radius: 6px; padding: 0.6rem 0.9rem; }
.card.good { border-left-color: var(--good); } .card.bad { border-left-color: var(--bad); }
.card b { display: block; overflow-wrap: anywhere; } .card.good b { color: var(--good); }
.card.bad b { color: var(--bad); } .card span { color: var(--dim); font-size: 0.85rem; }
.said { background: var(--card); border: 1px solid var(--line); border-radius: 6px; margin: 0;
  padding: 0.7rem 0.9rem; white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; }
.missing { border-left: 4px solid var(--c1); background: var(--card); padding: 0.5rem 0.9rem;
  overflow-wrap: anywhere; }
.figures { display: grid; gap: 1rem 1.6rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); }
figure { margin: 0; min-width: 0; } figure svg { display: block; width: 100%; max-width: 520px; }
.scroll { overflow-x: auto; margin: 0.5rem 0; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { text-align: left; padding: 0.22rem 0.9rem 0.22rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line); }
thead th { color: var(--dim); font-weight: 600; white-space: nowrap; }
td { white-space: nowrap; }
td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 9rem; max-width: 26rem; }
.n { text-align: right; white-space: nowrap; }
td.n { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: 0.85rem; }
.pairs th { color: var(--dim); font-weight: 400; white-space: nowrap; }
.pairs td { white-space: normal; overflow-wrap: anywhere; min-width: 7rem; max-width: none; }
.columns { display: grid; gap: 0 2.4rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 330px), 1fr)); }
.bad { color: var(--bad); } .good { color: var(--good); }
code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: 0.88em; overflow-wrap: anywhere; }
svg text { fill: var(--ink); font-size: 13px;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
svg .dim { fill: var(--dim); }
svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .grid { stroke: var(--line); stroke-width: 1; fill: none; }
svg .axis { stroke: var(--dim); stroke-width: 1; fill: none; }
svg .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
svg .dot { stroke-width: 1.6; } svg .hollow { fill: var(--ground); }
svg .limit { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 2 3; fill: none; }
svg .s0 { stroke: var(--c0); } svg .f0 { fill: var(--c0); }
svg .s1 { stroke: var(--c1); stroke-dasharray: 7 4; } svg .f1 { fill: var(--c1); }
svg .s2 { stroke: var(--c2); stroke-dasharray: 9 3 2 3; } svg .f2 { fill: var(--c2); }
svg .solid { stroke-dasharray: none; }
"""
