"""Shape checking of every annotated function of sabre while the tests run, and a cache of their own."""

import pytest
from jaxtyping import install_import_hook

install_import_hook("sabre", "beartype.beartype")


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """The cache on disk of the machine is neither read nor written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SABRE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
