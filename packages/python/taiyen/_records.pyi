from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar, dataclass_transform, overload

_T = TypeVar("_T")

i1 = Annotated[int, "i1"]
i2 = Annotated[int, "i2"]
i4 = Annotated[int, "i4"]
i8 = Annotated[int, "i8"]
u1 = Annotated[int, "u1"]
u2 = Annotated[int, "u2"]
u4 = Annotated[int, "u4"]
u8 = Annotated[int, "u8"]
f4 = Annotated[float, "f4"]
f8 = Annotated[float, "f8"]
c8 = Annotated[complex, "c8"]
c16 = Annotated[complex, "c16"]

# A checker takes no call for a type: write Annotated[str, size] where one is used.
def text(size: int) -> Any: ...
@overload
@dataclass_transform()
def record(plain: type[_T], /, *, name: str | None = None) -> type[_T]: ...
@overload
@dataclass_transform()
def record(plain: None = None, /, *, name: str | None = None) -> Callable[[type[_T]], type[_T]]: ...
def dtype(of: type) -> Any: ...

class records(list[_T]):
    of: type[_T]
    def __init__(self, of: type[_T], items: Iterable[_T] = (), /) -> None: ...
