"""The views of a dict of a heap: keys(), values(), items()."""

from collections.abc import ItemsView, KeysView, ValuesView

KEYS, VALUES, ITEMS = range(3)


class Keys(KeysView):
    __slots__ = ()

    def __iter__(self):
        return self._mapping._iterate(KEYS, False)

    def __reversed__(self):
        return self._mapping._iterate(KEYS, True)

    def __repr__(self):
        return f"dict_keys({list(self)!r})"

    @property
    def mapping(self):
        return self._mapping

    @classmethod
    def _from_iterable(cls, items):
        return set(items)


class Values(ValuesView):
    __slots__ = ()

    def __iter__(self):
        return self._mapping._iterate(VALUES, False)

    def __reversed__(self):
        return self._mapping._iterate(VALUES, True)

    def __contains__(self, value):
        return any(one is value or one == value for one in self)

    def __repr__(self):
        return f"dict_values({list(self)!r})"


class Items(ItemsView):
    __slots__ = ()

    def __contains__(self, item):
        return type(item) is tuple and len(item) == 2 and super().__contains__(item)

    def __iter__(self):
        return self._mapping._iterate(ITEMS, False)

    def __reversed__(self):
        return self._mapping._iterate(ITEMS, True)

    def __repr__(self):
        return f"dict_items({list(self)!r})"

    @classmethod
    def _from_iterable(cls, items):
        return set(items)
