/* test_data.c -- tests samples from .npy and .npz files: which files are read and as how many
 * samples, and the messages about files that are not read or that change. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "compiler/compiler.h"
#include "tests/unit/folder.h"

TestSuite(data, .init = enter_folder, .fini = leave_folder);

/* -- files made by hand ----------------------------------------------------------------------- */

typedef struct Bytes {
    uint8_t *data;
    size_t n;
} Bytes;

static void put(Bytes *b, const void *data, size_t n)
{
    b->data = realloc(b->data, b->n + n + 1);
    if (n)
        memcpy(b->data + b->n, data, n);
    b->n += n;
}

static void put16(Bytes *b, unsigned v)
{
    put(b, (uint8_t[]){(uint8_t)v, (uint8_t)(v >> 8)}, 2);
}

static void put32(Bytes *b, size_t v)
{
    put16(b, (unsigned)v & 0xffff);
    put16(b, (unsigned)(v >> 16) & 0xffff);
}

static Bytes npy(const char *dict, const void *data, size_t n)
{
    Bytes b = {0};
    put(&b, "\x93NUMPY\1\0", 8);
    put16(&b, (unsigned)strlen(dict) + 1);
    put(&b, dict, strlen(dict));
    put(&b, "\n", 1);
    put(&b, data, n);
    return b;
}

#define F4(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }"

/* n floats from `first` on, in the given shape. */
static Bytes floats(const char *shape, int n, double first)
{
    char dict[128];
    float *x = calloc((size_t)n + 1, sizeof *x);
    for (int i = 0; i < n; i++)
        x[i] = (float)(first + i);
    snprintf(dict, sizeof dict, F4("%s"), shape);
    Bytes b = npy(dict, x, (size_t)n * sizeof *x);
    free(x);
    return b;
}

static void save(const char *name, Bytes b)
{
    FILE *f = fopen(name, "wb");
    cr_assert(f && fwrite(b.data, 1, b.n, f) == b.n && !fclose(f));
    free(b.data);
}

typedef struct Zip {
    Bytes file, directory;
    unsigned n;
} Zip;

static Bytes deflated(Bytes b)
{
    z_stream s = {0};
    Bytes out = {malloc(b.n + 64), 0};
    cr_assert_eq(deflateInit2(&s, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    s.next_in = b.data;
    s.avail_in = (uInt)b.n;
    s.next_out = out.data;
    s.avail_out = (uInt)b.n + 64;
    cr_assert_eq(deflate(&s, Z_FINISH), Z_STREAM_END);
    out.n = s.total_out;
    deflateEnd(&s);
    return out;
}

static void put_entry(Bytes *to, const char *name, Bytes b, Bytes packed, unsigned method)
{
    put16(to, 0);
    put16(to, method);
    put32(to, 0);
    put32(to, crc32(0, b.data, (uInt)b.n));
    put32(to, packed.n);
    put32(to, b.n);
    put16(to, (unsigned)strlen(name));
    put16(to, 0);
}

static void add_member(Zip *z, const char *name, Bytes b, bool deflate_it)
{
    Bytes packed = deflate_it ? deflated(b) : b;
    unsigned method = deflate_it ? 8 : 0;
    size_t at = z->file.n;
    put(&z->file, "PK\3\4\24\0", 6);
    put_entry(&z->file, name, b, packed, method);
    put(&z->file, name, strlen(name));
    put(&z->file, packed.data, packed.n);
    put(&z->directory, "PK\1\2\24\0\24\0", 8);
    put_entry(&z->directory, name, b, packed, method);
    put(&z->directory, (uint8_t[10]){0}, 10);
    put32(&z->directory, at);
    put(&z->directory, name, strlen(name));
    z->n++;
    if (deflate_it)
        free(packed.data);
    free(b.data);
}

static void save_zip(const char *name, Zip *z)
{
    size_t at = z->file.n;
    put(&z->file, z->directory.data, z->directory.n);
    put(&z->file, "PK\5\6\0\0\0\0", 8);
    put16(&z->file, z->n);
    put16(&z->file, z->n);
    put32(&z->file, z->directory.n);
    put32(&z->file, at);
    put16(&z->file, 0);
    save(name, z->file);
    free(z->directory.data);
}

/* -- reading ---------------------------------------------------------------------------------- */

#define ONE "(%x: f32[1,3])"
#define TWO "(%x: f32[1,3], %t: f32[2])"

typedef struct Read {
    Arena *a;
    Diag d;
    char *told;
    size_t n_told;
    Program *p;
    Data *data;
    Samples s;
} Read;

static void start(Read *r, const char *inputs, const char *path)
{
    char text[512];
    *r = (Read){.a = arena_new()};
    r->d.out = open_memstream(&r->told, &r->n_told);
    snprintf(text, sizeof text,
             "program \"m\" stage core\n%smethod @forward%s {\n  return %%x\n}\n",
             strstr(inputs, "%b") ? "sym %b in 1..8\n" : "", inputs);
    Source src = {.file = "m.etir", .text = text, .line = 1};
    r->p = program_parse(r->a, &src, &(Diag){.out = stderr});
    cr_assert_not_null(r->p, "%s", text);
    r->data = data_open(files_new(r->a), path, r->p->method[0], r->a, &r->d);
    fflush(r->d.out);
    cr_expect_eq(!r->data, diag_errors(&r->d) > 0, "%s", r->told);
    if (r->data)
        r->s = data_samples(r->data);
}

static void stop(Read *r)
{
    data_close(r->data);
    fclose(r->d.out);
    free(r->told);
    arena_free(r->a);
}

/* The first element of input k of sample i; NaN: the sample was refused. */
static double first_of(Read *r, int i, int k, const char **name)
{
    EtcTensor *in[4];
    int64_t symbol[4];
    bool ok = r->s.read(r->s.ctx, i, r->a, in, symbol, name, &r->d);
    fflush(r->d.out);
    return ok ? (double)((const float *)in[k]->data)[0] : (double)NAN;
}

static void expect_samples(const char *inputs, const char *path, int n, double first, double step)
{
    Read r;
    const char *name;
    start(&r, inputs, path);
    cr_assert_not_null(r.data, "%s: %s", path, r.told);
    cr_expect_eq(r.s.n, n, "%s: %d samples", path, r.s.n);
    for (int i = r.s.n - 1; i >= 0; i--) /* backwards: each file is opened anew */
        cr_expect_eq(first_of(&r, i, 0, &name), first + step * i, "%s, sample %d", path, i);
    stop(&r);
}

static void expect_refused(const char *inputs, const char *path, const char *told)
{
    Read r;
    start(&r, inputs, path);
    cr_expect_null(r.data, "%s was read", path);
    cr_expect_not_null(strstr(r.told, told), "%s: not '%s' but\n%s", path, told, r.told);
    stop(&r);
}

Test(data, a_first_axis_is_that_of_samples)
{
    save("one.npy", floats("(1, 3)", 3, 5));
    expect_samples(ONE, "one.npy", 1, 5, 0);
    save("rows.npy", floats("(4, 3)", 12, 5));
    expect_samples(ONE, "rows.npy", 4, 5, 3);
    save("calls.npy", floats("(4, 1, 3)", 12, 5));
    expect_samples(ONE, "calls.npy", 4, 5, 3);
    expect_samples("(%x: f32[2,3])", "rows.npy", 2, 5, 6);
    expect_samples("(%x: f32[%b,3])", "rows.npy", 1, 5, 0);
    expect_samples("(%x: f32[%b,1,3])", "calls.npy", 1, 5, 0);
    expect_refused("(%x: f32[3,3])", "rows.npy",
                   "rows.npy: error: is f32[4,3], expected f32[3,3] as input 'x' is, or several");
    expect_refused("(%x: f32[1,4])", "rows.npy", "is f32[4,3]");
    expect_refused("(%x: f64[1,3])", "rows.npy", "expected f64[1,3] as input 'x' is");
    expect_refused("(%x: f32[3])", "calls.npy", "is f32[4,1,3]");
    save("many.npy", floats("(9, 3)", 27, 5));
    expect_refused("(%x: f32[%b,3])", "many.npy", "is f32[9,3]");
    save("none.npy", floats("(0, 3)", 0, 0));
    expect_refused(ONE, "none.npy", "contains no samples");
}

Test(data, a_folder_is_read_in_the_order_of_bytes)
{
    static const char *const name[] = {"10", "2", "B", "_", "a", "\xc3\xa4"};
    cr_assert(!mkdir("set", 0700));
    for (int i = 0; i < 6; i++) {
        char path[64];
        snprintf(path, sizeof path, "set/%s.npy", name[i]);
        save(path, floats("(1, 3)", 3, i));
    }
    save("set/.hidden", floats("(1, 3)", 3, 9));
    expect_samples(ONE, "set", 6, 0, 1);
    expect_samples(ONE, "set/", 6, 0, 1);
    save("set/a.npy", floats("(2, 3)", 6, 4));
    Read r;
    const char *sample;
    start(&r, ONE, "set");
    cr_expect_eq(r.s.n, 7);
    cr_expect_eq(first_of(&r, 5, 0, &sample), 7);
    cr_expect_str_eq(sample, "set/a.npy, sample 1");
    stop(&r);
}

Test(data, a_folder_tells_all_that_is_wrong)
{
    cr_assert(!mkdir("set", 0700) && !mkdir("empty", 0700) && !mkdir("set/folder.npy", 0700));
    save("set/a.npy", floats("(1, 3)", 3, 0));
    save("set/b.npy", floats("(1, 4)", 4, 0));
    save("set/c.npy", npy(F4("(1, 3)"), "", 0));
    save("set/labels.txt", npy("", "", 0));
    save("set/notes.md", npy("", "", 0));
    save("set/zoo.txt", npy("", "", 0));
    cr_assert(!symlink("nowhere", "set/d.npy"));
    Read r;
    start(&r, ONE, "set");
    cr_expect_null(r.data);
    static const char *const want[] = {
        "set/labels.txt: error: is neither .npy nor .npz, like 2 other files of this folder",
        "set/b.npy: error: is f32[1,4]",
        "set/c.npy: error: ends within its data", "set/d.npy: error: cannot be read: No such file",
        "set/folder.npy: error: is not a regular file"};
    for (int i = 0; i < 5; i++)
        cr_expect_not_null(strstr(r.told, want[i]), "not '%s' but\n%s", want[i], r.told);
    cr_expect_null(strstr(r.told, "set/a.npy"));
    cr_expect_null(strstr(r.told, "set/notes.md"));
    stop(&r);
    expect_refused(ONE, "empty", "empty: error: contains no samples");
    expect_refused(ONE, "missing", "missing: error: cannot be read: No such file");
    expect_refused(ONE, "", "cannot be read");
    save("x.txt", floats("(1, 3)", 3, 0));
    expect_refused(ONE, "x.txt", "samples are a .npy file, a .npz file, or a folder of such");
    cr_assert(!mkfifo("pipe.npy", 0600));
    expect_refused(ONE, "pipe.npy", "is not a regular file");
    expect_refused("(%x: f32[1,3] = 3)", "set", "the model has no inputs");
}

Test(data, members_are_inputs_by_name_or_number)
{
    static const char *const names[][2] = {{"t", "x"}, {"input_0", "input_1"}, {"arr_1", "arr_0"}};
    for (int way = 0; way < 6; way++) {
        Zip z = {0};
        for (int k = 0; k < 2; k++) {
            const char *n = names[way % 3][k];
            char member[32];
            bool is_x = !strcmp(n, "x") || strstr(n, "_0");
            snprintf(member, sizeof member, "%s.npy", n);
            add_member(&z, member, is_x ? floats("(5, 3)", 15, 7) : floats("(5, 2)", 10, 70),
                       way >= 3);
        }
        save_zip("a.npz", &z);
        expect_samples(TWO, "a.npz", 5, 7, 3);
        Read r;
        const char *name;
        start(&r, TWO, "a.npz");
        cr_expect_eq(first_of(&r, 4, 1, &name), 78);
        cr_expect_str_eq(name, "a.npz, sample 4");
        stop(&r);
    }
}

Test(data, members_that_do_not_fit_are_told)
{
    static const struct {
        const char *member[3];
        const char *told;
    } row[] = {
        {{"x.npy"}, "a.npz: error: has no member for input 't'"},
        {{"x.npy", "u.npy"}, "member 'u.npy' is not an input; these are x, t"},
        {{"x.npy", "input_0.npy"}, "member 'input_0.npy' is input 'x', which another one is too"},
        {{"x", "t.npy"}, "member 'x' is not an input"},
        {{"in/x.npy", "in/t.npy"}, "member 'in/x.npy' is not an input"},
        {{"x.npy", "t.npy", "u.npy"}, "member 'u.npy' is not an input"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Zip z = {0};
        for (int k = 0; k < 3 && row[i].member[k]; k++)
            add_member(&z, row[i].member[k],
                       strchr(row[i].member[k], 't') && !strstr(row[i].member[k], "_0")
                           ? floats("(2,)", 2, 0)
                           : floats("(1, 3)", 3, 0),
                       false);
        save_zip("a.npz", &z);
        expect_refused(TWO, "a.npz", row[i].told);
    }
    Zip z = {0};
    add_member(&z, "x.npy", floats("(5, 3)", 15, 0), true);
    add_member(&z, "t.npy", floats("(4, 2)", 8, 0), true);
    save_zip("a.npz", &z);
    expect_refused(TWO, "a.npz", "has 5 samples of input 'x', but 4 of 't'");
    save("x.npy", floats("(1, 3)", 3, 0));
    expect_refused(TWO, "x.npy", "is one array, the model has 2 inputs: give a .npz");
    save("x.npz", floats("(1, 3)", 3, 0));
    expect_refused(TWO, "x.npz", "no zip end record");
    save("x.npz", (Bytes){calloc(1, 1), 0});
    expect_refused(TWO, "x.npz", "no zip end record");
}

Test(data, a_member_is_not_believed)
{
    Zip z = {0};
    add_member(&z, "x.npy", npy(F4("(1, 3)"), "", 0), true);
    save_zip("a.npz", &z);
    expect_refused(ONE, "a.npz", "a.npz: member 'x.npy': error: ends within its data");
    Zip y = {0};
    add_member(&y, "x.npy", floats("(1, 3)", 3, 0), false);
    y.file.data[60] ^= 1;
    save_zip("a.npz", &y);
    expect_refused(ONE, "a.npz", "its checksum is wrong");
}

/* -- headers ---------------------------------------------------------------------------------- */

Test(data, headers_are_not_believed)
{
    static const struct {
        const char *dict, *told;
    } row[] = {
        {F4("(4611686018427387904, 2)"), "shape has a size that no tensor can have"},
        {F4("(2147483647, 2147483647, 2147483647)"), "shape overflows"},
        {F4("(2147483647, 2)"), "ends within its data"},
        {F4("(99999999999999999999,)"), "shape has a size that no tensor can have"},
        {F4("(-1, 3)"), "shape has a size that no tensor can have"},
        {F4("(1, 3.0)"), "header has no shape"},
        {F4("(0x3,)"), "header has no shape"},
        {F4("(1, 3"), "shape has a size that no tensor can have"},
        {F4("[1, 3]"), "header has no shape"},
        {F4("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,3)"), "shape has a size that no tensor can have"},
        {F4("__import__('os').system('id')"), "header has no shape"},
        {"__import__('os').system('id')", "header is not that of a .npy file"},
        {"{'descr': __import__('os'), 'fortran_order': False, 'shape': (1, 3)}", "no plain dtype"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", "structured"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1, 3)}", "object arrays are not read"},
        {"{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}", "dtype is none that a tensor"},
        {"{'descr': '<f44', 'fortran_order': False, 'shape': (1,)}", "dtype is none that a tensor"},
        {"{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,)}",
         "dtype is none that a tensor"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1, 3)}",
         "big-endian data is not read"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 3)}", "Fortran order"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1, 3)}", "header has no order"},
        {"{'descr': '<f4', 'shape': (1, 3)}", "header is not that of a .npy file"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), 'shape': (1, 3)}",
         "not that of"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), 'more': 1}", "not that of"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3)} + 1", "not that of"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (1, 3)}", "not that of"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3)", "not that of"},
        {"", "header is not that of a .npy file"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        save("x.npy", npy(row[i].dict, (float[3]){0}, 12));
        expect_refused(ONE, "x.npy", row[i].told);
        Zip z = {0};
        add_member(&z, "x.npy", npy(row[i].dict, (float[3]){0}, 12), i % 2);
        save_zip("x.npz", &z);
        expect_refused(ONE, "x.npz", row[i].told);
    }
    save("x.npy",
         npy("{\"shape\":(1,3),\"fortran_order\":False,\"descr\":\"<f4\"}   ", (float[3]){1}, 12));
    expect_samples(ONE, "x.npy", 1, 1, 0);
}

Test(data, a_file_cut_anywhere_is_refused)
{
    Bytes whole = floats("(2, 3)", 6, 0);
    for (size_t n = 0; n < whole.n; n++) {
        Bytes part = {malloc(n + 1), n};
        memcpy(part.data, whole.data, n);
        save("x.npy", part);
        expect_refused(ONE, "x.npy", "x.npy: error: ");
    }
    free(whole.data);
    Bytes huge = {0};
    put(&huge, "\x93NUMPY\2\0\0\0\0\x40", 12); /* a header of 1 GiB */
    put(&huge, "{}", 2);
    save("x.npy", huge);
    expect_refused(ONE, "x.npy", "has a header longer than 64 KiB");
    Bytes version = floats("(1, 3)", 3, 0);
    version.data[6] = 9;
    save("x.npy", version);
    expect_refused(ONE, "x.npy", "is not a .npy file of version 1, 2 or 3");
}

/* -- what happens later ----------------------------------------------------------------------- */

Test(data, numbers_that_are_none_name_sample_and_input)
{
    static const float bad[3][3] = {{1, 2, NAN}, {INFINITY, 2, 3}, {1, -INFINITY, 3}};
    static const char *const told[] = {"element 2 of input 'x' is not a number (NaN)",
                                       "element 0 of input 'x' is infinite",
                                       "element 1 of input 'x' is infinite"};
    for (int i = 0; i < 3; i++) {
        Read r;
        const char *name;
        float x[6] = {1, 2, 3};
        memcpy(x + 3, bad[i], sizeof bad[i]);
        save("x.npy", npy(F4("(2, 3)"), x, sizeof x));
        start(&r, ONE, "x.npy");
        cr_assert_eq(r.s.n, 2);
        cr_expect_eq(first_of(&r, 0, 0, &name), 1);
        cr_expect(isnan(first_of(&r, 1, 0, &name)));
        cr_expect_not_null(strstr(r.told, "x.npy, sample 1: error: "), "%s", r.told);
        cr_expect_not_null(strstr(r.told, told[i]), "%s", r.told);
        stop(&r);
    }
}

static void change(int how)
{
    if (how == 0)
        cr_assert(!unlink("set/b.npy"));
    if (how == 1)
        cr_assert(!truncate("set/b.npy", 80));
    if (how == 2)
        save("set/b.npy", floats("(2, 3)", 6, 0));
    if (how == 3)
        cr_assert(!truncate("rows.npy", 150));
    if (how == 4)
        save("set/b.npy", floats("(1, 4)", 4, 0));
}

Test(data, files_that_change_meanwhile_are_told)
{
    static const char *const told[] = {"cannot be read: No such file", "ends within its data",
                                       "changed while its samples were read",
                                       "changed while it was read", "is f32[1,4]"};
    cr_assert(!mkdir("set", 0700));
    for (int how = 0; how < 5; how++) {
        Read r;
        const char *name;
        save("set/a.npy", floats("(1, 3)", 3, 1));
        save("set/b.npy", floats("(1, 3)", 3, 2));
        save("set/c.npy", floats("(1, 3)", 3, 3));
        save("rows.npy", floats("(50, 3)", 150, 0));
        start(&r, ONE, how == 3 ? "rows.npy" : "set");
        cr_assert_not_null(r.data, "%s", r.told);
        cr_expect_eq(first_of(&r, 0, 0, &name), how == 3 ? 0 : 1);
        change(how);
        cr_expect(isnan(first_of(&r, how == 3 ? 40 : 1, 0, &name)), "change %d", how);
        cr_expect_not_null(strstr(r.told, told[how]), "change %d: %s", how, r.told);
        cr_expect_gt(diag_errors(&r.d), 0);
        stop(&r);
    }
}

/* Samples are read one by one: what is held does not grow with their number. */
Test(data, memory_does_not_grow_with_the_samples)
{
    enum { N = 100000 };
    Read r;
    const char *name;
    save("rows.npy", floats("(100000, 3)", 3 * N, 0));
    start(&r, ONE, "rows.npy");
    cr_assert_eq(r.s.n, N);
    Arena *tmp = arena_new(), *kept = r.a;
    r.a = tmp;
    for (int i = 0; i < N; i += 997) {
        cr_expect_eq(first_of(&r, i, 0, &name), (double)(float)(3 * i));
        arena_reset(tmp);
    }
    r.a = kept;
    arena_free(tmp);
    stop(&r);
}
