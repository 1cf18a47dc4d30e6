"""Shape checking of every annotated function of sabre while the tests run."""

from jaxtyping import install_import_hook

install_import_hook("sabre", "beartype.beartype")
