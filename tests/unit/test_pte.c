/* test_pte.c -- tests .pte files: their contents, what is refused, and how they are written to the
 * disk.
 *
 * tests/conformance/test_emit_pte.py runs them in the official runtime. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emit/emit.h"
#include "runtime-lite/etc_rt.h"

static Arena *arena;
static char *messages;
static size_t message_bytes;
static Diag diag;

static void begin(void)
{
    arena = arena_new();
    diag = (Diag){.out = open_memstream(&messages, &message_bytes)};
}

static void end(void)
{
    fclose(diag.out);
    free(messages);
    arena_free(arena);
}

TestSuite(pte, .init = begin, .fini = end);
TestSuite(out, .init = begin, .fini = end);

/* States take their bytes from `data` at their offset in the side file. */
static Program *parse(const char *text, uint8_t *data)
{
    Source src = {.file = "test.etir", .text = text, .line = 1};
    Program *p = program_parse(arena, &src, &diag);
    fflush(diag.out);
    cr_assert_not_null(p, "%s", messages);
    for (int i = 0; data && i < p->n_states; i++)
        if (!strcmp(p->state[i]->file, "-")) {
            p->state[i]->data = data + p->state[i]->offset;
            p->state[i]->n_bytes = type_bytes(p->state[i]->type);
        }
    return p;
}

static uint8_t *join(const OutFile *f, size_t *n)
{
    *n = 0;
    for (int i = 0; i < f->n; i++)
        *n += (size_t)(f->piece[i].n + f->piece[i].zeros);
    uint8_t *all = NEW(arena, uint8_t, *n < 256 ? 256 : *n), *to = all; /* 64-byte aligned */
    for (int i = 0; i < f->n; i++) {
        memcpy(to, f->piece[i].data, (size_t)f->piece[i].n);
        to += f->piece[i].n + f->piece[i].zeros;
    }
    return all;
}

static uint8_t *emit(const char *text, uint8_t *data, PteStats *stats, size_t *n)
{
    OutFile f;
    bool ok = emit_pte(parse(text, data), arena, &f, stats, &diag);
    fflush(diag.out);
    cr_assert(ok, "%s", messages);
    uint8_t *file = join(&f, n);
    cr_expect_eq((int64_t)*n, stats->file_bytes);
    return file;
}

/* -- what a file holds ------------------------------------------------------------------- */

static const char add[] =
    "program \"a\" stage planned\n"
    "method @forward(%x: f32[2,3] at 1:0, %y: f32[2,3] at 1:32) pools [96] {\n"
    "  %o = aten.add.Tensor(%x, %y, 1) : f32[2,3] at 1:64\n"
    "  return %o\n}\n";

static const char many[] =
    "program \"m\" stage planned\n"
    "sym %s0 in 1..4\n"
    "mutable %n = \"n\" : i64[] at 1:0 in \"-\"+0\n"
    "mutable %z = \"z\" : f32[2] at 1:8 in \"-\"+64\n"
    "const %one = \"\" : i64[] in \"-\"+16\n"
    "param %w = \"w\" : f32[3,4] in \"-\"+32\n"
    "param %v = \"v\" : f32[4,3] in \"-\"+32\n"
    "method @forward(%x: f32[%s0,4] at 1:16, %p: bool[] at 1:80) pools [256] {\n"
    "  %a = aten.add.Tensor(%n, %one, 1) : i64[] at 1:0\n"
    "  %k = aten.sym_size.int(%x, 0) : int\n"
    "  %r = executorch_prim.et_view.default(%x, [%k, 4]) : f32[%s0,4] at 1:16\n"
    "  %l = aten.linear.default(%r, %w, none) : f32[%s0,3] at 1:96\n"
    "  %o = higher_order.cond(%p, graph (%t: f32[%s0,3] at 1:96) {\n"
    "    %b = aten.relu.default(%t) : f32[%s0,3] at 1:144\n"
    "    return %b\n"
    "  }, graph (%t: f32[%s0,3] at 1:96) {\n"
    "    %b = aten.neg.default(%t) : f32[%s0,3] at 1:144\n"
    "    return %b\n"
    "  }, [%l]) : f32[%s0,3] at 1:144\n"
    "  update %n = %a\n"
    "  return %o, %v, %z, %k\n}\n"
    "method @also(%x: f32[4] at 1:0) pools [16] {\n"
    "  return %x\n}\n";

static void loads(const EtcProgram *p, int method)
{
    EtcError e = {0};
    EtcMemory m;
    EtcMethod *loaded;
    void *pool[16] = {0};
    cr_assert_eq(etc_program_memory(p, method, &m, &e), ETC_OK, "%s", e.what);
    for (int i = 0; i < m.n_pools; i++)
        pool[i] = NEW(arena, char, m.pool_bytes[i] + 256);
    EtcStatus ok = etc_method_init(p, method, NEW(arena, char, m.table_bytes + 256), pool,
                                   NEW(arena, char, m.scratch_bytes + 256), &loaded, &e);
    cr_expect_eq(ok, ETC_OK, "%s %s", e.what, e.name ? e.name : "");
}

static void opens(const uint8_t *file, size_t n, int methods)
{
    EtcProgram p;
    EtcError e = {0};
    cr_assert_eq(etc_program_open(&p, file, n, &e), ETC_OK, "%s", e.what);
    cr_assert_eq(etc_program_n_methods(&p), methods);
    for (int i = 0; i < methods; i++)
        loads(&p, i);
}

Test(pte, without_constants_is_a_bare_flatbuffer)
{
    PteStats s;
    size_t n;
    const uint8_t *file = emit(add, NULL, &s, &n);
    cr_expect(!memcmp(file + 4, "ET12", 4));
    cr_expect(memcmp(file + 8, "eh00", 4) != 0);
    cr_expect_eq(s.flat_bytes, s.file_bytes);
    cr_expect_eq(s.constant_bytes, 0);
    cr_expect_eq(s.n_values, 4);
    cr_expect_eq(s.n_instructions, 1);
    opens(file, n, 1);
}

Test(pte, with_constants_has_header_and_aligned_segments)
{
    PteStats s;
    size_t n;
    uint64_t header[3];
    uint8_t data[128];
    for (int i = 0; i < 128; i++)
        data[i] = i < 64 ? (uint8_t)(i + 1) : 0;
    const uint8_t *file = emit(many, data, &s, &n);
    opens(file, n, 2);
    cr_assert(!memcmp(file + 8, "eh00\x20\0\0\0", 8));
    memcpy(header, file + 16, sizeof header);
    cr_expect_eq((int64_t)header[0], s.flat_bytes);
    cr_expect_eq(header[1] % 128, 0u);
    cr_expect_eq(header[1] + header[2], n);
    cr_expect_eq(header[2], 128u + 8); /* constants, then what %n starts with; %z is zero */
    cr_expect_eq(s.constant_bytes, 16 + 48);
    cr_expect(!memcmp(file + header[1] + 16, data + 32, 48) ||
              !memcmp(file + header[1], data + 32, 48));
    cr_expect(!memcmp(file + header[1] + 128, data, 8));
}

Test(pte, gives_the_same_bytes_again)
{
    PteStats s;
    size_t n, m;
    uint8_t data[128] = {7};
    const uint8_t *a = emit(many, data, &s, &n), *b = emit(many, data, &s, &m);
    cr_assert_eq(n, m);
    cr_expect(!memcmp(a, b, n));
}

Test(pte, points_at_constants_and_holds_equal_ones_once)
{
    enum { N = 1 << 20 };
    uint8_t *data = NEW(arena, uint8_t, 3 * N);
    memset(data, 3, 2 * N);
    memset(data + 2 * N, 4, N);
    data[2 * N] = 3;
    OutFile f;
    PteStats s;
    Program *p = parse("program \"c\" stage planned\n"
                       "param %a = \"a\" : u8[1048576] in \"-\"+0\n"
                       "param %b = \"b\" : i8[1024,1024] in \"-\"+1048576\n"
                       "param %c = \"c\" : u8[1048576] in \"-\"+2097152\n"
                       "method @forward() {\n  return %a, %b, %c\n}\n",
                       data);
    cr_assert(emit_pte(p, arena, &f, &s, &diag));
    cr_expect_eq(s.constant_bytes, 2 * N);
    int found = 0;
    for (int i = 0; i < f.n; i++)
        found += f.piece[i].data == data || f.piece[i].data == data + 2 * N;
    cr_expect_eq(found, 2);
}

Test(pte, shares_literals_but_not_what_prim_ops_write)
{
    PteStats s;
    size_t n;
    emit("program \"l\" stage planned\nsym %s0 in 1..4\n"
         "method @forward(%x: f32[%s0,4] at 1:0) pools [128] {\n"
         "  %a = aten.sym_size.int(%x, 0) : int\n"
         "  %b = aten.sym_size.int(%x, 0) : int\n"
         "  %c = aten.slice.Tensor(%x, 0, 0, none, 1) : f32[%s0,4] at 1:64\n"
         "  %d = aten.slice.Tensor(%c, 0, 0, none, 1) : f32[%s0,4] at 1:0\n"
         "  return %d, %a, %b\n}\n",
         NULL, &s, &n);
    cr_expect_eq(s.n_values, 3 + 2 + 3); /* x c d; a b; 0 none 1 */
    cr_expect_eq(s.n_operators, 2);
}

/* -- what is refused --------------------------------------------------------------------- */

#define HEAD "program \"f\" stage planned\nsym %s0 in 1..\n"
#define X "method @forward(%x: f32[4] at 1:0, %y: f32[4] at 1:16) pools [64] {\n"
#define END "  return %o\n}\n"

static const struct {
    const char *text, *message;
} faults[] = {
    {"program \"f\" stage core\nmethod @forward() {\n  return\n}\n", "stage 'planned', not 'core'"},
    {HEAD "method @forward(%x: f32[%s0] at 1:0) pools [64] {\n  return %x\n}\n",
     "dimension 0 of %x has no upper bound"},
    {HEAD "method @forward(%x: f32[4294967296]) {\n  return %x\n}\n", "does not fit 31 bits"},
    {HEAD "method @forward(%x: f32[2,2] strides [1,2] at 1:0) pools [64] {\n  return %x\n}\n",
     "%x has strides"},
    {HEAD "method @forward(%x: f32[4] at 1:56) pools [64] {\n  return %x\n}\n",
     "%x lies outside the planned pools"},
    {HEAD "method @forward(%x: f32[4] at 2:0) pools [64] {\n  return %x\n}\n",
     "outside the planned"},
    {HEAD "method @forward(%x: int) {\n  return\n}\n", "takes tensors only"},
    {HEAD X "  %o = aten.add.Tensor(%x, %y, 1) : f32[4]\n" END, "a result has no place"},
    {HEAD X "  %o = aten.add.Tensor(%x, 2, 1) : f32[4] at 1:32\n" END,
     "argument 'Tensor other': a number where"},
    {HEAD X "  %o = aten.hardsigmoid.default(%x) : f32[4] at 1:32\n" END, "has no kernel for it"},
    {HEAD X "  %o = aten.view.default(%x, [%s0]) : f32[4] at 1:32\n" END, "no prim op computes"},
    {HEAD X "  %o = aten.view.default(%x, [%y]) : f32[4] at 1:32\n" END,
     "not a number of this type"},
    {HEAD X "  %o = aten.clone.default(%x, memory_format=\"channels_last\") : f32[4] at 1:32\n" END,
     "no kernel of a .pte takes memory_format 'channels_last'"},
    {HEAD "param %w = \"fc.w\" : f32[4] in \"weight_0\"+0\nmethod @forward() {\n  return %w\n}\n",
     "the bytes of \"fc.w\" in \"weight_0\" are not available"},
    {HEAD "mutable %w = \"w\" : f32[4] in \"-\"+0\nmethod @forward() {\n  return %w\n}\n",
     "is mutable and has no place"},
    {HEAD "blob %b = \"X\" : u8[4] in \"-\"+0\nmethod @forward() {\n  return %b\n}\n",
     "is a delegate's blob"},
    {HEAD X "  %o = etc.delegate(%y, [%x], body=none) : f32[4] at 1:32\n" END, "is not a blob"},
    {HEAD
     "mutable %a = \"a\" : f32[4] at 1:0 in \"-\"+0\nmutable %b = \"b\" : f32[4] at 1:16 in "
     "\"-\"+16\nmethod @forward() pools [32] {\n  update %a = %b\n  update %b = %a\n  return\n}\n",
     "updates exchange the values"},
    {HEAD
     "mutable %a = \"a\" : f32[4] at 1:32 in \"-\"+0\n" X
     "  %v = aten.view.default(%a, [2, 2]) : f32[2,2] at 1:32\n  update %a = %x\n  return %v\n}\n",
     "returns the old value of a state, which an update overwrites"},
    {HEAD X
     "  %o = higher_order.cond(%x, graph () {\n    return\n  }, graph () {\n    return\n  }, []) : "
     "f32[4] at 1:32\n" END,
     "its condition is not a bool"},
    {HEAD
     "method @forward(%x: f32[4] at 1:0, %p: bool[] at 1:16) pools [64] {\n"
     "  %o = higher_order.cond(%p, graph () {\n    return\n  }, graph () {\n    return\n  }, []) : "
     "f32[4] at 1:32\n" END,
     "another number of values"},
};

Test(pte, refuses_what_it_cannot_say)
{
    uint8_t data[64] = {1};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        OutFile f;
        PteStats s;
        long start = ftell(diag.out);
        bool ok = emit_pte(parse(faults[i].text, data), arena, &f, &s, &diag);
        fflush(diag.out);
        cr_expect(!ok, "accepted: %s", faults[i].text);
        cr_expect_not_null(strstr(messages + start, faults[i].message), "'%s' is not in: %s",
                           faults[i].message, messages + start);
    }
}

Test(pte, lists_every_fault)
{
    OutFile f;
    PteStats s;
    Program *p = parse(HEAD X "  %a = aten.add.Tensor(%x, 2, 1) : f32[4] at 1:32\n"
                              "  %o = aten.hardsigmoid.default(%a) : f32[4] at 1:32\n" END,
                       NULL);
    cr_expect(!emit_pte(p, arena, &f, &s, &diag));
    fflush(diag.out);
    cr_expect_eq(diag_errors(&diag), 2, "%s", messages);
}

/* The official verifier stops at 1,000,000 tables; this program needs five per node. */
Test(pte, refuses_more_tables_than_the_runtime_accepts)
{
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    fputs(HEAD X "  %v0 = aten.neg.default(%x) : f32[4] at 1:32\n", out);
    for (int i = 1; i < 200000; i++)
        fprintf(out, "  %%v%d = aten.neg.default(%%v%d) : f32[4] at 1:32\n", i, i - 1);
    fputs("  return %v199999\n}\n", out);
    fclose(out);
    OutFile f;
    PteStats s;
    cr_expect(!emit_pte(parse(text, NULL), arena, &f, &s, &diag));
    fflush(diag.out);
    cr_expect_not_null(strstr(messages, "tables, its runtime accepts 1000000"), "%s", messages);
    free(text);
}

/* -- how a file reaches the disk ------------------------------------------------------------- */

static char dir[64];

static const char *in_dir(const char *name)
{
    return arena_printf(arena, "%s/%s", dir, name);
}

static void make_dir(void)
{
    strcpy(dir, "/tmp/test_pte_XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
}

static int files_in_dir(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void remove_dir(void)
{
    cr_expect_eq(system(arena_printf(arena, "rm -r %s", dir)), 0);
}

static OutFile three_pieces(void)
{
    OutPiece *piece = NEW(arena, OutPiece, 3);
    piece[0] = (OutPiece){.data = "abc", .n = 3, .zeros = 5};
    piece[1] = (OutPiece){.data = "", .n = 0, .zeros = 10000};
    piece[2] = (OutPiece){.data = "z", .n = 1};
    return (OutFile){piece, 3};
}

static bool is_three_pieces(const char *path)
{
    uint8_t got[10010];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(got, 1, sizeof got, f) : 0;
    bool zero = true;
    if (f)
        fclose(f);
    for (size_t i = 3; i < 10008; i++)
        zero = zero && !got[i];
    return n == 10009 && !memcmp(got, "abc", 3) && zero && got[10008] == 'z';
}

Test(out, replaces_a_file_and_leaves_nothing_else)
{
    OutFile f = three_pieces();
    make_dir();
    cr_expect(out_write(&f, in_dir("a.pte"), &diag));
    cr_expect(is_three_pieces(in_dir("a.pte")));
    cr_expect(out_write(&f, in_dir("a.pte"), &diag));
    cr_expect_eq(files_in_dir(), 1);
    remove_dir();
}

Test(out, writes_more_pieces_than_one_system_call_takes)
{
    enum { N = 3000 };
    OutPiece *piece = NEW(arena, OutPiece, N);
    for (int i = 0; i < N; i++)
        piece[i] = (OutPiece){.data = &"0123456789"[i % 10], .n = 1, .zeros = i % 2};
    OutFile f = {piece, N};
    struct stat st;
    char c = 0;
    make_dir();
    cr_expect(out_write(&f, in_dir("a"), &diag));
    cr_assert_eq(stat(in_dir("a"), &st), 0);
    cr_expect_eq(st.st_size, N + N / 2);
    int fd = open(in_dir("a"), O_RDONLY);
    cr_expect_eq(pread(fd, &c, 1, 2002 + 2002 / 2), 1);
    cr_expect_eq(c, '2');
    close(fd);
    remove_dir();
}

Test(out, follows_a_symbolic_link)
{
    OutFile f = three_pieces();
    struct stat st;
    make_dir();
    cr_assert(out_write(&(OutFile){0}, in_dir("real"), &diag));
    cr_assert_eq(symlink("real", in_dir("link")), 0);
    cr_expect(out_write(&f, in_dir("link"), &diag));
    cr_expect(is_three_pieces(in_dir("real")));
    cr_expect(lstat(in_dir("link"), &st) == 0 && S_ISLNK(st.st_mode));
    remove_dir();
}

Test(out, does_not_replace_a_device)
{
    OutFile f = three_pieces();
    struct stat st;
    cr_expect(out_write(&f, "/dev/null", &diag));
    cr_expect(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
}

Test(out, says_why_it_cannot_write)
{
    OutFile f = three_pieces();
    make_dir();
    cr_expect(!out_write(&f, in_dir("no/a.pte"), &diag));
    cr_expect(!out_write(&f, dir, &diag));
    fflush(diag.out);
    cr_expect_eq(diag_exit_code(&diag), 3);
    cr_expect_not_null(strstr(messages, "No such file or directory"));
    cr_expect_not_null(strstr(messages, "it is a folder"));
    cr_expect_eq(files_in_dir(), 0);
    remove_dir();
}

Test(out, leaves_nothing_behind_when_the_disk_is_full)
{
    OutFile f = three_pieces();
    make_dir();
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096}), 0);
    cr_expect(!out_write(&f, in_dir("a.pte"), &diag));
    cr_expect(!out_write(&f, "/dev/full", &diag));
    fflush(diag.out);
    cr_expect_not_null(strstr(messages, "File too large"), "%s", messages);
    cr_expect_not_null(strstr(messages, "No space left on device"), "%s", messages);
    cr_expect_eq(files_in_dir(), 0);
    remove_dir();
}
