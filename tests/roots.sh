# roots.sh -- a part of ./dev: does a checkout do on a fresh Debian what the README promises?
#
# Conformance needs torch and runs on the host alone: its wheels bring what they run on.
#
# debootstrap makes a root from the system's own mirror.  The root gets the checkout, and what apt and
# pip need here to reach their servers; everything else `./dev` has to install there itself.

ROOTS=$ROOT/build-roots

# Prints the local files and folders that pip is told to take packages and certificates from.
pip_paths() {
    { cat /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf" 2> /dev/null || true
      env | grep '^PIP_' || true
    } | grep -oE '/[^ =,]+' | sed 's,^//*,/,; s,/simple/*$,,' | sort -u |
        while read -r path; do [ ! -e "$path" ] || echo "$path"; done
}

copy_in() { # root, then files that it gets under the names they have here, where there are any
    local to=$1 path
    shift
    for path in "$@"; do
        [ -f "$path" ] || continue
        as_root mkdir -p "$to${path%/*}"
        as_root cp -L "$path" "$to$path"
    done
}

# A copy of pip's certificates that no package of the root writes over.
copy_certificates() { # root
    local cert
    cert=${PIP_CERT:-$(python3 -m pip config get global.cert 2> /dev/null || true)}
    [ ! -f "$cert" ] || as_root cp -L "$cert" "$1/pip.pem"
}

make_root() { # suite, folder
    local list name=debian.sources
    as_root rm -rf "$2"
    list=$(debian_list "$1" "$ROOTS" deb)
    as_root debootstrap --variant=minbase "$1" "$2" \
        "$(grep -v '^#' "$list" | grep -oE 'https?://[^ ]+' | head -n 1)" || return 1
    [ "${list##*.}" = sources ] || name=debian.list
    as_root rm -f "$2/etc/apt/sources.list"
    as_root cp "$list" "$2/etc/apt/sources.list.d/$name"
    apt-config dump | grep '^Acquire::' | as_root tee "$2/etc/apt/apt.conf.d/99here" > /dev/null
    # shellcheck disable=SC2046
    copy_in "$2" /etc/resolv.conf /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf" \
        $(pip_paths)
    copy_certificates "$2"
    as_root mkdir -p "$2/checkout" "$2$HOME"
    tar -c --exclude='./build*' --exclude=./.venv --exclude=./.git . | as_root tar -x -C "$2/checkout"
}

# In namespaces of its own: what is mounted there does not outlive the command, nor what it starts.
# Old pips prefer the two bundles to PIP_CERT, and a package of the root has overwritten what they name.
in_root() { # root, then a command that runs in its checkout
    # shellcheck disable=SC2016
    as_root env -u CC -u ETC_SEEDS -u ETC_SIZES -u ETC_BLESS \
        -u REQUESTS_CA_BUNDLE -u CURL_CA_BUNDLE PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        PIP_PATHS="$(pip_paths)" unshare --mount --pid --fork --kill-child sh -ec '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        for path in $PIP_PATHS; do
            [ -d "$path" ] || continue
            mkdir -p "$1$path"
            mount --bind "$path" "$1$path"
        done
        [ ! -f "$1/pip.pem" ] || export PIP_CERT=/pip.pem
        exec chroot "$@"' sh "$1" sh -c 'cd /checkout && exec "$@"' sh "${@:2}"
}

row() { # suite, what is done, command: counts it as passed or failed
    local log=$ROOTS/$1.$2.log verdict=ok
    "${@:3}" > "$log" 2>&1 || verdict=FAIL
    printf '%-4s %-9s %-10s %s\n' "$verdict" "$1" "$2" "$(tail -n 1 "$log")"
    if [ $verdict = ok ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        tail -n 40 "$log" | sed 's/^/    /'
        return 1
    fi
}

roots() { # suites, then --counts FILE
    local passed=0 failed=0 root
    packages debootstrap
    mkdir -p "$ROOTS"
    while [ "$1" != --counts ]; do
        root=$ROOTS/$1
        if row "$1" debootstrap make_root "$1" "$root"; then
            row "$1" demo in_root "$root" ./dev demo
            row "$1" compilers in_root "$root" ./dev compilers clang
            row "$1" test in_root "$root" ./dev test --no-conformance
        fi
        shift
    done
    echo "$passed $failed 0" >> "$2"
}
