"""The capsule: a Python layer in front of a Hotcell cell.

    python3 -I -S -B capsule.py /src/main.py

It runs one Python file with restricted builtins, an import allowlist and a
`ctx` object. CPython was never built to hold hostile code, so this is ONE
layer among several: it turns the ordinary and the known ways out into clear
errors and events. What it misses still meets the cell, which is complete
without it.

Two halves, and each needs the other:
  * `vet` reads the syntax tree. Every identifier in it is judged, so no guest
    bytecode exists that names `__subclasses__`, `gi_frame` and the like.
    Reads whose danger depends on the object (`.format`, `._x`) and all
    attribute writes are rewritten into calls of the guards below.
  * the guards are what is left of the places where a *string* becomes an
    attribute name or a class: getattr & co, str.format, type(), class
    statements, functools.wraps, namedtuple, the functional Enum API.
"""
import ast
import builtins
import enum
import importlib
import json
import os
import sys
import traceback
from types import BuiltinMethodType, FunctionType, GenericAlias, MethodDescriptorType, ModuleType, resolve_bases

SELF = sys.modules["__main__"]  # kept alive: sys.modules["__main__"] becomes the guest's
__name__ = "capsule"  # so that no class of ours looks like one of the guest's
GUEST, FILE = "__main__", "main.py"

# ---------------------------------------------------------------- what is allowed

# "" = the module's public names. A list where some public name is a way out or is of no use here:
#   functools.singledispatch, typing.get_type_hints: eval() annotation strings, past `vet`
#   operator.attrgetter/methodcaller, string.Formatter, UserString: attribute names from strings
#   contextlib.redirect_stdout: a subclass chooses which attribute of `sys` it reads
#   enum.global_enum writes into a module's globals; EnumMeta, ABCMeta make classes from dicts
#   typing.Type, TypedDict: `type` itself; annotations with any key, which dataclass would compile
#   uuid.getnode starts processes; io.open, io.FileIO open files
MODULES = {
    "__future__": "annotations", "abc": "ABC abstractmethod", "base64": "", "binascii": "", "bisect": "",
    "calendar": "day_abbr day_name isleap leapdays month_abbr month_name monthcalendar monthrange timegm weekday",
    "cmath": "", "collections": "ChainMap Counter OrderedDict UserDict UserList defaultdict deque namedtuple",
    "collections.abc": "", "contextlib": "AbstractContextManager ContextDecorator ExitStack closing "
    "contextmanager nullcontext suppress", "copy": "copy deepcopy",
    "csv": "DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC reader writer",
    "dataclasses": "FrozenInstanceError KW_ONLY asdict astuple dataclass field fields is_dataclass replace",
    "datetime": "MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo", "decimal": "",
    "difflib": "SequenceMatcher get_close_matches ndiff unified_diff",
    "enum": "Enum Flag IntEnum IntFlag StrEnum auto unique", "fractions": "Fraction",
    "functools": "cache cached_property cmp_to_key lru_cache partial reduce total_ordering update_wrapper wraps",
    "hashlib": "", "heapq": "", "hmac": "compare_digest digest new", "html": "escape unescape",
    "io": "BytesIO StringIO", "itertools": "", "json": "JSONDecodeError JSONDecoder JSONEncoder dump dumps load loads",
    "math": "", "numbers": "", "operator": "-attrgetter -methodcaller", "pprint": "pformat pprint", "random": "",
    "re": "", "secrets": "", "statistics": "", "string": "-Formatter", "struct": "", "textwrap": "",
    "time": "-clock_settime -clock_settime_ns -tzset -pthread_getcpuclockid",
    "types": "MappingProxyType SimpleNamespace",
    "typing": "Any Callable ClassVar Collection DefaultDict Deque Dict Final FrozenSet Generator Generic Hashable "
    "Iterable Iterator List Literal Mapping MutableMapping MutableSequence NamedTuple NewType NoReturn Optional "
    "Protocol Self Sequence Set Sized SupportsFloat SupportsInt TYPE_CHECKING Tuple TypeVar Union cast",
    "unicodedata": "", "uuid": "NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL UUID uuid3 uuid4 uuid5", "zlib": "",
}
# Real builtins the guest gets as they are. All exceptions are added to these.
PLAIN = """None True False Ellipsis NotImplemented __debug__ abs aiter all anext any ascii bin bool bytearray bytes
callable chr classmethod complex dict divmod enumerate filter float format frozenset hash hex id input int isinstance
issubclass iter len list map max min next object oct ord pow print property range repr reversed round set slice sorted
staticmethod str sum super tuple zip""".split()
# Present, so that calling one is a clear refusal and not a NameError that looks like a typo.
REFUSED = "open eval exec compile globals locals vars dir breakpoint help memoryview".split()

# Interpreter objects show their insides under these names; no honest program needs them.
FORBIDDEN = set("""gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await cr_origin ag_frame ag_code ag_await tb_frame
tb_next tb_lasti tb_lineno f_back f_builtins f_code f_globals f_locals f_lasti f_lineno f_trace f_generator func_globals
func_code func_closure func_defaults mro with_traceback""".split())
# Special methods a class may define and code may name. Missing on purpose: __getattribute__,
# __instancecheck__, __reduce__ & co, __prepare__, __mro_entries__, __setstate__ ...
_OPS = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or".split()
SPECIAL = {f"__{n}__" for n in _OPS + ["r" + n for n in _OPS] + ["i" + n for n in _OPS] + """init new call str repr
bytes format eq ne lt le gt ge hash bool len length_hint getitem setitem delitem contains missing iter next reversed
enter exit aenter aexit await aiter anext neg pos abs invert int float complex index round trunc floor ceil
init_subclass post_init""".split()}
# May be defined but not read: `cached_property.__get__(x, ...)` would read `__dict__` of any x.
HOOKS = {f"__{n}__" for n in "getattr setattr delattr del get set delete set_name class_getitem copy "
         "deepcopy".split()}
READ = SPECIAL | {f"__{n}__" for n in "name qualname doc module members cause context class setattr delattr".split()}
WRITE = {"__name__", "__qualname__", "__doc__"}  # as attributes of functions and classes
LITERAL = {"__slots__", "__match_args__"}  # only as `= ("a", "b")`: they are attribute names in strings
VARIABLES = SPECIAL | HOOKS | {"__doc__", "__all__", "__version__", "__author__", "__license__"}
PRIVATE = set("_replace _asdict _make _fields _field_defaults _hash _from_iterable _value_ _name_ _missing_ _ignore_ "
              "_order_ _generate_next_value_".split())  # documented, though they look private
BY_OBJECT = {"format", "format_map", "obj", "__class__", "__setattr__", "__delattr__"}  # the guard `attr` decides


def bad(name, dunders=frozenset()):
    """Whether an identifier is refused; `dunders` are the special names that suit its place."""
    if name in FORBIDDEN:
        return True
    if not name.startswith("_") or not name.endswith("_") or not name.strip("_"):
        return False  # note that `__x` is the class-private form, mangled to `_Class__x`
    return name not in (dunders if name.startswith("__") else PRIVATE)

# ---------------------------------------------------------------- events


class Events:
    """JSON lines on a descriptor opened before the guest runs. Bounded in size and number."""
    __slots__ = ("fd", "left")

    def __init__(self, path):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self.fd, self.left = (os.open(path, flags, 0o600) if path else -1), 1000

    def put(self, event):
        line = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
        if len(line) > 8191:  # the worst escape is six bytes for one character
            event = {k: v[:1000] if type(v) is str else {} if k == "fields" else v for k, v in event.items()}
            line = json.dumps(dict(event, truncated=True), ensure_ascii=False).encode("utf-8", "replace")
        if self.left < 0 or self.fd < 0:
            return
        self.left -= 1
        os.write(self.fd, line + b"\n" if self.left >= 0 else b'{"kind":"capsule.dropped"}\n')


class Refused(AttributeError):
    """A name the capsule does not let through, met at run time."""


def guest_line():
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename != FILE:
        frame = frame.f_back
    return frame.f_lineno if frame else 0


def refuse(what, error=Refused, text=None):
    EVENTS.put({"kind": "capsule.refused", "what": what, "line": guest_line()})
    raise error(text or f"capsule: use of '{what}' is not allowed") from None


def plain(value, depth=0):
    """What JSON can say of a guest's value; the rest as repr. By exact type: a subclass could lie."""
    kind = type(value)
    if value is None or kind is bool or kind is str or (kind is int and -2**63 <= value < 2**64):
        return value
    if kind is float and value - value == 0:  # neither infinite nor NaN
        return value
    if depth < 8 and kind in (list, tuple):
        return [plain(v, depth + 1) for v in value]
    if depth < 8 and kind is dict and all(type(k) is str for k in value):
        return {k: plain(v, depth + 1) for k, v in value.items()}
    return repr(value)[:4000]

# ---------------------------------------------------------------- guards


def guest_made(cls):
    return type.__dict__["__dict__"].__get__(cls).get("__module__") == GUEST


def kind(obj):
    """type(obj), but never a metaclass: calling one makes classes that `vet` has not seen."""
    cls = type(obj)
    return Type if issubclass(cls, type) else cls


class _TypeMeta(type):
    def __call__(cls, *args):
        return kind(*args) if len(args) == 1 else refuse("type() with three arguments", TypeError)

    def __instancecheck__(cls, obj):
        return issubclass(type(obj), type)

    def __subclasscheck__(cls, other):
        return issubclass(other, type)


class Type(metaclass=_TypeMeta):
    __slots__ = ()
    __class_getitem__ = classmethod(GenericAlias)


Type.__name__ = Type.__qualname__ = "type"
_private_ok = set()


def private(obj, name):
    """`obj._name` is for what the guest made: the library keeps modules and makers of classes there."""
    cls = type(obj)
    if (cls, name) in _private_ok or name in PRIVATE or cls is FunctionType:
        return
    owner = obj if issubclass(cls, type) else obj.__self_class__ if cls is super else cls
    mro = type.__dict__["__mro__"].__get__
    for base in mro(owner) + (mro(cls) if owner is obj else ()):
        if name in type.__dict__["__dict__"].__get__(base):
            break  # the class that answers
    else:
        base = owner
    if not guest_made(base):
        refuse(name)
    if owner is cls:
        _private_ok.add((cls, name))


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name != "_"


def attr(obj, name):
    """Reads whose danger depends on the object."""
    if name == "__class__":
        return kind(obj)
    if is_private(name):
        private(obj, name)
    elif name == "obj" and issubclass(type(obj), BaseException):
        refuse("obj")  # AttributeError.obj: whatever object a failed look-up had reached
    value = getattr(obj, name)
    if name in ("format", "format_map"):  # judged by what came out, whichever way it was reached
        if type(value) is BuiltinMethodType and issubclass(type(value.__self__), str):
            text, function = value.__self__, formatters()[value.__name__]
            return lambda *args, **kw: function(text, *args, **kw)
        if type(value) is MethodDescriptorType and value.__objclass__ is str:
            return formatters()[value.__name__]
    if name in ("__setattr__", "__delattr__"):
        at = -2 if name == "__setattr__" else -1

        def change(*args):
            if len(args) + at not in (0, 1):
                raise TypeError(f"capsule: wrong number of arguments for {name}")
            named(args[at], WRITE)
            bound = obj.__self__ if type(obj) is super else obj
            writable(args[0] if len(args) + at else bound)
            return value(*args)
        return change
    return value


def formatters(made={}):
    """str.format and str.format_map that look attributes up through the guard."""
    if not made:
        from _string import formatter_field_name_split as split
        from string import Formatter

        class Guarded(Formatter):
            def get_field(self, field, args, kwargs):
                first, rest = split(field)
                obj = self.get_value(first, args, kwargs)
                for is_attribute, key in rest:
                    obj = guarded_getattr(obj, key) if is_attribute else obj[key]
                return obj, first
        run = Guarded().vformat
        made["format"] = lambda text, *args, **kw: run(str.__str__(text), args, kw)
        made["format_map"] = lambda text, mapping: run(str.__str__(text), (), mapping)
    return made


def named(name, dunders):
    """A run-time name: an exact str, since a subclass could answer differently each time."""
    if type(name) is not str:
        raise TypeError("capsule: attribute name must be a plain str")
    if bad(name, dunders) or not name.isidentifier():
        refuse(name)


def guarded_getattr(obj, name, *default):
    named(name, READ)
    try:
        return attr(obj, name)
    except Refused:
        raise
    except AttributeError:
        if default:
            return default[0]
        raise


def guarded_hasattr(obj, name):
    missing = object()
    return guarded_getattr(obj, name, missing) is not missing


def writable(obj, name=""):
    """Answers obj if the guest may set its attributes: what it made, not the library's classes."""
    cls = type(obj)
    if issubclass(cls, type):
        fine = guest_made(obj)
    else:
        fine = guest_made(cls) or issubclass(cls, BaseException) or cls.__module__ in ("decimal", "textwrap", "types") \
            or cls is FunctionType and obj.__globals__.get("__name__") == GUEST
    if not fine:
        refuse(f"attribute assignment on {obj.__name__ if issubclass(cls, type) else cls.__name__}", TypeError)
    if is_private(name):  # `x._n += y` is also a read
        private(obj, name)
    return obj


def guarded_setattr(obj, name, value):
    named(name, WRITE)
    setattr(writable(obj), name, value)


def guarded_delattr(obj, name):
    named(name, WRITE)
    delattr(writable(obj), name)


def build_class(body, name, *bases, **kw):
    if "metaclass" in kw:
        refuse("metaclass", TypeError)
    for base in bases:  # such an object could answer __mro_entries__ differently each time it is asked
        if not issubclass(type(base), type) and guest_made(type(base)):
            refuse("class derived from an object", TypeError)
    for base in resolve_bases(bases):
        # Not what is only reachable as type(x): a subclass of dataclasses.Field, say, could
        # answer with another name each time the library writes it into source text.
        if not issubclass(type(base), type) or not (guest_made(base) or base in BASES):
            refuse(f"class derived from {getattr(base, '__name__', kind(base).__name__)}", TypeError)
    return builtins.__build_class__(body, name, *bases, **kw)


# What a class may derive from, besides the guest's own: builtins, and classes `module` has shown.
BASES = {v for n, v in vars(builtins).items() if isinstance(v, type) and v not in (type, super, memoryview)}
try:
    from _typing import Generic
    BASES.add(Generic)  # `class Box[T]` derives from it without an import
except ImportError:
    pass


def leave(code=None):
    raise SystemExit(code)


def refused_call(name):
    def refused(*args, **kw):
        refuse(name, PermissionError)
    return refused

# ---------------------------------------------------------------- modules


def own_class(decorator):
    """A class decorator that only touches the guest's classes."""
    def decorate(cls=None, **kw):
        if cls is None:
            return lambda cls: decorate(cls, **kw)
        if not issubclass(type(cls), type) or not guest_made(cls):
            refuse(f"{decorator.__name__} on a class of the library", TypeError)
        if decorator.__name__ == "dataclass":  # it compiles source text made of these names
            try:
                from annotationlib import Format, get_annotations
                names = get_annotations(cls, format=Format.FORWARDREF)
            except ImportError:
                names = cls.__dict__.get("__annotations__", {})
            for name in list(names):
                named(name, frozenset())
                if name in ("format", "format_map"):
                    refuse(name)  # as __match_args__ it would read str.format
        return decorator(cls, **kw)
    return decorate


def update_wrapper(wrapper, wrapped):
    """functools' own copies any attribute name it is given, to any object with a __setattr__."""
    if type(wrapper) is FunctionType and writable(wrapper):
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            value = getattr(wrapped, name, None)
            if type(value) is str:
                setattr(wrapper, name, value)
        if type(wrapped) is FunctionType:
            wrapper.__dict__.update(wrapped.__dict__)
    return wrapper


class cached_property:
    """functools' own, called by classmethod, reads any entry of a class's __dict__."""
    __slots__ = ("func", "name")

    def __init__(self, func):
        self.func = func

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner=None):
        if obj is None or issubclass(type(obj), type):
            return self
        if self.name not in obj.__dict__:
            obj.__dict__[self.name] = self.func(obj)
        return obj.__dict__[self.name]


def namedtuple(typename, field_names, *, rename=False, defaults=None):
    from collections import namedtuple as real
    cls = real(typename, field_names, rename=rename, defaults=defaults, module=GUEST)
    for name in cls._fields:  # they become __match_args__
        if bad(name) or name in BY_OBJECT:
            refuse(name)
    return cls


class NamedTuple:
    """typing.NamedTuple as a base class; not its call form, which takes names as strings."""
    __slots__ = ()

    def __mro_entries__(self, bases):
        from typing import NamedTuple as real
        BASES.update(real.__mro_entries__((real,)))
        return real.__mro_entries__(tuple(real if base is self else base for base in bases))


def duplicate(obj, deep, memo):
    """copy and deepcopy. The library's believe __reduce__, __new__ and a method's __name__, and so
    become a setattr or getattr for any name on any object. Here only plain data and the guest's
    own plain instances are copied."""
    from collections import Counter, OrderedDict, defaultdict, deque
    cls = type(obj)
    if id(obj) in memo:
        return memo[id(obj)][0]

    def part(value):
        return duplicate(value, deep, memo) if deep else value

    def keep(new):
        memo[id(obj)] = (new, obj)  # obj too, so that its id stays its own
        return new
    if cls in (list, deque):
        new = keep([] if cls is list else deque(maxlen=obj.maxlen))
        new.extend([part(v) for v in obj])
    elif cls in (dict, Counter, OrderedDict, defaultdict):
        new = keep(obj.copy())
        for key in list(new):
            new[key] = part(new[key])
    elif cls in (set, bytearray):
        new = keep(cls(obj))
    elif issubclass(cls, tuple):
        new = keep(tuple.__new__(cls, [part(v) for v in tuple.__iter__(obj)]))
    elif issubclass(cls, (type, enum.Enum)) or cls.__module__ in ("builtins", "datetime", "decimal", "fractions", "re", "uuid"):
        new = obj
    elif guest_made(cls):
        for base in cls.__mro__:  # only the guest's own: UserDict's trusts what __new__ answers
            own = base.__dict__.get("__deepcopy__" if deep else "__copy__")
            if type(own) is FunctionType and guest_made(base):
                return keep(own(obj, {}) if deep else own(obj))
        new = keep(object.__new__(cls))  # a TypeError for subclasses of list, Exception ...
        if hasattr(obj, "__dict__"):
            new.__dict__.update({k: part(v) for k, v in list(obj.__dict__.items())})
        for base in cls.__mro__:
            slots = base.__dict__.get("__slots__", ())
            for slot in (slots,) if type(slots) is str else slots:
                slot = slot if not slot.startswith("__") else f"_{base.__name__.lstrip('_')}{slot}"
                if guest_made(base) and hasattr(obj, slot):
                    object.__setattr__(new, slot, part(getattr(obj, slot)))
    else:
        raise TypeError(f"capsule: cannot copy a {cls.__name__}")
    return new


real_enum_call = enum.EnumMeta.__call__


def checked_enum_call(cls, value, *names, **kw):
    """Enum("X", names) makes a class out of strings: they are judged as identifiers are."""
    names = names or ((kw.pop("names"),) if "names" in kw else ())
    if names and names[0] is not None and not cls.__members__:
        given = names[0]
        if type(given) is str:
            given = given.replace(",", " ").split()
        elif type(given) is dict:
            given = list(given.items())
        elif type(given) not in (list, tuple):
            raise TypeError("capsule: Enum names must be a str, list, tuple or dict")
        given = [item if type(item) is str else tuple(item) for item in given]
        for item in given:
            named(item if type(item) is str else item[0], frozenset())
        kw.setdefault("module", GUEST)
        names = (given,) + names[1:]
    return real_enum_call(cls, value, *names, **kw)


def override(module, name, real):
    if (module, name) in (("dataclasses", "dataclass"), ("functools", "total_ordering")):
        return own_class(real)
    return {
        ("functools", "update_wrapper"): update_wrapper, ("functools", "cached_property"): cached_property,
        ("functools", "wraps"): lambda wrapped: lambda wrapper: update_wrapper(wrapper, wrapped),
        ("collections", "namedtuple"): namedtuple, ("typing", "NamedTuple"): NamedTuple(),
    }.get((module, name), real)


_loaded = {}


def module(name):
    """A fresh module with the public names only: `json.codecs`, `random._os` are not in it."""
    if name not in _loaded:
        real, listed = importlib.import_module(name), MODULES[name].split()
        left_out = {n[1:] for n in listed if n[0] == "-"}
        names = listed if listed and not left_out else getattr(real, "__all__", dir(real))
        face = _loaded[name] = ModuleType(name)
        for n in names:
            value = getattr(real, n, real)
            if n[0] == "_" or n in left_out or isinstance(value, ModuleType):
                continue
            if not (isinstance(value, type) and issubclass(value, type)):  # no metaclasses
                shown = override(name, n, value)
                setattr(face, n, shown)
                if shown is value and isinstance(value, type):
                    BASES.add(value)

        def missing(n):
            text = f"capsule: '{name}.{n}' is not offered"
            if n[0] != "_" and hasattr(real, n):
                refuse(f"{name}.{n}", AttributeError, text)
            raise AttributeError(text)
        face.__getattr__ = missing
        if name == "collections":
            face.abc = module("collections.abc")
    return _loaded[name]


def guarded_import(name, globals=None, locals=None, fromlist=(), level=0):
    if type(fromlist) is list:  # C code of the library (datetime.strptime, say); a guest's is None or a tuple
        return importlib.import_module(name) and None  # it takes the module from sys.modules
    wanted = "." * level + name
    if level or name not in MODULES:
        refuse(f"import {wanted}", ImportError, f"capsule: import of '{wanted}' is not allowed; "
               f"allowed: {', '.join(m for m in MODULES if m[0] != '_')}")
    face = module(name)
    if fromlist and "*" in fromlist:  # afresh: what was put into the face must not become our globals
        del _loaded[name]
        fresh, _loaded[name] = module(name), face
        return fresh
    for n in fromlist or ():  # checked here: a miss would make the interpreter look in sys.modules
        if n not in face.__dict__:
            refuse(f"import {name}.{n}", ImportError, f"capsule: cannot import '{n}' from '{name}': not offered")
    return face if fromlist else module(name.split(".")[0])

# ---------------------------------------------------------------- the syntax tree


def vet(tree):
    """Judges every identifier and puts the guards in. Answers [(line, name)] of what is refused.

    Without recursion, children before parents, so a deep tree cannot stop it half way."""
    faults, literal = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) \
                and node.targets[0].id in LITERAL:
            value = node.value
            items = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
            if all(isinstance(i, ast.Constant) and type(i.value) is str and not bad(i.value)
                   and i.value not in BY_OBJECT for i in items):
                literal.add(node.targets[0])
                if isinstance(value, ast.List):  # a list could be changed afterwards
                    node.value = ast.copy_location(ast.Tuple(items, ast.Load()), value)

    for node in reversed(list(ast.walk(tree))):
        line = getattr(node, "lineno", 0)
        store = not isinstance(getattr(node, "ctx", None), ast.Load)
        if isinstance(node, ast.Name):
            fine = VARIABLES | (LITERAL if node in literal else set() if store else {"__name__", "__debug__"})
        elif isinstance(node, ast.Attribute):
            fine = WRITE if store else READ
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            fine = SPECIAL | HOOKS
        else:
            fine = frozenset({"__future__"} if isinstance(node, ast.ImportFrom) else ())
        for field, value in ast.iter_fields(node):
            if isinstance(node, ast.Constant) or field == "type_comment":
                continue
            several = value if isinstance(value, list) else [value]
            for i, item in enumerate(several):
                if isinstance(item, str):  # an identifier, whatever the node: future ones too
                    faults += [(line, part) for part in item.split(".") if bad(part, fine)]
                    if field == "kwd_attrs" and (item in BY_OBJECT or is_private(item)):
                        faults.append((line, item))  # `case str(format=f)` reads an attribute
                elif isinstance(item, ast.Attribute):
                    several[i] = guard(item, node, faults)
            if not isinstance(value, list) and several[0] is not value:
                setattr(node, field, several[0])
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) \
                and node.target.id in ("format", "format_map"):
            faults.append((line, node.target.id))  # a dataclass makes __match_args__ of it
    return sorted(set(faults))


def guard(node, parent, faults):
    name, by_object = node.attr, node.attr in BY_OBJECT or is_private(node.attr)

    def call(function, *args):
        # No source text can spell these names, so the guest can neither call nor hide them.
        return ast.Call(ast.Name(function, ast.Load()), list(args), [])
    if not isinstance(node.ctx, ast.Load):
        aug = isinstance(parent, ast.AugAssign)
        if aug and name in BY_OBJECT:
            faults.append((node.lineno, name))
        node.value = call("<write>", node.value, ast.Constant(name if aug else ""))
    elif by_object and type(parent).__name__.startswith("Match"):
        faults.append((node.lineno, name))  # no call can stand in a pattern
    elif by_object:
        return ast.copy_location(call("<attr>", node.value, ast.Constant(name)), node)
    return node

# ---------------------------------------------------------------- ctx


def make_ctx(state, config):
    from collections.abc import Mapping

    class Config(Mapping):
        """The configuration of the run, read-only."""
        __slots__ = ()
        __getitem__ = lambda self, key: config[key]
        __iter__ = lambda self: iter(tuple(config))
        __len__ = lambda self: len(config)
        __repr__ = lambda self: f"ctx.config({config!r})"

    class Ctx:
        """What the host offers: log, read_state, config."""
        __slots__ = ()

        def log(self, message, /, **fields):
            EVENTS.put({"kind": "capsule.log", "message": message if type(message) is str else repr(message)[:4000],
                        "fields": {str(k): plain(v) for k, v in fields.items()}})

        def read_state(self, key, /):
            if type(key) is not str or key not in state:
                raise KeyError(f"capsule: the state has no key {key!r}")
            return json.loads(json.dumps(state[key]))  # a copy: the state is read-only

        config = property(lambda self, config=Config(): config)
        __repr__ = lambda self: "ctx"

    return Ctx()

# ---------------------------------------------------------------- running


def say(text):
    try:
        sys.stderr.write(text if text.endswith("\n") else text + "\n")
    except (OSError, ValueError):
        pass


def show(error):
    """An ordinary traceback, of the guest's own frames."""
    hint = getattr(traceback, "_compute_suggestion_error", None)
    if hint:  # for an ImportError it would import whatever module the guest's exception names
        traceback._compute_suggestion_error = lambda e, *rest: None if isinstance(e, ImportError) else hint(e, *rest)
    shown = traceback.TracebackException(type(error), error, error.__traceback__)
    todo = [shown]
    while todo:
        part = todo.pop()
        part.stack[:] = [f for f in part.stack if f.filename == FILE]
        todo += [p for p in (part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())) if p]
    say("".join(shown.format()))


def load(path):
    """The guest's code object, or None when it was refused (and said so)."""
    import linecache
    with open(path, "rb") as file:
        data = file.read()
    try:
        source = data.decode("utf-8-sig")  # a coding cookie is not followed: one source, one reading
        linecache.cache[FILE] = (len(data), None, source.splitlines(True), FILE)
        tree = ast.parse(source, FILE)
        faults = vet(tree)
        for line, name in faults[:20]:
            EVENTS.put({"kind": "capsule.refused", "what": name, "line": line})
            say(f"capsule: line {line}: use of '{name}' is not allowed")
        return None if faults else compile(ast.fix_missing_locations(tree), FILE, "exec", dont_inherit=True)
    except SyntaxError as error:
        say("".join(traceback.format_exception_only(type(error), error)))
    except UnicodeDecodeError as error:
        say(f"capsule: main.py is not UTF-8 (byte {error.start})")
    except (RecursionError, MemoryError):
        say("capsule: main.py is nested too deeply")
    except (ValueError, TypeError) as error:  # NUL bytes; a guard where no call can stand
        say(f"capsule: main.py cannot be compiled: {error}")
    return None


def run(path, state, config):
    code = load(path)
    if code is None:
        return 1
    import copy
    enum.EnumMeta.__call__ = checked_enum_call
    copy.copy = lambda x: duplicate(x, False, {})  # in the module: dataclasses.asdict uses it too
    copy.deepcopy = lambda x, memo=None: duplicate(x, True, {})
    offered = {n: getattr(builtins, n) for n in PLAIN if hasattr(builtins, n)}
    offered.update({n: v for n, v in vars(builtins).items() if isinstance(v, type) and issubclass(v, BaseException)})
    offered.update({n: refused_call(n) for n in REFUSED})
    offered.update({"type": Type, "getattr": guarded_getattr, "hasattr": guarded_hasattr, "setattr": guarded_setattr,
                    "delattr": guarded_delattr, "exit": leave, "quit": leave, "__import__": guarded_import,
                    "__build_class__": build_class, "<attr>": attr, "<write>": writable})
    main = sys.modules[GUEST] = ModuleType(GUEST)  # the library looks a class's module up here
    names = main.__dict__
    for n in list(names):
        del names[n]
    names.update({"__name__": GUEST, "__doc__": None, "__builtins__": offered, "ctx": make_ctx(state, config)})
    sys.unraisablehook = lambda u: show(u.exc_value)  # an exception in __del__: again the guest's frames only
    status = 0
    try:
        exec(code, names)
    except SystemExit as stop:
        status = stop.args[0] if type(stop.args) is tuple and stop.args else 0
        if status is not None and type(status) is not int:
            say(str(status))
            status = 1
    except BaseException as error:
        status = 1
        show(error)
    for n in list(names):  # __del__ runs now, with the guards in place, and not during shutdown
        if n[:2] != "__":
            names[n] = None
    return (status or 0) & 0xFF


def start():
    """Reads what the engine said, runs the guest, and ends without an interpreter shutdown."""
    global EVENTS
    status = 1
    try:
        take = os.environ.pop
        EVENTS = Events(take("HOTCELL_EVENTS", ""))
        wanted, path = take("HOTCELL_CONFIG", "").split(","), take("HOTCELL_STATE", "")
        config = {n: os.environ[n] for n in wanted if n in os.environ and not n.startswith("HOTCELL_")}
        state = {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                state = json.load(file)
        if type(state) is not dict or len(sys.argv) != 2:
            raise ValueError("the state must be a JSON object" if len(sys.argv) == 2 else "usage: capsule.py main.py")
        status = run(sys.argv[1], state, config)
    except BaseException as error:  # also what a guest's __str__ or __del__ raised while we reported
        say(f"capsule: {type(error).__name__}: {error}" if isinstance(error, (OSError, ValueError))
            else "capsule: the program ended with an error that cannot be shown")
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        status = status or 1
    os._exit(status)


start()
