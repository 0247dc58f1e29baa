#!/bin/sh
# plain.sh -- fails where a plain `meson setup` makes warnings errors: a compiler that knows more of them
# would break the builds of users, who cannot mend them.
meson introspect --buildoptions "${1:-.}/meson.build" | tr '{' '\n' |
    grep '"name": "werror"' | grep -q '"value": false'
