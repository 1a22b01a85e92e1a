"""The style of a report."""

STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #f4f5f7; color: #1c2430; font: 15px/1.5 system-ui, Helvetica, Arial, sans-serif; }
main { max-width: 980px; margin: 0 auto; padding: 24px 28px 60px; background: white; }
h1 { font-size: 26px; margin: 0 0 12px; overflow-wrap: anywhere; }
h2 { font-size: 20px; margin: 40px 0 10px; padding-top: 14px; border-top: 1px solid #dde1e7; }
h3 { font-size: 16px; margin: 22px 0 6px; overflow-wrap: anywhere; }
p { max-width: 76ch; overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 14px 0; }
nav a { color: #1f5c9e; text-decoration: none; }
nav a:hover { text-decoration: underline; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 8px 0 14px; font-size: 14px; }
th, td { padding: 4px 12px 4px 0; border-bottom: 1px solid #e6e9ee; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; }
th { font-weight: 600; color: #4a5462; }
table.numbers td:not(:first-child), table.numbers th:not(:first-child) { text-align: right; padding-left: 18px; }
table.numbers td { font-variant-numeric: tabular-nums; }
figure { margin: 10px 0 18px; }
figure img { max-width: 100%; height: auto; }
figcaption { color: #4a5462; font-size: 14px; max-width: 76ch; overflow-wrap: anywhere; }
.figures { display: flex; flex-wrap: wrap; gap: 8px 24px; }
.figures figure { max-width: 100%; }
.figures figure img { max-height: 330px; }
.figures figcaption { max-width: 52ch; }
.lead { font-size: 17px; }
.molecules { display: flex; flex-wrap: wrap; gap: 6px; }
.molecules img { max-width: 300px; height: auto; }
pre { background: #f4f5f7; padding: 10px 14px; overflow-x: auto; font-size: 13px; }
code { font-size: 14px; overflow-wrap: anywhere; }
.note { border-left: 3px solid #e39b3f; padding-left: 10px; }
@media print { body { background: white; } main { max-width: none; } figure, img { break-inside: avoid; } }
"""
