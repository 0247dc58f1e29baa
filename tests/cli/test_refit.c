/* test_refit.c -- tests `etc refit`, which puts new weights into a .pte.  The result is compared
 * with a compile of the new model.  tests/conformance/refit.py does the same with more models and
 * with weights from torch. */
#include "tests/cli/cli.h"

/* mlp_digits unpacked, and the same with the signs of some weights turned: new/. */
static void make_models(void)
{
    make_folders();
    Result r = sh("python3 -m zipfile -e $DATA/mlp_digits/model.pt2 . && cp -r model new && python3 -c '\n"
                  "import struct\n"
                  "for i in range(6):\n"
                  "    p = f\"new/data/weights/weight_{i}\"\n"
                  "    b = bytearray(open(p, \"rb\").read())\n"
                  "    for k in range(3, len(b), 12): b[k] ^= 128\n"
                  "    open(p, \"wb\").write(b)\n'");
    cr_assert_eq(r.code, 0, "%s", r.err);
}

TestSuite(refit, .init = make_models, .fini = remove_folders, .timeout = 120);

#define SAMPLES "$DATA/quantized/mlp_digits_calibration.npy "

/* The weights of a folder as a safetensors file; `more` is Python that may change `t`, name to
 * [dtype, shape, bytes]. */
static void write_tensors(const char *folder, const char *path, const char *more)
{
    char line[2048];
    snprintf(line, sizeof line,
             "python3 -c '\n"
             "import json, struct\n"
             "shapes = {\"0.weight\": [64, 64], \"0.bias\": [64], \"3.weight\": [32, 64], \"3.bias\": [32],\n"
             "          \"5.weight\": [10, 32], \"5.bias\": [10]}\n"
             "t = {k: [\"F32\", s, open(f\"%s/data/weights/weight_{i}\", \"rb\").read()]\n"
             "     for i, (k, s) in enumerate(shapes.items())}\n"
             "%s\n"
             "at, head = 0, {\"__metadata__\": {\"format\": \"pt\"}}\n"
             "for k, (d, s, b) in t.items():\n"
             "    head[k] = {\"dtype\": d, \"shape\": s, \"data_offsets\": [at, at + len(b)]}\n"
             "    at += len(b)\n"
             "h = json.dumps(head).encode()\n"
             "f = open(\"%s\", \"wb\")\n"
             "f.write(struct.pack(\"<Q\", len(h)) + h + b\"\".join(b for _, _, b in t.values()))\n'",
             folder, more, path);
    Result r = sh(line);
    cr_assert_eq(r.code, 0, "%s", r.err);
}

static const char *const flags[] = {
    "",
    "--backend xnnpack",
    "--dim input.0=1..8",
    "--recipe int8-weight",
    "--recipe int8-dynamic --backend xnnpack",
    "--recipe int4-group32",
    "--borrow-inputs",
    "--recipe int4-group32 --backend xnnpack --delegate all",
};

Test(refit, gives_the_bytes_of_a_compile)
{
    write_tensors("new", "new.safetensors", "");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        char line[512];
        snprintf(line, sizeof line, "compile model -o old.pte --refittable -q %s", flags[i]);
        ok(line);
        snprintf(line, sizeof line, "compile new -o want.pte --refittable -q %s", flags[i]);
        ok(line);
        ok("refit old.pte --weights new -o a.pte -q");
        ok("refit old.pte --weights new.safetensors -o b.pte -q");
        expect_same("a.pte", "want.pte");
        expect_same("b.pte", "want.pte");
        cr_expect_neq(sh("cmp -s old.pte want.pte").code, 0, "the weights are the same: %s", flags[i]);
        ok("refit b.pte --weights model -o c.pte -q");
        expect_same("c.pte", "old.pte");
    }
}

Test(refit, keeps_what_samples_showed)
{
    ok("quantize model --recipe int8 --calibrate " SAMPLES "--statistics s.txt -q");
    ok("quantize new --recipe int8 --calibrate " SAMPLES "--statistics new.txt -q");
    ok("compile model -o old.pte --refittable -q --recipe int8 --statistics s.txt");
    ok("refit old.pte --weights new -o a.pte -q");
    ok("refit a.pte --weights model -o b.pte -q");
    expect_same("b.pte", "old.pte");
    /* the old ranges, as if they had been seen of the new model */
    sh("sed \"2s/.*/$(sed -n 2p new.txt)/\" s.txt > mixed.txt");
    ok("compile new -o want.pte -q --recipe int8 --statistics mixed.txt");
    ok("run a.pte --input $DATA/mlp_digits/input_0.npy --output-dir a -q");
    ok("run want.pte --input $DATA/mlp_digits/input_0.npy --output-dir want -q");
    ok("run old.pte --input $DATA/mlp_digits/input_0.npy --output-dir old -q");
    expect_same("a/output_0.npy", "want/output_0.npy");
    cr_expect_neq(sh("cmp -s a/output_0.npy old/output_0.npy").code, 0);
}

Test(refit, keeps_a_recipe_of_ones_own)
{
    write_text("r.yaml", "preset: int8-weight\nrules:\n  - scope: {name: linear_1}\n    weight: float32\n");
    ok("compile model -o old.pte --refittable -q --recipe r.yaml");
    ok("compile new -o want.pte --refittable -q --recipe r.yaml");
    sh("rm r.yaml");
    ok("refit old.pte --weights new -o a.pte -q");
    expect_same("a.pte", "want.pte");
}

Test(refit, the_record_changes_nothing_else)
{
    ok("compile model -o old.pte --refittable -q");
    ok("compile model -o plain.pte -q");
    ok("run old.pte --input $DATA/mlp_digits/input_0.npy --output-dir a -q");
    ok("run plain.pte --input $DATA/mlp_digits/input_0.npy --output-dir b -q");
    expect_same("a/output_0.npy", "b/output_0.npy");
    Result r = ok("refit old.pte --weights new -o a.pte --json");
    cr_expect_str_eq(text(json(&r), "output"), "a.pte");
    ok("refit old.pte --weights new --dry-run");
    fails("refit model/data/weights/weight_0 --weights new -o x.pte", 1, "weight_0: error: ");
    fails("refit old.pte --weights new -o old.pte", 2, "'old.pte' is read");
    fails("refit old.pte --weights new.none -o x.pte", 3, "new.none: error: ");
    fails("refit old.pte -o x.pte", 2, "--weights is missing");
    fails("refit old.pte --weights new", 2, "-o is missing");
    fails("compile --method a=model --refittable -o x.pte", 2, "--refittable needs one model");
    cr_expect_neq(sh("test -e x.pte").code, 0);
}

Test(refit, takes_a_plain_file_whose_program_stays)
{
    static const char *const backend[] = {"", "--backend xnnpack"};
    for (int i = 0; i < 2; i++) {
        ok(arena_printf(arena, "compile model -o plain.pte -q %s", backend[i]));
        ok(arena_printf(arena, "compile new -o want.pte -q %s", backend[i]));
        ok("refit plain.pte --weights new -o a.pte -q");
        expect_same("a.pte", "want.pte");
    }
    ok("compile model -o plain.pte -q --recipe int8-weight");
    fails("refit plain.pte --weights new -o x.pte", 1, "these weights need another plan");
    fails("refit plain.pte --weights new.safetensors -o x.pte", 1,
          "keeps no graph, which a .safetensors needs: compile it with --refittable");
    cr_expect_neq(sh("test -e x.pte").code, 0);
}

Test(refit, tells_each_difference_of_a_model)
{
    ok("compile model -o old.pte --refittable -q");
    Result r = etc("refit old.pte --weights $DATA/cnn_digits/model.pt2 -o x.pte");
    cr_expect_eq(r.code, 1);
    cr_expect_not_null(strstr(r.err, "is not the same model: %linear = aten.linear.default(%flatten, "
                                     "%p_6_weight, %p_6_bias) : f32[1,10]; it was: %linear = "), "%s", r.err);
    cr_expect_not_null(strstr(r.err, "\"0.weight\" : f32[64,64] in \"0\"+0 is gone\n"), "%s", r.err);
    cr_expect_not_null(strstr(r.err, "\"0.0.weight\" : f32[16,1,3,3] in \"0\"+0 is new\n"), "%s", r.err);
    cr_expect_neq(sh("test -e x.pte").code, 0);
}

static const struct {
    const char *change, *message;
} tensor_row[] = {
    {"del t[\"0.bias\"]; del t[\"5.weight\"]", "'0.bias' (f32[64]) is missing\n"},
    {"del t[\"0.bias\"]; del t[\"5.weight\"]", "'5.weight' (f32[10,32]) is missing\n"},
    {"t[\"3.weight\"][1] = [64, 32]", "'3.weight' is f32[64,32], was f32[32,64]\n"},
    {"t[\"3.weight\"][0] = \"I32\"", "'3.weight' is i32[32,64], was f32[32,64]\n"},
    {"t[\"3.weight\"][0] = \"F4\"", "'3.weight' is of dtype 'F4', which is not supported\n"},
    {"t[\"3.weight\"][1] = [32, 65]", "'3.weight' has no sizes and offsets that fit the file\n"},
    {"t[\"3.weight\"][1] = [2**62, 64]", "'3.weight' has no sizes and offsets that fit the file\n"},
    {"t[\"3.weight\"][1] = [-32, -64]", "'3.weight' has no sizes and offsets that fit the file\n"},
    {"t[\"3.weight\"][1] = [1] * 40", "'3.weight' has no sizes and offsets that fit the file\n"},
    {"t[\"3.weight\"][1] = 5", "'3.weight' has no sizes and offsets that fit the file\n"},
};

Test(refit, tells_each_difference_of_tensors)
{
    ok("compile model -o old.pte --refittable -q");
    for (size_t i = 0; i < sizeof tensor_row / sizeof *tensor_row; i++) {
        write_tensors("new", "x.safetensors", tensor_row[i].change);
        fails("refit old.pte --weights x.safetensors -o x.pte", 1, tensor_row[i].message);
        cr_expect_neq(sh("test -e x.pte").code, 0);
    }
    write_tensors("new", "x.safetensors", "t[\"head\"] = t[\"0.bias\"]");
    Result r = ok("refit old.pte --weights x.safetensors -o x.pte -q");
    cr_expect_not_null(strstr(r.err, "warning: contains 1 tensors that the model does not read: 'head'"),
                       "%s", r.err);
}

static const char *const broken[] = {
    "b[:4]",
    "b[:100]",
    "b[:-1]",
    "b[:8] + b\"]\" + b[9:]",
    "b\"\\xff\" * 8 + b[8:]",
    "struct.pack(\"<Q\", len(b)) + b[8:]",
    "b[:9] + b\"\\0\" + b[10:]",
    "b\"\"",
};

Test(refit, a_damaged_file_of_tensors_is_refused)
{
    ok("compile model -o old.pte --refittable -q");
    write_tensors("new", "y.safetensors", "");
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "python3 -c 'import struct; b = open(\"y.safetensors\", \"rb\").read(); "
                 "open(\"z.safetensors\", \"wb\").write(%s)'", broken[i]);
        cr_assert_eq(sh(line).code, 0);
        fails("refit old.pte --weights z.safetensors -o x.pte", 1, "z.safetensors: error: ");
        cr_expect_neq(sh("test -e x.pte").code, 0);
    }
}

/* Same lengths, so that the file around the record stays whole. */
static const struct {
    const char *from, *to, *message;
} record_row[] = {
    {"etc.refit 1 ", "etc.refit 7 ", "its record for refit is damaged"},
    {"--backend 7", "--backend 8", "its record for refit is damaged"},
    {"--backend 7", "--backend x", "its record for refit is damaged"},
    {"--backend 7\nxnnpack", "--backend 7\nxnnpakk", "its record for refit is damaged"},
    {"preset 11\nint8-weight", "preset 11\n/etc/passwd", "its record for refit is damaged"},
    {"--delegate 3", "--calibrat 3", NULL}, /* of no interest */
    {"graph ", "grapf ", "its record for refit is damaged"},
    {"aten.linear.default(%relu", "aten.linear.default(%rule", "error: "},
    {"\"5.bias\"", "\"5.bios\"", "'5.bios' (f32[10]) is missing"},
    {"f32[10,32] in", "f32[99,99] in", "'5.weight' is f32[10,32], was f32[99,99]"},
};

Test(refit, a_damaged_record_is_refused)
{
    ok("compile model -o old.pte --refittable -q --backend xnnpack --delegate all --recipe int8-weight");
    write_tensors("new", "new.safetensors", "");
    for (size_t i = 0; i < sizeof record_row / sizeof *record_row; i++) {
        size_t n;
        char *b = slurp("old.pte", &n);
        char *at = memmem(b, n, record_row[i].from, strlen(record_row[i].from));
        cr_assert_not_null(at, "%s", record_row[i].from);
        memcpy(at, record_row[i].to, strlen(record_row[i].to));
        FILE *f = fopen("bad.pte", "wb");
        cr_assert(f && fwrite(b, 1, n, f) == n && !fclose(f));
        if (record_row[i].message)
            fails("refit bad.pte --weights new.safetensors -o x.pte", 1, record_row[i].message);
        else
            ok("refit bad.pte --weights new.safetensors -o y.pte -q");
        cr_expect_neq(sh("test -e x.pte").code, 0);
    }
}

/* A file with any bytes of its record changed is refused or gives a file, and nothing else. */
Test(refit, random_damage_of_a_record)
{
    size_t n;
    uint32_t random = 1;
    ok("compile model -o old.pte --refittable -q --recipe int4-group32");
    write_tensors("new", "new.safetensors", "");
    char *b = slurp("old.pte", &n), *from = memmem(b, n, "etc.refit 1 ", 12);
    cr_assert_not_null(from);
    size_t span = n - (size_t)(from - b);
    for (int i = 0; i < 120; i++) {
        char *copy = memcpy(NEW(arena, char, n), b, n);
        for (int k = 0; k < 1 + i % 3; k++) {
            random = random * 1664525 + 1013904223;
            copy[(size_t)(from - b) + (random >> 8) % span] = (char)(random >> 5);
        }
        FILE *f = fopen("bad.pte", "wb");
        cr_assert(f && fwrite(copy, 1, n, f) == n && !fclose(f));
        Result r = etc("refit bad.pte --weights new.safetensors -o x.pte -q");
        cr_expect(r.code == 0 || r.code == 1 || r.code == 4, "exit %d: %s", r.code, r.err);
    }
}

Test(refit, another_build_of_etc_is_told)
{
    ok("compile model -o old.pte --refittable -q");
    cr_assert_eq(sh("sed -i 's/etc.refit 1 ./etc.refit 1 z/' old.pte").code, 0);
    fails("refit old.pte --weights new -o x.pte", 1, "was compiled by another build of etc");
}
