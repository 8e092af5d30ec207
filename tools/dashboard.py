# SPDX-License-Identifier: GPL-2.0-or-later
"""Bundles web/ into files that src/serve embeds.

Usage: tools/dashboard.py --esbuild PROGRAM --source WEB --output FOLDER --depfile FILE

Writes into FOLDER:
  assets.c    the files that the gateway serves, compressed, under names with a hash
  page.c      the page of `zernel export --html`, in two parts: the data goes between them
  sizes.json  bytes of each file, plain and compressed
and into FILE what all of this was made of.
"""
import argparse
import base64
import gzip
import hashlib
import json
import os
import subprocess
import sys

LICENSE = "/* SPDX-License-Identifier: GPL-2.0-or-later */\n/* Made by tools/dashboard.py. */\n"
TARGET = "es2022"


def bundle(esbuild, source, output, name):
    """Returns the bundle and the files that it was made of."""
    meta = os.path.join(output, "meta.json")
    command = [esbuild, os.path.join(source, name), "--bundle", "--minify", "--charset=utf8", "--legal-comments=none",
               f"--target={TARGET}", "--log-level=warning", f"--metafile={meta}", f"--outfile={output}/bundle"]
    if name.endswith(".js"):
        command.append("--format=iife")
    subprocess.run(command, check=True, env={**os.environ, "NODE_PATH": "/usr/share/nodejs"})
    with open(os.path.join(output, "bundle"), encoding="utf-8") as file:
        text = file.read()
    with open(meta, encoding="utf-8") as file:
        inputs = [os.path.abspath(each) for each in json.load(file)["inputs"]]
    for each in (meta, os.path.join(output, "bundle")):
        os.unlink(each)
    return text, inputs


def write(output, name, data):
    path = os.path.join(output, name)
    with open(path, "wb") as file:
        file.write(data)
    return os.path.abspath(path)


def embed(symbol, path):
    """Assembles a file into read-only data, as SYMBOL and SYMBOL_end."""
    return (f'__asm__(".pushsection .rodata\\n.global {symbol}\\n{symbol}:\\n.incbin \\"{path}\\"\\n"\n'
            f'\t".global {symbol}_end\\n{symbol}_end:\\n.byte 0\\n.popsection\\n");\n'
            f"extern const unsigned char {symbol}[], {symbol}_end[];\n")


def make_assets(output, index, script, style):
    """Returns the text of assets.c, and the sizes."""
    def hashed(name, text):
        stem, extension = name.split(".")
        return f"/assets/{stem}.{hashlib.sha256(text.encode()).hexdigest()[:16]}.{extension}"

    names = {"main.js": hashed("main.js", script), "style.css": hashed("style.css", style)}
    for name, path in names.items():
        index = index.replace(f"/assets/{name}", path)
    rows, sizes, parts = [], {}, [LICENSE, '#include "serve/assets.h"\n\n']
    for path, file, text, kind in [("/", "index.html", index, "text/html"),
                                   (names["main.js"], "main.js", script, "text/javascript"),
                                   (names["style.css"], "style.css", style, "text/css")]:
        data = gzip.compress(text.encode(), 9, mtime=0)
        symbol = "asset_" + file.replace(".", "_")
        parts.append(embed(symbol, write(output, file + ".gz", data)))
        rows.append(f'\t{{ "{path}", "{kind}; charset=utf-8", {symbol}, {symbol}_end, {"false" if path == "/" else "true"} }},\n')
        sizes[file] = {"plain": len(text.encode()), "compressed": len(data)}
    if len(rows) >= 4:
        sys.exit("dashboard: raise ASSETS_MAX of src/serve/assets.h")
    return "".join(parts) + "\nconst struct asset assets[] = {\n" + "".join(rows) + "\t{},\n};\n", sizes


def make_page(output, index, script, style):
    """Returns the text of page.c. Nothing in the page loads anything: its policy allows only what it contains."""
    def source(text):
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    for text, end in (script, "</script"), (style, "</style"):
        if end in text.lower():
            sys.exit(f"dashboard: a bundle contains {end}, which ends the element that it is in")
    lines = [line for line in index.splitlines() if "/assets/" not in line]
    head, tail = "\n".join(lines).split("</body>")
    policy = f"default-src 'none'; img-src data:; script-src {source(script)}; style-src {source(style)}; base-uri 'none'"
    head = head.replace("<head>", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">', 1)
    before = f'{head}<style>{style}</style>\n<script type="application/json" id="zernel-data">'
    after = f"</script>\n<script>{script}</script>\n</body>{tail}\n"
    if policy not in before:
        sys.exit("dashboard: web/index.html has no <head>")
    return LICENSE + '#include "serve/assets.h"\n\n' + \
        embed("dashboard_page_before", write(output, "page.before", before.encode())) + \
        embed("dashboard_page_after", write(output, "page.after", after.encode()))


def main():
    parser = argparse.ArgumentParser()
    for option in "--esbuild", "--source", "--output", "--depfile":
        parser.add_argument(option, required=True)
    args = parser.parse_args()
    script, script_inputs = bundle(args.esbuild, args.source, args.output, "src/main.js")
    style, style_inputs = bundle(args.esbuild, args.source, args.output, "style.css")
    page = os.path.abspath(os.path.join(args.source, "index.html"))
    with open(page, encoding="utf-8") as file:
        index = file.read()
    text, sizes = make_assets(args.output, index, script, style)
    write(args.output, "assets.c", text.encode())
    write(args.output, "page.c", make_page(args.output, index, script, style).encode())
    write(args.output, "sizes.json", json.dumps(sizes, indent=1).encode() + b"\n")
    inputs = " ".join([page, *script_inputs, *style_inputs])
    with open(args.depfile, "w", encoding="utf-8") as file:
        file.write(f"{args.output}/assets.c: {inputs}\n")


main()
