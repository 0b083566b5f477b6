é = 1
ñandú.größe = ä
x.ﬁ = ℌ
def ℘(ª, º=1): pass
class Ünïcödé(Δ, ключ=値): pass
import ａ.ｂ as ｃ
from 変数 import 変数 as ｄ, é
变量 = "文字"; y
f(ｋ=1)
lambda ａ: ａ
global ａ, b
try: pass
except A as ｅ: pass
match x:
    case ａ: pass
    case {**ａ}: pass
    case A(ａ=ｂ): pass
    case [*ａ]: pass
    case x as ａ: pass
    case ａ.ｂ(): pass
"é"; x
'é' 'é'; x
f"é{é}é{é!r:é}"; x
b"a"; "😀😀"; y
# é
x = "é" ; é
a·b = 1
x̄ = 2
𝐱 = 1
𝔘𝔫𝔦𝔠𝔬𝔡𝔢 = 2
def f[ａ](): pass
type ａ = 1
ａ: int
def ｆ(*ａ, ｂ, **ｃ): nonlocal ａ
ａ .ｂ. ｃ
