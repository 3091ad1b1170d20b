"""Settings arrive as the values they were."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pactgate.config.model import Config
from pactgate.config.server_settings import ServerConfig
from pactgate.pipeline.live_configuration import Standing
from pactgate.workers.parcels import pack, unpack
from tests.support.servers import scripted


def test_a_standing_arrives_whole_also_where_a_path_became_longer_than_a_file_may_say() -> None:
    deep = replace(scripted(), cwd="/" + "deep/" * 200, env={"KEY": "secret"})
    config = Config(servers={"files": deep}, secrets=("secret",), file="/etc/pactgate.json")
    standing = Standing(config, Config(), {"limits.maxArraySize": ("limits", "maxArraySize")})
    assert unpack(pack(standing), Standing) == standing


def test_what_is_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match="Config was expected, ServerConfig came"):
        unpack(pack(ServerConfig(id="files", command="x")), Config)
