"""Lookups of keys in the memory of a GPU: results are there, too, in arrays of the caller's library."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import _core, _types
from ._core import Plan, Table, VectorSet
from .errors import InvalidArgument, InvalidType, KeyNotFound

# CUDA's handle for the stream that everybody shares, for a null pointer asks to wait.
_LEGACY_STREAM = 1


class _Torch:
    def __init__(self, like: Any) -> None:
        import torch

        self._torch, self._device = torch, like.device

    def stream(self) -> int:
        return self._torch.cuda.current_stream(self._device).cuda_stream or _LEGACY_STREAM

    def empty(self, rows: int, width: int) -> Any:
        return self._torch.empty((rows, width), dtype=self._torch.uint8, device=self._device)

    def pointer(self, array: Any) -> int:
        return array.data_ptr()

    def cells(self, rows: Any, offset: int, width: int, dtype: str) -> Any:
        kinds = {"?": "bool", "<f4": "float32", "<f8": "float64"}
        kinds.update({f"<{'u' if k == 'uint' else 'i'}{b // 8}": f"{k}{b}" for k in ("int", "uint") for b in (8, 16, 32, 64)})
        kind = getattr(self._torch, kinds.get(dtype, "uint8"))
        cells = rows[:, offset : offset + width]
        try:
            return cells.view(kind)
        except RuntimeError:  # the row is no multiple of the cell; contiguous() makes no copy of no rows
            return cells.clone(memory_format=self._torch.contiguous_format).view(kind)

    def zeros(self, n: int, like: Any) -> Any:
        return self._torch.zeros(n, dtype=like.dtype, device=self._device)

    def wait(self) -> None:
        self._torch.cuda.current_stream(self._device).synchronize()

    def bits(self, words: Any, n: int) -> Any:
        shifts = self._torch.arange(8, device=self._device, dtype=self._torch.uint8)
        return (words.reshape(-1, 1) >> shifts & 1).reshape(-1)[:n].bool()

    def booleans(self, array: Any) -> Any:
        return array.view(self._torch.bool).reshape(-1)

    def words_differ(self, array: Any) -> Any:
        return array.view(self._torch.int32)[:, 0] != -1

    def big_endian(self, array: Any, width: int) -> Any:
        return array.contiguous().view(self._torch.uint8).reshape(len(array), width).flip(1)

    def integers(self, array: Any) -> Any:
        return array.reshape(-1).to(self._torch.int32)


class _Cupy:
    def __init__(self, like: Any) -> None:
        import cupy

        self._cupy = cupy

    def stream(self) -> int:
        return self._cupy.cuda.get_current_stream().ptr or _LEGACY_STREAM

    def empty(self, rows: int, width: int) -> Any:
        return self._cupy.empty((rows, width), dtype="u1")

    def pointer(self, array: Any) -> int:
        return array.data.ptr

    def cells(self, rows: Any, offset: int, width: int, dtype: str) -> Any:
        cells = rows[:, offset : offset + width]
        return self._cupy.ascontiguousarray(cells).view("u1" if dtype == "raw" else dtype)

    def zeros(self, n: int, like: Any) -> Any:
        return self._cupy.zeros(n, dtype=like.dtype)

    def wait(self) -> None:
        self._cupy.cuda.get_current_stream().synchronize()

    def bits(self, words: Any, n: int) -> Any:
        return self._cupy.unpackbits(words.reshape(-1), bitorder="little")[:n].view("?")

    def booleans(self, array: Any) -> Any:
        return array.view("?").reshape(-1)

    def words_differ(self, array: Any) -> Any:
        return array.view("<i4")[:, 0] != -1

    def big_endian(self, array: Any, width: int) -> Any:
        lowest_first = self._cupy.ascontiguousarray(array).view("u1").reshape(len(array), width)
        return self._cupy.ascontiguousarray(lowest_first[:, ::-1])

    def integers(self, array: Any) -> Any:
        return array.reshape(-1).astype("i4")


class _Jax:
    """Arrays of JAX have no stream: calls wait for what they need and return when they are done."""

    def __init__(self, like: Any) -> None:
        import jax

        self._jax, self._device = jax, list(like.devices())[0]

    def stream(self) -> int:
        return 0

    def empty(self, rows: int, width: int) -> Any:
        # Nobody else has the array before it is written to.
        with self._jax.default_device(self._device):
            return self._jax.numpy.empty((rows, width), dtype="uint8").block_until_ready()

    def pointer(self, array: Any) -> int:
        return array.unsafe_buffer_pointer()

    def cells(self, rows: Any, offset: int, width: int, dtype: str) -> Any:
        import numpy as np

        kind = np.dtype("u1" if dtype == "raw" else dtype)
        if kind.itemsize == 8 and not self._jax.config.jax_enable_x64:
            raise InvalidArgument(
                "the column has numbers of 64 bits, which JAX has only where jax_enable_x64 is set",
                remedy="call jax.config.update('jax_enable_x64', True) first",
            )
        cells = rows[:, offset : offset + width].reshape(len(rows), width // kind.itemsize, kind.itemsize)
        if kind == bool:
            return cells[:, :, 0] != 0
        if kind.itemsize == 1:
            return self._jax.lax.bitcast_convert_type(cells[:, :, 0], kind)
        return self._jax.lax.bitcast_convert_type(cells, kind)

    def zeros(self, n: int, like: Any) -> Any:
        with self._jax.default_device(self._device):
            return self._jax.numpy.zeros(n, dtype=like.dtype).block_until_ready()

    def wait(self) -> None:
        pass  # arrays were waited for one by one

    def bits(self, words: Any, n: int) -> Any:
        return self._jax.numpy.unpackbits(words.reshape(-1), bitorder="little")[:n] != 0

    def booleans(self, array: Any) -> Any:
        return array.reshape(-1) != 0

    def words_differ(self, array: Any) -> Any:
        return self._jax.lax.bitcast_convert_type(array.reshape(-1, 2, 4), "int32")[:, 0] != -1

    def big_endian(self, array: Any, width: int) -> Any:
        return self._jax.lax.bitcast_convert_type(array, "uint8")[:, ::-1].block_until_ready()

    def integers(self, array: Any) -> Any:
        return array.reshape(-1).astype("int32")


def _library(array: Any) -> Any:
    module = type(array).__module__.split(".")[0]
    if module == "torch":
        return _Torch(array)
    if module == "cupy":
        return _Cupy(array)
    if module in ("jax", "jaxlib"):
        return _Jax(array)
    raise InvalidType(
        f"keys on a device are given as one {type(array).__name__} of {module}",
        remedy="give arrays of torch, cupy or jax, or copy the keys to the host",
    )


def _columns(self: Table, keys: Any) -> Tuple[List[Any], List[Tuple[int, int]], int]:
    """The arrays of the key columns, where their cells are, and how many rows they have."""
    types = self.key_columns
    arrays = list(keys) if isinstance(keys, (list, tuple)) else [keys]
    if len(arrays) != len(types):
        raise InvalidArgument(f"keys of the table have {len(types)} columns, and {len(arrays)} are given")
    places, rows = [], None
    for (name, type), array in zip(types.items(), arrays):
        if hasattr(array, "block_until_ready"):
            array.block_until_ready()
        interface = array.__cuda_array_interface__
        shape, typestr = tuple(interface["shape"]), interface["typestr"]
        wanted = _types.numpy_type(str(type))
        if wanted is None:  # UUIDs and bytes, as rows of bytes
            good = typestr in ("|u1", "<u1") and len(shape) == 2 and shape[1] == type.width
        else:
            good = typestr.lstrip("<|") == wanted.lstrip("<|").replace("?", "b1") and len(shape) == 1
        if not good:
            raise InvalidType(
                f"column {name!r} is of type {type}, and an array of {typestr} of shape {shape} is given",
                remedy="convert it on the device first",
            )
        strides = interface.get("strides") or (type.width,) + (1,) * (len(shape) - 1)
        if strides[0] < 0 or (len(shape) == 2 and strides[1] != 1):
            raise InvalidArgument(f"column {name!r} is an array whose cells do not ascend", remedy="make it contiguous")
        if rows is not None and rows != shape[0]:
            raise InvalidArgument(f"column {name!r} has {shape[0]} rows, and the first one has {rows}")
        rows = shape[0]
        places.append((interface["data"][0], strides[0]))
    return arrays, places, rows or 0


def _value_columns(self: Table, columns: Optional[Sequence[str]]) -> Tuple[Any, int, List[str]]:
    """The layout of the table's values, the bytes of a row, and which columns of it are wanted."""
    layout, width = _core._layout(self)
    names = [c[0] for c in layout] if columns is None else list(columns)
    missing = [name for name in names if name not in [c[0] for c in layout]]
    if missing:
        raise KeyNotFound(f"table {self.name!r} has no column {missing[0]!r} of values", remedy=self.schema)
    for name, _, _, nullable, _, _ in layout:
        if nullable and name in names:
            raise InvalidArgument(
                f"column {name!r} has cells that may be missing, which arrays on a device can't tell",
                remedy="choose other columns, or copy the keys to the host",
            )
    return layout, width, names


def _arrays_of(library: Any, values: Any, layout: Any, names: Sequence[str]) -> Dict[str, Any]:
    """The columns of rows of values."""
    result = {}
    for name, type, count, _, offset, cell in layout:
        if name not in names:
            continue
        kind = _types.numpy_type(type) or "raw"
        kind = f"<i{cell // max(count, 1)}" if kind.startswith("<M8") else kind
        cells = library.cells(values, offset, cell, kind)
        result[name] = cells if count or kind == "raw" else cells.reshape(-1)
    return result


def get(self: Table, keys: Any, columns: Optional[Sequence[str]] = None) -> Tuple[Any, Any]:
    """Values and which keys were found, in the device's memory, on the caller's stream.

    Of a table whose values are one cell: an array of n cells, or of shape (n, elements) for vectors; else a
    dict of such arrays. What is not found is 0.
    """
    arrays, places, rows = _columns(self, keys)
    library = _library(arrays[0])
    layout, width, names = _value_columns(self, columns)
    made = library.empty(rows, _core._key_width(self))
    values, there = library.empty(rows, width), library.empty(rows, 1)
    if rows:
        pointer = library.pointer
        _core._get_device(self, places, rows, pointer(made), pointer(values), pointer(there), library.stream())
    result = _arrays_of(library, values, layout, names)
    bare = columns is None and list(result) == ["value"]
    return (result["value"] if bare else result), library.booleans(there)


def contains(self: Table, keys: Any) -> Any:
    """Which keys are there, as booleans in the device's memory."""
    arrays, places, rows = _columns(self, keys)
    library = _library(arrays[0])
    made, locations = library.empty(rows, _core._key_width(self)), library.empty(rows, 8)
    if rows:
        pointer = library.pointer
        _core._find_device(self, places, rows, pointer(made), pointer(locations), library.stream())
    return library.words_differ(locations)


def _addresses(self: Table, addresses: Any, library: Any, width: int) -> Tuple[Any, int]:
    """The addresses as rows of bytes, the highest first, and how many they are."""
    if hasattr(addresses, "block_until_ready"):
        addresses.block_until_ready()
    interface = addresses.__cuda_array_interface__
    shape, typestr = tuple(interface["shape"]), interface["typestr"].lstrip("<|")
    bits = self.address_bits
    if len(shape) == 1 and bits in (32, 64) and typestr == f"u{width}":
        return library.big_endian(addresses, width), shape[0]
    if len(shape) != 2 or shape[1] != width or typestr != "u1":
        number = f"uint{bits}, or " if bits in (32, 64) else ""
        raise InvalidType(
            f"addresses of type {typestr} and shape {shape} are given, and table {self.name!r} has {bits} bits",
            remedy=f"give an array of {number}uint8 of shape (n, {width}), the highest byte first",
        )
    _in_one_piece(addresses, ("u1",), "addresses")
    return addresses, shape[0]


def match(self: Table, addresses: Any, columns: Optional[Sequence[str]] = None) -> Tuple[Dict[str, Any], Any]:
    """The longest prefixes of addresses, in the device's memory, on the caller's stream.

    A dict of the columns of values, of n cells each, and ``length`` in bits, as int32; and which addresses have
    a prefix. Where there is none all cells are 0.
    """
    address_width, prefix_width = _core._match_widths(self)
    library = _library(addresses)
    layout, width, names = _value_columns(self, columns)
    given, rows = _addresses(self, addresses, library, address_width)
    locations, prefixes = library.empty(rows, 8), library.empty(rows, prefix_width)
    values, there = library.empty(rows, width), library.empty(rows, 1)
    if rows:
        places = [library.pointer(array) for array in (locations, prefixes, values, there)]
        _core._match_device(self, library.pointer(given), rows, *places, library.stream())
    result = _arrays_of(library, values, layout, names)
    result["length"] = library.integers(prefixes[:, prefix_width - 1])
    return result, library.booleans(there)


def _in_one_piece(array: Any, wanted: Sequence[str], what: str) -> Tuple[int, Tuple[int, ...], str]:
    """Address, shape and type of an array whose elements lie one behind the other."""
    if hasattr(array, "block_until_ready"):
        array.block_until_ready()
    interface = array.__cuda_array_interface__
    shape, typestr = tuple(interface["shape"]), interface["typestr"].lstrip("<|")
    if typestr not in wanted:
        raise InvalidType(
            f"{what} of type {typestr} are given on a device", remedy=f"give an array of {', '.join(wanted)}"
        )
    if interface.get("strides") is not None:
        raise InvalidArgument(f"{what} do not lie in one piece", remedy="make the array contiguous")
    return interface["data"][0], shape, typestr


def _vectors(self: VectorSet, vectors: Any) -> Tuple[int, int]:
    address, shape, _ = _in_one_piece(vectors, ("u4", "i4"), "vectors")
    if shape != (shape[0], self.words) and not (self.words == 1 and len(shape) == 1):
        raise InvalidType(
            f"vectors of shape {shape} are given, and the set has such of {self.words} words",
            remedy=f"give an array of shape (n, {self.words})",
        )
    return address, shape[0]


def _search(self: VectorSet, vectors: Any, put: bool) -> Tuple[Any, Any]:
    address, n = _vectors(self, vectors)
    library = _library(vectors)
    ids, bits = library.empty(n, 8), library.empty((n + 63) // 64, 8)
    library.wait()
    if n:
        _core._find_or_put_device(self, address, n, library.pointer(ids), library.pointer(bits), put)
    return library.cells(ids, 0, 8, "<i8").reshape(-1), library.bits(bits, n) if put else None


def find_or_put(self: VectorSet, vectors: Any) -> Tuple[Any, Any]:
    """Ids (int64) and which vectors are new, in the memory of the set's device, once all is done."""
    return _search(self, vectors, True)


def find(self: VectorSet, vectors: Any) -> Any:
    """Ids as int64 in the memory of the set's device, -1 for what is not there, once all is done."""
    return _search(self, vectors, False)[0]


def map(self: Plan, weights: Any, into: Optional[Any], reproducible: bool) -> Any:
    """The sums of weights in the memory of the plan's device, on the caller's stream."""
    address, shape, typestr = _in_one_piece(weights, ("i4", "i8", "f4", "f8"), "weights")
    library = _library(weights)
    sums = library.zeros(self.targets, weights) if into is None else into
    where, room, kind = _in_one_piece(sums, (typestr,), "sums")
    if len(shape) != 1 or len(room) != 1:
        raise InvalidType(f"weights of shape {shape} and sums of shape {room} are given", remedy="give one dimension")
    named = f"{kind[0]}{int(kind[1]) * 8}"
    _core._map_device(self, named, address, shape[0], where, room[0], reproducible, library.stream())
    return sums
