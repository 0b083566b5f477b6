"""Print the syntax trees of files as CPython 3.14 makes them, one JSON line a file: the golden trees of the tests.

    cd pyscan/syntax/testdata && python3.14 dump.py valid/*.py > valid.json

Where no CPython 3.14 is installed, the npm package pyodide runs this file under node:

    npm install pyodide@314
    node --input-type=module -e '
      import { loadPyodide } from "pyodide"; import fs from "fs";
      const py = await loadPyodide();
      py.runPython(fs.readFileSync("dump.py", "utf8"));
      for (const path of process.argv.slice(1)) {
        py.FS.writeFile("/file", fs.readFileSync(path));
        py.globals.set("path", path);
        console.log(py.runPython(`line(path, open("/file", "rb").read())`));
      }' valid/*.py > valid.json

The form is that of `trainvet ast --format json`, which dump.go describes.
"""
import ast
import json
import struct
import sys
import warnings


def text(value):
    return json.dumps(value)  # ASCII, with \\uXXXX units in lower case


def constant(value):
    if value is None or value is ... or isinstance(value, bool):
        kind = {type(None): "none", type(...): "ellipsis", bool: "bool"}[type(value)]
        shown = "..." if value is ... else str(value)
    elif isinstance(value, int):
        kind, shown = "int", str(value)
    elif isinstance(value, float):
        kind, shown = "float", struct.pack(">d", value).hex()
    elif isinstance(value, complex):
        kind, shown = "complex", struct.pack(">d", value.imag).hex()
    elif isinstance(value, bytes):
        kind, shown = "bytes", value.hex()
    else:
        kind, shown = "str", value
    return '{"k":%s,"v":%s}' % (text(kind), text(shown))


NAMES = ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context


def tree(value):
    if value is None:
        return "null"
    if isinstance(value, list):
        return "[%s]" % ",".join(map(tree, value))
    if isinstance(value, NAMES):
        return text(type(value).__name__)
    if not isinstance(value, ast.AST):
        return text(value)
    kind = type(value).__name__
    out = '{"_":' + text(kind)
    if "lineno" in value._attributes:
        out += ',"at":[%d,%d,%d,%d]' % (value.lineno, value.col_offset, value.end_lineno, value.end_col_offset)
    for field in value._fields:
        item = getattr(value, field, None)
        is_constant = (kind, field) in {("Constant", "value"), ("MatchSingleton", "value"), ("Interpolation", "str")}
        out += ",%s:%s" % (text(field), constant(item) if is_constant else tree(item))
    return out + "}"


def line(path, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return '{"path":%s,"tree":%s}' % (text(path), tree(ast.parse(data)))


if __name__ == "__main__" and sys.argv[1:]:
    for name in sys.argv[1:]:
        with open(name, "rb") as file:
            print(line(name, file.read()))
