"""Style sheet of a page, and its template for jinja2."""

from __future__ import annotations

#: Prevents the browser from loading or running anything.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """\
:root { color-scheme: light dark; --page: #f4f5f7; --card: #ffffff; --ink: #1f2328; --quiet: #5c6674;
  --line: #e1e4e8; --shade: 0, 114, 178; --good: #0b7a53; --bad: #b3261e; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --page: #0e1116; --card: #171b21; --ink: #e6e9ee;
  --quiet: #98a2b0; --line: #2b323c; --shade: 86, 180, 233; --good: #3fcf9b; --bad: #ff8a80;
  --warn: #f0b429; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); overflow-wrap: break-word;
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 20px 48px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 12px 0 0; display: inline; }
h2 { font-size: 17px; margin: 0 0 12px; } h3 { font-size: 14px; margin: 18px 0 6px; }
section, .tiles > div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
section { padding: 18px 20px; margin-top: 18px; overflow-x: auto; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 18px 0 0; }
.tiles > div { flex: 1 1 300px; padding: 12px 16px; }
.tiles dt { color: var(--quiet); font-size: 13px; }
.tiles dd { margin: 2px 0 0; font-weight: 600; }
.state { display: inline-block; vertical-align: 4px; padding: 1px 10px; border-radius: 99px;
  border: 1px solid currentColor; font-size: 13px; font-weight: 600; color: var(--warn); }
.state.finished { color: var(--good); } .state.failed { color: var(--bad); }
.quiet { color: var(--quiet); font-size: 13px; } p { margin: 8px 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 14px 5px 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { color: var(--quiet); font-weight: 600; font-size: 13px; }
tbody tr:last-child > * { border-bottom: 0; }
tfoot > tr > * { border-bottom: 0; font-weight: 600; }
tfoot > tr:first-child > * { border-top: 2px solid var(--line); }
.strong { font-weight: 600; } .best { color: var(--good); }
.number { text-align: right; white-space: nowrap; } th.number { white-space: normal; }
.matrix th, .matrix td { padding: 8px 12px; } .matrix th { max-width: 150px; }
.matrix thead th + th { text-align: center; }
.matrix td { text-align: center; border: 2px solid var(--card); border-radius: 6px; min-width: 76px; }
.matrix small { display: block; opacity: .8; }
.dense th, .dense td { padding: 5px 4px; } .dense tbody th { max-width: 230px; }
.dense td { min-width: 62px; font-size: 13px; }
.dense thead th + th { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left;
  vertical-align: middle; max-width: none; }
.label { overflow-wrap: anywhere; min-width: 150px; } td.label { unicode-bidi: isolate; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; min-width: 260px; }
img { display: block; width: 100%; height: auto; } .figure + .figure img { margin-top: 22px; }
.blocks { display: flex; flex-wrap: wrap; column-gap: 40px; }
.block { max-width: 100%; overflow-x: auto; } .figure, .paragraph { flex: 1 1 100%; }
.grid { display: grid; gap: 18px; grid-template-columns: repeat(auto-fill, minmax(min(440px, 100%), 1fr)); }
.failure { border-color: var(--bad); }
pre { margin: 8px 0 0; font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre-wrap; }
summary { cursor: pointer; font-weight: 600; } main > details > summary { margin: 18px 2px 0; }
@media print { body { background: none; } section { break-inside: avoid; }
  section, .block { overflow-x: visible; } }
"""
TEMPLATE = """\
{% macro row(cells, tag, of) %}
<tr>{% for cell in cells %}<{{ tag }} class="{{ of[loop.index0] }}">{{ cell }}</{{ tag }}>{% endfor %}</tr>
{% endmacro %}

{% macro table(of) %}
{% set styles = styles_of(of) %}
<table>
<thead>{{ row(of.head, "th", styles) }}</thead>
<tbody>{% for cells in marked(of) %}{{ row(cells, "td", styles) }}{% endfor %}</tbody>
{% if of.feet %}<tfoot>{% for cells in of.feet %}{{ row(cells, "td", styles) }}{% endfor %}</tfoot>{% endif %}
</table>
{% endmacro %}

{% macro matrix(of) %}
<table class="matrix{{ " dense" if of.rows|length > roomy }}">
<thead><tr>{% for name in of.head %}<th>{{ name }}</th>{% endfor %}</tr></thead>
{% for cells in of.rows %}
<tr><th>{{ cells[0] }}</th>
{% for share in of.shares[loop.index0] %}
<td style="background: rgba(var(--shade), {{ shade(share) }})">
{{- cells[loop.index] }}<small>{{ percent(share, 1) }}</small></td>
{% endfor %}
</tr>
{% endfor %}
</table>
{% endmacro %}

{% macro show(kind, of, pictures, heading) %}
{% if kind == "Figure" %}
<div class="figure"><picture><source media="(prefers-color-scheme: dark)" srcset="{{ pictures.dark }}">
<img src="{{ pictures.light }}" alt="{{ of.about }}"></picture></div>
{% elif kind == "Table" %}
<div class="block">
{% if of.title != heading %}<h3>{{ of.title }}</h3>{% endif %}
{{ matrix(of) if of.shares else table(of) }}
{% if of.note %}<p class="quiet">{{ of.note }}</p>{% endif %}
</div>
{% elif of.title %}
<details class="paragraph"><summary>{{ of.title }}</summary><pre>{{ of.text }}</pre></details>
{% else %}
<p class="paragraph {{ paragraphs[of.style] }}">{{ of.text }}</p>
{% endif %}
{% endmacro %}

{% macro cards(sections) %}
{% for section in sections %}
<section{{ " class=failure" if section.is_failure }}>
{% if section.title %}<h2>{{ section.title }}</h2>{% endif %}
<div class="{{ "grid" if section.grid else "blocks" }}">
{% for kind, block, pictures in blocks(section.blocks) %}
{{ show(kind, block, pictures, section.title) }}
{% endfor %}
</div>
</section>
{% endfor %}
{% endmacro %}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{ policy }}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ document.title }}</title>
<style>{{ style|safe }}</style>
</head>
<body>
<main>
<header><h1>{{ document.title }}</h1>
{% if document.state %}<span class="state {{ document.state }}">{{ document.state }}</span>{% endif %}
</header>
{% if document.note %}<p class="quiet">{{ document.note }}</p>{% endif %}
{% if document.facts %}
<dl class="tiles">
{% for name, value in document.facts %}<div><dt>{{ name }}</dt><dd>{{ value }}</dd></div>{% endfor %}
</dl>
{% endif %}
{% for line, sections in folds %}
{% if line %}<details><summary>{{ line }}</summary>{{ cards(sections) }}</details>
{% else %}{{ cards(sections) }}{% endif %}
{% endfor %}
</main>
</body>
</html>
"""
