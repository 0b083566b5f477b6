# Parameters in every order, decorators, annotations, type parameters.
def f(): pass
def f(a): pass
def f(a,): pass
def f(a, b): pass
def f(a=1): pass
def f(a, b=1): pass
def f(a, b=1,): pass
def f(*a): pass
def f(*a,): pass
def f(*, a): pass
def f(*, a,): pass
def f(*, a=1): pass
def f(*, a=1, b): pass
def f(*, a, b=1, c): pass
def f(**a): pass
def f(**a,): pass
def f(*a, b): pass
def f(*a, b=1, c, **d): pass
def f(a, /): pass
def f(a, /,): pass
def f(a, b, /, c): pass
def f(a, /, *, b): pass
def f(a, /, *b, c, **d): pass
def f(a=1, /): pass
def f(a, b=1, /, c=2): pass
def f(a, b=1, /, c=2, *, d, e=3, **g): pass
def f(a: int, b: str = "x", *c: int, d: float, e: list = [], **g: dict) -> None: pass
def f(a: int = 1, /, b: int = 2) -> (yield): pass
def f(*args: *Ts): pass
def f(*args: *Ts, a): pass
def f(*args: *tuple[int, ...]): pass
def f(a: lambda: 1 = lambda: 2): pass
def f(a=lambda x, *y: 1, b=2): pass
def f(a: b if c else d = e if g else h): pass
def f() -> a[b, c]: pass
def f() -> lambda: x: pass
def f(
    a,  # comment
    b: int = 1,
    *,
    c,
) -> int:
    # comment
    """docstring"""
    return a

def f(a, b
      ): return a
@a
def f(): pass
@a.b.c
@a()
@a.b(c, d=e)
@a[b]
@(a)
@a or b
@lambda f: f
@(yield)
@x if y else z
@(x := y)
@x := y
@-a
def f(): pass

# between
@a

# comment
@b
def f(): pass
@a
async def f(): pass
async def f(a, *, b): await a
@a
class A: pass
class A(): pass
class A(B): pass
class A(B, C): pass
class A(B, C,): pass
class A(B, metaclass=M): pass
class A(*B, **C): pass
class A(metaclass=M, *B): pass
class A(B, x=1, **y):
    """docstring"""
    x: int
    y: int = 1

    def f(self): return self

    @property
    def g(self):
        class B(A):
            def h(self): pass
        return B
def f[T](): pass
def f[T,](): pass
def f[T: int](a: T) -> T: pass
def f[T: (int, str) = int](a): pass
def f[*Ts](*a: *Ts): pass
def f[*Ts = *tuple[int, ...]](): pass
def f[*Ts = (int, str)](): pass
def f[**P](a: P): pass
def f[**P = [int, str]](): pass
def f[T, *Ts, **P](a: T): pass
def f[T = int, U: str = "a"](): pass
def f[T: lambda: 1](): pass
async def f[T](): pass
class A[T]: pass
class A[T](B[T]): pass
class A[T: int = bool, *Ts = *x, **P = y](B, c=d): pass
type X = int
type X[T] = list[T]
type X[T: int, *Ts, **P] = dict[T, P]
type X[T = int] = T
type type = type
type match = case
type X = lambda: 1
type X = (yield)
type X = a if b else c
type \
    X = 1
type X = (
    int
    | str
)
def outer():
    def inner():
        nonlocal x
        yield
        x = yield
        x = yield x
        yield from x
        return (yield)
        await x
    return inner
def f(): # comment
    pass # comment
    # comment
# comment
    # deeper comment
  # odd comment
    pass
def f():
	pass
	if x:
		pass
def f():
        pass
        if x:
        	pass
