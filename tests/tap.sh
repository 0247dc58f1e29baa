# tap.sh -- for test scripts, which source it: counts checks and prints TAP.  $dir is where a log may lie.
n=0
failed=0

report() { # ok|not ok, text
    n=$((n + 1))
    echo "$1 $n - $2"
    [ "$1" = ok ] || failed=1
}

skip() { # text, reason
    report ok "$1 # SKIP $2"
}

# Runs the rest in a shell of its own and reports it as one test; its last lines explain a failure.
check() { # text, command...
    text=$1
    shift
    if ("$@") >"$dir/log" 2>&1; then
        report ok "$text"
        return
    fi
    report "not ok" "$text"
    tail -n 15 "$dir/log" | sed 's/^/# /'
    return 1
}

# Prints the plan.  Fails if a check failed, or if fewer ran than there must be.
finish() { # the least number of checks
    echo "1..$n"
    [ "$n" -ge "$1" ] && [ "$failed" -eq 0 ]
}
