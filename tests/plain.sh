#!/bin/sh
# plain.sh -- fails if a plain `meson setup` turns warnings into errors.  A compiler with more warnings
# would then break the builds of users, who cannot change the code.
meson introspect --buildoptions "${1:-.}/meson.build" | tr '{' '\n' |
    grep '"name": "werror"' | grep -q '"value": false'
