"""Writes python.tsv and expressions.tsv: what CPython computes. Run by hand: python3 -W ignore generate.py"""
import math
import pathlib
import random

random.seed(7)
HERE = pathlib.Path(__file__).parent
INTS = [0, 1, -1, 2, 3, -3, 7, 8, 10, 16, 63, 64, 100, 255, 1000, 4096, -17, 2**31, 2**63 - 1, -2**63, 2**63, 2**64, 10**20, -10**25]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.5, 0.1, 1e-5, 1e-8, 3.3, 1e8, 1e16, 1e300, 1e-300, 580.4815, 0.01, 1e18, 1e-9, math.inf, 2.0, 10.0]
VALUES = INTS + FLOATS + ["", "a", "ab", "A", "1", "ü", True, False, None]
ARITHMETIC = ["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^"]
COMPARISON = ["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
EXPRESSIONS = """5 * 8;2**16;1<<20;10**20//3;-7//2;-7%3;1e8;2**64-1;2**-1;-2**2;(1+2)*3;1_000*2;0x1F;0b101|0o17;1.5e-3*2;.5+1.;~5
- -3;2**3**2;7&3^1|8;100/8;100//8;True+1;1e400;10**2**2;1 +;(1;017;1__0;0x;3 4;a;1.2.3;1e;--;8*1024*1024;4 << 2 + 1;6 % 4 * 3
-3 ** 2;2 ** -2;5//0;1/0;1e-5;5e-6;1E+3;0x_1F;1_;_1;0b2;00;0_0;1.;1_0.5_0e1_0;None;0xe+1;1e+;+5;2*-3;2**~1;((((2))));1 - - 1"""


def encode(value):
    if value is None:
        return "n"
    if isinstance(value, bool):
        return "b" + str(value)
    if isinstance(value, int):
        return "i" + str(value) if value.bit_length() <= 4096 else None
    if isinstance(value, float):
        return "f" + (value.hex() if math.isfinite(value) else repr(value))
    if isinstance(value, str):
        return "s" + value if len(value) <= 200 else None
    return "ERR"


def evaluate(text, **names):
    try:
        return encode(eval(text, {"__builtins__": {}}, names))
    except Exception:
        return "ERR"


def sized(op, a, b):
    """Whether CPython can be asked."""
    if op == "**":
        return not (isinstance(a, int) and isinstance(b, int) and abs(b) > 4000)
    if op == "<<":
        return not (isinstance(b, int) and b > 5000)
    big = [x for x in (a, b) if isinstance(x, int) and abs(x) > 10**5]
    return not (op == "*" and big and any(isinstance(x, str) for x in (a, b)))


rows = set()


def add(op, a, b):
    if sized(op, a, b):
        result = evaluate(f"a {op} b", a=a, b=b)
        if result is not None:
            rows.add((op, encode(a), encode(b), result))


pairs = [(op, a, b) for op in ARITHMETIC + COMPARISON for a in VALUES for b in VALUES]
for triple in random.sample(pairs, 6000):
    add(*triple)
for _ in range(2000):
    add(random.choice(ARITHMETIC[:7]),
        random.choice([random.uniform(-100, 100), random.randrange(-10**6, 10**6), 10.0**random.randrange(-9, 9)]),
        random.choice([random.uniform(-10, 10), random.randrange(-20, 20), 0.5, 2, 3]))
for op in ["-", "+", "~", "not"]:
    for value in VALUES:
        rows.add((op, encode(value), "", evaluate(f"{op} a", a=value)))
TEXTS = ["1", "-1", "+1", " 7 ", "1_000", "1__0", "_1", "1.5", "1e-5", "1E5", "inf", "-Infinity", "nan", "0x10", "1e400", "", "abc", "+-1", "1.", ".5", ".",
         "1e", "0b1", "007", "1 2", "1_0.5", "1e1_0", "--1", "infin", "1_.5", "1e+5", "True", "None"]
for to in ["int", "float"]:
    for value in TEXTS + [1, True, False, 2.5, -2.5, 1e20, math.inf, None]:
        result = "ERR"
        try:
            result = encode({"int": int, "float": float}[to](value))
        except Exception:
            pass
        rows.add((to, encode(value), "", result))
with open(HERE / "python.tsv", "w", encoding="utf-8") as out:
    out.write("# operator, left, right, result by CPython 3.11: i int, f float (hex), s str, b bool, n None, ERR error or another type\n")
    for row in sorted(rows):
        out.write("\t".join(row) + "\n")
with open(HERE / "expressions.tsv", "w", encoding="utf-8") as out:
    out.write("# expression, result by CPython 3.11\n")
    for text in EXPRESSIONS.replace("\n", ";").split(";"):
        out.write(text + "\t" + evaluate(text) + "\n")
