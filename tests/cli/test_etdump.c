/* test_etdump.c -- tests profiles in ExecuTorch's format and debug maps.  flatc made small.etdp
 * with the schema of ExecuTorch 1.4.1, from the events in tests/data/etdump/record.py. */
#include "tests/cli/cli.h"

TestSuite(etdump, .init = make_folders, .fini = remove_folders);

static void make_files(void)
{
    write_text("m.etir", "program \"m\" stage aten\nmethod @forward(%x: f32[2,3]) {\n"
                         "  %a = aten.relu.default(%x) : f32[2,3] from \"net.act\", \"m.py:1\"\n"
                         "  %b = aten.tanh.default(%a) : f32[2,3] from \"net\", \"m.py:2\"\n"
                         "  return %b\n}\n");
    write_images("x.npy", "2, 3", (const float[]){0, 3, -1, 2, 5, 0}, 6);
    ok("compile m.etir -o m.pte -q --debug-map m.map.json");
}

static const Json *event(const Json *x, const char *name, int64_t instruction)
{
    int64_t at;
    for (JsonIter it = json_iter(json_get(x, "events")); json_next(&it);) {
        bool has = json_int(json_get(it.value, "instruction"), &at);
        if (!strcmp(text(it.value, "name"), name) && (has ? at : -1) == instruction)
            return it.value;
    }
    cr_assert_fail("no event %s at %d", name, (int)instruction);
    return NULL;
}

Test(etdump, what_run_writes_is_joined_with_the_map)
{
    make_files();
    ok("run m.pte --input x.npy --next --input x.npy --output-dir out --etdump m.etdp -q");
    Result r = ok("inspect --etdump m.etdp --map m.map.json --json");
    const Json *x = json(&r), *e = event(x, "aten::tanh.out", 1);
    cr_expect_eq(number(x, "runs"), 2);
    cr_expect_eq(number(e, "calls"), 2);
    cr_expect_str_eq(text(e, "node"), "b");
    cr_expect_str_eq(text(e, "module"), "net");
    cr_expect_str_eq(text(e, "source"), "m.py:2");
    cr_expect_eq(number(event(x, "OPERATOR_CALL", 0), "calls"), 2);
    cr_expect_null(json_get(event(x, "Method::execute", -1), "node"));
    r = ok("inspect --etdump m.etdp --map m.map.json");
    cr_expect_not_null(strstr(r.out, "aten::relu.out  a (aten.relu.default) net.act, m.py:1"), "%s", r.out);
    r = ok("inspect --etdump m.etdp");
    cr_expect_null(strstr(r.out, "m.py"));
}

/* As the schema has it, with its defaults: an instruction that is absent is none, not 0. */
Test(etdump, reads_what_flatc_made)
{
    static const char *const file[] = {"small.etdp", "small_sized.etdp"};
    for (int i = 0; i < 2; i++) {
        Result r = ok(arena_printf(arena, "inspect --etdump $DATA/etdump/%s --json", file[i]));
        const Json *x = json(&r), *e = event(x, "native_call_add.out", 0);
        cr_expect_eq(number(x, "runs"), 2);
        cr_expect_eq(number(e, "ticks"), 30);
        cr_expect_eq(number(e, "min_ticks"), 10);
        cr_expect_eq(number(e, "max_ticks"), 20);
        e = event(x, "Method::execute", -1);
        cr_expect_null(json_get(e, "delegate_number"));
        e = event(x, "", 7);
        cr_expect_str_eq(text(e, "delegate_name"), "conv_0");
        e = event(x, "fused", 7);
        cr_expect_eq(number(e, "delegate_number"), 3);
        cr_expect_eq(number(e, "ticks"), 0); /* it ends before it starts */
    }
}

Test(etdump, a_map_holds_methods_and_parts)
{
    ok("compile --method a=$DATA/cnn_digits/model.pt2 --method b=$DATA/mlp_digits/model.pt2 -o two.pte "
       "--backend xnnpack --debug-map two.json -q");
    fails("inspect --etdump $DATA/etdump/small.etdp --map two.json", 1, "--method NAME says");
    fails("inspect --etdump $DATA/etdump/small.etdp --map two.json --method a", 1,
          "it is the map of another file");
    Result r = ok("inspect --etdump $DATA/etdump/one.etdp --map two.json --method a --json");
    const Json *e = event(json(&r), "part", 0);
    cr_expect_str_eq(text(e, "op"), "aten.convolution.default");
    cr_expect_str_eq(text(event(json(&r), "DELEGATE_CALL", 0), "op"), "XnnpackBackend");
}

/* Cut anywhere, or with any byte changed, it is read or refused, with a message. */
Test(etdump, damaged_files_are_refused, .timeout = 120)
{
    Result r = sh("f=$DATA/etdump/small_sized.etdp; n=$(stat -c %s $f); i=0; while [ $i -lt $n ]; do "
                  "head -c $i $f > cut; \"$ETC\" inspect --etdump cut > /dev/null 2> err; c=$?; "
                  "[ $c = 1 ] && [ -s err ] || { echo at $i: $c; exit 1; }; i=$((i+5)); done");
    cr_expect_eq(r.code, 0, "%s", r.out);
    write_text("text.etdp", "this is not a dump at all");
    fails("inspect --etdump text.etdp", 1, "it is not an ETDump");
    fails("inspect --etdump none.etdp", 3, "none.etdp");
    write_text("map.json", "{\"methods\": [{\"name\": \"forward\", \"instructions\": [{\"index\": 1}]}]}");
    fails("inspect --etdump $DATA/etdump/one.etdp --map map.json", 1, "instruction 0 is not what");
    write_text("map.json", "{\"methods\": 3}");
    fails("inspect --etdump $DATA/etdump/one.etdp --map map.json", 1, "has no 'methods'");
    fails("inspect m.pte --etdump x.etdp", 2, "one or the other");
    fails("inspect m.pte --map x.json", 2, "--map needs --etdump");
}

Test(etdump, a_failed_run_writes_none)
{
    make_files();
    fails("run m.pte --input value:1 --etdump m.etdp", 1, "input 0");
    fails("run m.pte --input x.npy --etdump none/m.etdp -q", 3, "none/m.etdp");
    fails("compile m.etir -o n.pte --debug-map none/m.json", 3, "none/m.json");
    expect_files("m.etir m.map.json m.pte x.npy ");
}
