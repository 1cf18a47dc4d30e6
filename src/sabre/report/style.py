"""The style sheet of the report."""

__all__ = ["STYLE"]

STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf7; --card: #ffffff; --ink: #1c2430; --muted: #66707e;
  --rule: #e1e0da; --accent: #1f6fb2; --series-1: #1f6fb2; --series-2: #d1662b; --series-3: #2f8f6b;
  --series-4: #8660a8; --note: #fbf1dc; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --card: #1b2027; --ink: #e8e6e1; --muted: #98a1ad;
  --rule: #323943; --accent: #6cb1ea; --series-1: #6cb1ea; --series-2: #f09a63; --series-3: #66c7a0;
  --series-4: #bb9be0; --note: #33290f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.55;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 2.5rem clamp(1rem, 4vw, 2.5rem) 4rem; }
h1, .headline { font-family: "Iowan Old Style", Charter, "Palatino Linotype", Palatino, Georgia, serif; }
h1 { font-size: clamp(1.5rem, 4vw, 2.2rem); line-height: 1.2; margin: 0.2rem 0 0.6rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; letter-spacing: 0.01em; margin: 2.8rem 0 1rem; padding-top: 0.9rem;
  border-top: 1px solid var(--rule); }
h3 { font-size: 0.95rem; margin: 1.2rem 0 0.4rem; }
.eyebrow { margin: 0; color: var(--accent); font-size: 0.78rem; font-weight: 600; letter-spacing: 0.09em;
  text-transform: uppercase; }
.facts { display: flex; flex-wrap: wrap; gap: 0.2rem 1.6rem; margin: 0; color: var(--muted); font-size: 0.92rem; }
.facts div { display: flex; gap: 0.45rem; min-width: 0; }
.facts dd { margin: 0; color: var(--ink); overflow-wrap: anywhere; }
.headline { font-size: clamp(1.15rem, 2.6vw, 1.5rem); line-height: 1.45; margin: 2rem 0 1rem; max-width: 46rem; }
.headline strong { color: var(--accent); font-weight: 600; font-variant-numeric: lining-nums tabular-nums;
  white-space: nowrap; }
.note { background: var(--note); border-radius: 0.4rem; padding: 0.6rem 0.9rem; max-width: 46rem; font-size: 0.94rem; }
.caption { color: var(--muted); font-size: 0.9rem; max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.93rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.42rem 1rem 0.42rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
th { font-weight: 500; } thead th { color: var(--muted); font-size: 0.82rem; }
.figures td, .figures thead th + th { text-align: right; padding: 0.42rem 0 0.42rem 1.2rem; white-space: nowrap; }
tbody th { min-width: 11rem; }
.options { font-size: 0.84rem; }
.options th { min-width: 0; color: var(--muted); white-space: nowrap; width: 1%; }
.options td { overflow-wrap: anywhere; font-family: ui-monospace, Menlo, Consolas, monospace; }
.grid, .pair, .columns { display: grid; gap: 1.2rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); }
.columns { gap: 0 2.5rem; align-items: start; }
.bounds { display: block; width: 100%; max-width: 40rem; height: auto; margin: 1.4rem 0 0; }
.chart, .panel, figure { display: block; width: 100%; height: auto; margin: 0; background: var(--card);
  border: 1px solid var(--rule); border-radius: 0.6rem; padding: 0.9rem; }
figcaption { font-weight: 600; font-size: 0.92rem; margin-bottom: 0.6rem; }
.lattices { display: block; width: 100%; height: auto; image-rendering: pixelated; }
svg text { font-family: inherit; font-variant-numeric: tabular-nums; }
svg image { image-rendering: pixelated; }
.halo text { paint-order: stroke; stroke: var(--card); stroke-width: 4px; stroke-linejoin: round; }
footer { margin-top: 3rem; color: var(--muted); font-size: 0.85rem; }
@media print { body { background: none; } .chart, .panel, figure { break-inside: avoid; } }
"""
