"""Writes scalars.tsv: what the real loaders make of plain scalars. Run by hand, with PyYAML, ruamel.yaml, omegaconf, jsonargparse, hjson and
pydantic installed: python3 scalars.py"""
import itertools
import json
import math
import pathlib
import tomllib
import warnings

import hjson
import omegaconf
import pydantic
import ruamel.yaml
import yaml
from jsonargparse._loaders_dumpers import get_yaml_default_loader

warnings.simplefilter("ignore")
words = "true True TRUE tRue false False FALSE yes Yes YES yEs no No NO on On ON off Off OFF oFF y Y n N t f null Null NULL nULL ~ None nil auto"
numbers = """0 -0 +0 1 -1 +1 00 007 017 -017 +017 08 09 0o17 0O17 0x1F 0x1f 0X1F -0x1F 0x 0x_ 0xG 0b101 0b2 0b -0b11 1_000 1__000 1_000_ _1 1_0_0 0_0 0_7 12:30
1:2:3 -1:30 12:60 0:30 01:30 190:20:30 1:30.5 12:30: 9223372036854775807 9223372036854775808 -9223372036854775809 12345678901234567890123 1e5 1E5 1e-5
1e+5 -1e-5 +1e5 1.e5 1.e+5 1.0e5 1.0e-5 1.0E+5 1.5 -1.5 +1.5 1. -1. .5 -.5 +.5 .5e5 .5e-5 .5e+5 . .e5 1.5e 1e 1e+ 1.5.2 5e-6 3e-4 3.0e-4 1_0.5 1._5 1.5_0
._5 1_000e5 1e400 -1e400 1e-400 .inf -.inf +.inf .Inf .INF .iNF .nan .NaN .NAN -.nan .Nan inf nan NaN Infinity -Infinity 1e1_0 0.1 00.5 01.5 08.5 09e1 1e05
2001-01-01 2001-1-1 2001-01-01T12:00:00Z 2001-13-45 1.2.3 1-2 1/2 1,000 100% 1k 5B 0.95abc -- - + = << 1_ __ +_1 0._ 0x1_F 0b1_0 1e_5 123456789012
1.0 100.0 1e9 1e10 1e11 10000000000.0 2.5e3 0.000001 1E-5 4.0 -4.0 1.0e400 +0x10 0o8 0o_7 1:60 60:00 1:2.5 .0 0. -0.0 1e-0""".split()
others = ["FULL_SHARD", "bf16", "16-mixed", "hello world", "a:b", "/path/x", "1 2", "1e-5 # c", "@1"]
TEXTS = list(dict.fromkeys(words.split() + numbers + others + [
    s + d + p + f + e for s, d, p, f, e in itertools.product(["", "-"], ["", "0", "7", "12"], ["", "."], ["", "5"], ["", "e3", "e+3", "E-3"]) if (d or p or f)]))


def encode(value):
    if value is None:
        return "n"
    if isinstance(value, bool):
        return "b" + str(value)
    if isinstance(value, int):
        return "i" + str(value)
    if isinstance(value, float):
        return "f" + (float(value).hex() if math.isfinite(value) else repr(float(value)))
    if isinstance(value, str):
        return "s" + value
    return "o"


def attempt(load):
    try:
        return encode(load())
    except Exception:
        return "ERR"


def lax(kind):
    adapter = pydantic.TypeAdapter(kind)
    return lambda text: adapter.validate_python(yaml.safe_load("k: " + text + "\n")["k"])


COLUMNS = {
    "yaml11": lambda text: yaml.safe_load("k: " + text + "\n")["k"],
    "ruamel": lambda text: ruamel.yaml.YAML(typ="safe", pure=True).load("k: " + text + "\n")["k"],
    "omegaconf": lambda text: omegaconf.OmegaConf.create("k: " + text + "\n")["k"],
    "jsonargparse": lambda text: yaml.load("k: " + text + "\n", Loader=get_yaml_default_loader())["k"],
    "json": lambda text: json.loads('{"k": ' + text + "\n}")["k"],
    "hjson": lambda text: hjson.loads('{"k": ' + text + "\n}")["k"],
    "toml": lambda text: tomllib.loads("k = " + text + "\n")["k"],
    "pydantic.bool": lax(bool),
    "pydantic.int": lax(int),
    "pydantic.float": lax(float),
    "flags.int": int,
    "flags.float": float,
}
with open(pathlib.Path(__file__).parent / "scalars.tsv", "w", encoding="utf-8") as out:
    out.write("# text\t" + "\t".join(COLUMNS) + "\n")
    for text in TEXTS:
        out.write("\t".join([text] + [attempt(lambda load=load: load(text)) for load in COLUMNS.values()]) + "\n")
