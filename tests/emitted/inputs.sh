# inputs.sh -- for test scripts, which source it: $npy is the program that npy.c makes.

# Writes random arrays for the lines "; INPUT dtype dims" of a text, and sets $arguments to the flags that give them.
inputs() { # .etir, folder
    mkdir -p "$2"
    arguments=
    i=0
    while read -r dtype dims; do
        "$npy" random "$dtype" "$dims" "$i" "$2/in$i.npy"
        arguments="$arguments --input $2/in$i.npy"
        i=$((i + 1))
    done <<END
$(sed -n 's/^; INPUT //p' "$1")
END
}
