"""Pictures of lattices, as PNG images inside the page."""

import base64
import struct
import zlib

import numpy as np
from jaxtyping import Int, UInt8
from torch import Tensor

__all__ = ["encode_png", "lattice_grid", "palette", "png_data_uri"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPE = {1: 0, 3: 2, 4: 6}
_PAIR = ("#f3ead9", "#23395b")
_MANY = ("#23395b", "#e8a33d", "#c8553d", "#6fb3a5", "#f3ead9", "#7a5c8e", "#8fae5b", "#4f86c6", "#d98ba3", "#8a8174")
_GAP = 3


def encode_png(image: UInt8[np.ndarray, "height width channels"]) -> bytes:
    """A PNG file of a grey (1 channel), RGB (3) or RGBA (4) image, 8 bits per channel, without row filters."""
    height, width, channels = image.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPE[channels], 0, 0, 0)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], 1)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def png_data_uri(image: UInt8[np.ndarray, "height width channels"]) -> str:
    """The image as an address that holds all of it."""
    return "data:image/png;base64," + base64.b64encode(encode_png(image)).decode()


def palette(num_categories: int) -> UInt8[np.ndarray, "categories 3"]:
    """A colour per category: light and dark for two, distinct hues up to ten, a ramp from dark to light beyond."""
    if num_categories > len(_MANY):
        stops = _rgb(("#1d2a50", "#2f7f8c", "#7fb069", "#f2d35b"))
        place = np.linspace(0, len(stops) - 1, num_categories)
        ramp = [np.interp(place, np.arange(len(stops)), stops[:, c]) for c in range(3)]
        return np.stack(ramp, 1).round().astype(np.uint8)
    return _rgb(_PAIR if num_categories <= 2 else _MANY)[:num_categories]


def lattice_grid(
    x: Int[Tensor, "n rows columns"], num_categories: int, columns: int, tile: int = 96
) -> UInt8[np.ndarray, "height width 4"]:
    """The lattices side by side, `columns` per row, with transparent gaps; sites are enlarged by a whole factor.

    Each lattice becomes about `tile` pixels wide.
    """
    n, height, width = x.shape
    scale = max(1, -(-tile // max(height, width)))
    rows = -(-n // columns)
    image = np.zeros((rows * (height * scale + _GAP) - _GAP, columns * (width * scale + _GAP) - _GAP, 4), np.uint8)
    colours = palette(num_categories)[x.cpu().numpy()]
    for i in range(n):
        top, left = (i // columns) * (height * scale + _GAP), (i % columns) * (width * scale + _GAP)
        tile = colours[i].repeat(scale, 0).repeat(scale, 1)
        image[top : top + height * scale, left : left + width * scale, :3] = tile
        image[top : top + height * scale, left : left + width * scale, 3] = 255
    return image


def _rgb(names: tuple[str, ...]) -> UInt8[np.ndarray, "colours 3"]:
    return np.array([list(bytes.fromhex(name[1:])) for name in names], np.uint8)
