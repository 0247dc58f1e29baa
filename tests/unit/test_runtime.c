/* test_runtime.c -- runs .pte files in runtime-lite.  It compares the outputs with those of the
 * official runtime, and tests what the API refuses and how it handles hostile files, which were
 * built by hand (tests/import/pte/make.py) or changed in one field. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include "runtime-lite/flat_read.h"
#include "tests/pte_load.h"

#define FOLDER ROOT "/tests/import/pte/"

static uint8_t *slurp(const char *name, size_t *n)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", FOLDER, name);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = loaded_memory(16, *n);
    cr_assert_eq(fread(data, 1, *n, f), *n);
    fclose(f);
    return data;
}

static EtcStatus start_file(Loaded *l, const char *name)
{
    size_t n;
    uint8_t *file = slurp(name, &n);
    return loaded_start(l, file, n, 0);
}

static void expect_refusal(const Loaded *l, EtcStatus got, EtcStatus want, const char *what,
                           const char *name)
{
    cr_expect_eq(got, want, "%s: status %d (%s), expected %d", name, got, l->e.what, want);
    if (got == want && got)
        cr_expect(l->e.what && strstr(l->e.what, what), "%s: says '%s', expected '%s'", name,
                  l->e.what ? l->e.what : "", what);
}

/* -- what the official runtime answered ---------------------------------------------------- */

typedef struct Tensor {
    EtcTensor t;
    int32_t dim[ETC_MAX_RANK];
    _Alignas(16) uint8_t data[4096];
} Tensor;

static int dtype_named(const char *name)
{
#define X(id, code, size, text)                                                                    \
    if (!strcmp(name, #text))                                                                      \
        return (code);
    ETC_DTYPES(X)
#undef X
    return -1;
}

static size_t read_hex(const char *hex, uint8_t *to, size_t most)
{
    size_t n = 0;
    unsigned byte;
    for (; n < most && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
        to[n] = (uint8_t)byte;
    return n;
}

/* "tensor f32 2 2 3 <hex>", "int 3", "double <hex>", "bool 0", "none" */
static EtcValue read_value(char *text, Tensor *store)
{
    EtcValue v = {.tag = ETC_NONE};
    char *kind = strtok(text, " \n"), *word;
    if (!strcmp(kind, "int")) {
        v.tag = ETC_INT;
        v.as.i = atoll(strtok(NULL, " \n"));
    } else if (!strcmp(kind, "bool")) {
        v.tag = ETC_IS_BOOL;
        v.as.b = atoi(strtok(NULL, " \n")) != 0;
    } else if (!strcmp(kind, "double")) {
        v.tag = ETC_DOUBLE;
        read_hex(strtok(NULL, " \n"), (uint8_t *)&v.as.d, 8);
    } else if (!strcmp(kind, "tensor")) {
        *store = (Tensor){.t = {.data = store->data, .dim = store->dim}};
        store->t.dtype = (EtcDtype)dtype_named(strtok(NULL, " \n"));
        store->t.rank = atoi(strtok(NULL, " \n"));
        for (int32_t i = 0; i < store->t.rank; i++)
            store->dim[i] = atoi(strtok(NULL, " \n"));
        word = strtok(NULL, " \n");
        store->t.capacity = (int64_t)read_hex(word, store->data, sizeof store->data);
        v = (EtcValue){.tag = ETC_TENSOR, .as.tensor = &store->t};
    }
    return v;
}

static bool is_near(const EtcTensor *a, const EtcTensor *b, int64_t i)
{
    size_t size = etc_dtype_size((int)a->dtype);
    const uint8_t *pa = (const uint8_t *)a->data + i * (int64_t)size;
    const uint8_t *pb = (const uint8_t *)b->data + i * (int64_t)size;
    float fa, fb;
    if (a->dtype != ETC_F32 || !memcmp(pa, pb, size))
        return !memcmp(pa, pb, size);
    memcpy(&fa, pa, sizeof fa);
    memcpy(&fb, pb, sizeof fb);
    float gap = fa > fb ? fa - fb : fb - fa, most = fb < 0 ? -fb : fb;
    return gap <= 1e-6f + 1e-5f * most;
}

static bool same(const EtcValue *got, const EtcValue *want)
{
    if (got->tag != want->tag)
        return false;
    if (got->tag != ETC_TENSOR)
        return got->tag == ETC_INT       ? got->as.i == want->as.i
               : got->tag == ETC_DOUBLE  ? !memcmp(&got->as.d, &want->as.d, 8)
               : got->tag == ETC_IS_BOOL ? got->as.b == want->as.b
                                         : true;
    const EtcTensor *a = got->as.tensor, *b = want->as.tensor;
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    for (int64_t i = 0; i < etc_numel(a); i++)
        if (!is_near(a, b, i))
            return false;
    return true;
}

/* Runs the recorded calls of one file; returns how many outputs agreed. */
static int replay(const char *name, EtcMethod *m)
{
    static char line[32768];
    static Tensor store;
    int n_same = 0, in = 0, out = 0, is_here = 0;
    EtcError e = {.index = -1};
    FILE *f = fopen(FOLDER "recorded.txt", "r");
    cr_assert_not_null(f);
    while (fgets(line, sizeof line, f)) {
        if (!strncmp(line, "file ", 5)) {
            line[strcspn(line, "\n")] = '\0';
            is_here = !strcmp(line + 5, name);
        } else if (is_here && !strncmp(line, "call", 4)) {
            in = out = 0;
        } else if (is_here && !strncmp(line, "in ", 3)) {
            EtcValue v = read_value(line + 3, &store);
            cr_assert_eq(etc_method_set_input(m, in++, &v, &e), ETC_OK, "%s: %s", name, e.what);
            if (in == etc_method_n_inputs(m))
                cr_assert_eq(etc_method_run(m, &e), ETC_OK, "%s: %s %s.%s %d", name, e.what,
                             e.name ? e.name : "", e.overload ? e.overload : "", (int)e.index);
        } else if (is_here && !strncmp(line, "out ", 4)) {
            EtcValue v = read_value(line + 4, &store);
            cr_expect(same(etc_method_output(m, out), &v), "%s: output %d differs", name, out);
            out++;
            n_same++;
        }
    }
    fclose(f);
    return n_same;
}

typedef struct Name {
    char text[64];
    bool may_lack; /* calls operators that not every build has */
} Name;

ParameterizedTestParameters(runtime, official)
{
    static const Name names[] = {
        {"good_prim.pte", false}, {"good_state.pte", false}, {"good_fixed_inputs.pte", false},
        {"good_in_place.pte", false}, {"good_callers_input.pte", false},
        {"mini_add.pte", false},  {"off_add.pte", false},    {"off_cnn.pte", false},
        {"off_cond.pte", true},   {"off_dyn.pte", true},     {"off_idx.pte", true},
        {"off_map.pte", false},   {"off_mut.pte", false},    {"off_mutinit.pte", false},
        {"off_v.pte", false}};
    size_t n = sizeof names / sizeof *names;
    Name *list = cr_malloc(sizeof names);
    memcpy(list, names, sizeof names);
    return cr_make_param_array(Name, list, n);
}

ParameterizedTest(Name *name, runtime, official)
{
    Loaded l;
    EtcStatus s = start_file(&l, name->text);
    if (s == ETC_UNSUPPORTED && name->may_lack)
        cr_skip_test("%s: this build lacks %s.%s", name->text, l.e.name, l.e.overload);
    cr_assert_eq(s, ETC_OK, "%s: %s %s.%s", name->text, l.e.what, l.e.name ? l.e.name : "",
                 l.e.overload ? l.e.overload : "");
    cr_expect(replay(name->text, l.method) > 0, "%s: nothing recorded", name->text);
    loaded_stop(&l);
}

/* -- files made by hand --------------------------------------------------------------------- */

typedef struct Hostile {
    const char *file;
    EtcStatus status;
    const char *what;
} Hostile;

/* Overlaps that a plan shows are refused at load; those that only a run brings about are refused
 * then. */
Test(runtime, overlaps_are_found_at_load)
{
    static const Hostile list[] = {
        {"bad_results_overlap", ETC_BAD_FILE, "share memory"},
        {"bad_result_over_operand", ETC_BAD_FILE, "lies over an argument"},
        {"bad_result_over_spread_operand", ETC_BAD_FILE, "lies over an argument"},
        {"bad_input_written", ETC_BAD_FILE, "input of the caller"},
        {"bad_results_overlap_by_view", ETC_OK, NULL},
        {"bad_result_over_operand_by_view", ETC_OK, NULL},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char name[128];
        Loaded l;
        snprintf(name, sizeof name, "%s.pte", list[i].file);
        EtcStatus s = start_file(&l, name);
        expect_refusal(&l, s, list[i].status, list[i].what ? list[i].what : "", name);
        loaded_stop(&l);
    }
}

static const Hostile hostile_file[] = {
    {"bad_const_out", ETC_BAD_FILE, "writes to a constant"},
    {"bad_const_out_by_view", ETC_BAD_FILE, "writes to a constant"},
    {"bad_input_written", ETC_BAD_FILE, "or to an input of the caller"},
    {"bad_results_overlap", ETC_BAD_FILE, "results of an operator share memory"},
    {"bad_results_overlap_by_view", ETC_BAD_FILE, "results of an operator share memory"},
    {"bad_results_overlap_in_a_list", ETC_BAD_FILE, "results of an operator share memory"},
    {"bad_results_too_many", ETC_BAD_FILE, "more than 16 results"},
    {"bad_result_over_operand", ETC_BAD_FILE, "result lies over an argument"},
    {"bad_result_over_operand_by_view", ETC_BAD_FILE, "result lies over an argument"},
    {"bad_result_over_part_of_operand", ETC_BAD_FILE, "result lies over an argument"},
    {"bad_result_over_spread_operand", ETC_BAD_FILE, "result lies over an argument"},
    {"bad_result_over_list_item", ETC_BAD_FILE, "result lies over an argument"},
    {"bad_const_input", ETC_BAD_FILE, "input is a constant"},
    {"bad_no_memory", ETC_BAD_FILE, "without memory"},
    {"bad_output_without_memory", ETC_BAD_FILE, "output is a tensor without memory"},
    {"bad_freed", ETC_BAD_FILE, "without memory"},
    {"bad_endless", ETC_LIMIT, "more than 10,000,000"},
    {"bad_jump_on_int", ETC_BAD_FILE, "condition"},
    {"bad_jump_on_floats", ETC_BAD_FILE, "condition"},
    {"bad_jump_past_end", ETC_BAD_FILE, "past the end of the chain"},
    {"bad_move_onto_list_item", ETC_BAD_FILE, "another kind"},
    {"bad_move_onto_input", ETC_BAD_FILE, "onto an input"},
    {"bad_prim_onto_list_item", ETC_BAD_ARG, "refused its arguments"},
    {"bad_double_in_int_list", ETC_BAD_FILE, "not an int at this point"},
    {"bad_arity_less", ETC_BAD_FILE, "too few arguments"},
    {"bad_arity_more", ETC_BAD_ARG, "refused its arguments"},
    {"bad_prim_of_tensor", ETC_BAD_ARG, "refused its arguments"},
    {"bad_divide_by_zero", ETC_BAD_ARG, "refused its arguments"},
    {"bad_copy_index_past_end", ETC_BAD_ARG, "refused its arguments"},
    {"bad_copy_index_huge", ETC_BAD_ARG, "refused its arguments"},
    {"bad_view_of_another_size", ETC_BAD_ARG, "refused its arguments"},
    {"bad_view_product_wraps", ETC_BAD_ARG, "refused its arguments"},
    {"bad_sizes_wrap", ETC_BAD_FILE, "too large"},
    {"bad_sizes_wrap_behind_zero", ETC_BAD_FILE, "too large"},
    {"bad_rank_17", ETC_BAD_FILE, "more than 16 dimensions"},
    {"bad_rank_255", ETC_BAD_FILE, "more than 16 dimensions"},
    {"bad_list_before_tensor", ETC_BAD_FILE, "before the list"},
    {"bad_list_holds_itself", ETC_BAD_FILE, "before the list"},
    {"bad_unknown_operator", ETC_UNSUPPORTED, "operator that this build lacks"},
    {"bad_two_methods_of_one_name", ETC_BAD_FILE, "two methods of one name"},
    {"bad_no_method", ETC_BAD_FILE, "no method"},
    {"bad_many_methods", ETC_BAD_FILE, "more than 1024"},
    {"bad_method_without_name", ETC_BAD_FILE, "method without a name"},
    {"bad_version", ETC_UNSUPPORTED, "version of the schema"},
    {"bad_value_without_table", ETC_BAD_FILE, "union without its value"},
    {"bad_delegate_not_listed", ETC_BAD_FILE, "delegate that is not listed"},
    {"bad_free_of_no_value", ETC_BAD_FILE, "free of no tensor"},
    {"bad_free_of_a_number", ETC_BAD_FILE, "free of no tensor"},
    {"mini_linear_xnn", ETC_UNSUPPORTED, "delegate"},
    {"mini_linear_xnn_named", ETC_UNSUPPORTED, "delegate"},
};

Test(runtime, hostile_files)
{
    for (size_t i = 0; i < sizeof hostile_file / sizeof *hostile_file; i++) {
        char name[128];
        Loaded l;
        snprintf(name, sizeof name, "%s.pte", hostile_file[i].file);
        EtcStatus s = start_file(&l, name);
        if (s == ETC_OK)
            s = loaded_run_on_zeros(&l);
        expect_refusal(&l, s, hostile_file[i].status, hostile_file[i].what, name);
        loaded_stop(&l);
    }
}

/* -- one field changed ---------------------------------------------------------------------- */

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Where a path leads in a valid file: slots joined by '.', "[i]" an item of 4 bytes, "{i}" one of
 * 8, "<i>" one of 1, '#' the count of a vector, '$' the vtable of the table; a last '>' follows
 * a reference.  "@16" is a plain offset. */
static uint8_t *find(uint8_t *file, const char *path)
{
    const char *whole = path;
    uint8_t *at = file + u32_at(file);
    if (*path == '@')
        return file + atoi(path + 1);
    while (*path) {
        char *end = NULL;
        uint8_t *vtable = at - (int32_t)u32_at(at);
        if (*path == '$')
            return vtable;
        long slot = strtol(path, &end, 10), item;
        uint16_t own, offset = 0;
        memcpy(&own, vtable, 2);
        cr_assert_lt(4 + 2 * slot, own, "%s: no such slot", whole);
        memcpy(&offset, vtable + 4 + 2 * slot, 2);
        cr_assert_neq(offset, 0, "%s: absent", whole);
        at += offset;
        path = end;
        if (*path == '#')
            return at + u32_at(at);
        if (strchr("[{<", *path) && *path) {
            int size = *path == '[' ? 4 : *path == '{' ? 8 : 1;
            at += u32_at(at);
            item = strtol(path + 1, &end, 10);
            cr_assert_lt(item, (long)u32_at(at), "%s: no such item", whole);
            at += 4 + size * item;
            path = end + 1;
        }
        if (*path == '.' || *path == '>') {
            at += u32_at(at);
            path++;
        }
    }
    return at;
}

typedef struct Change {
    const char *file, *path;
    int bytes;
    int64_t value;
    EtcStatus status;
    const char *what;
} Change;

/* Plan 0 is "1[0]", its value i "1[0].2[i].1", its instruction i "1[0].5[0].2[i].1". */
static const Change changes[] = {
    /* extended header */
    {"off_mutinit", "@12", 4, 0, ETC_BAD_FILE, "header of a wrong length"},
    {"off_mutinit", "@12", 4, -1, ETC_BAD_FILE, "header of a wrong length"},
    {"off_mutinit", "@8", 4, 0x39396865, ETC_UNSUPPORTED, "another version than eh00"},
    {"off_mutinit", "@16", 8, 1 << 20, ETC_BAD_FILE, "larger than the file"},
    {"off_mutinit", "@16", 8, -1, ETC_BAD_FILE, "larger than the file"},
    {"off_mutinit", "@16", 8, 8, ETC_BAD_FILE, "larger than the file"},
    {"off_mutinit", "@24", 8, 64, ETC_BAD_FILE, "segments start inside"},
    {"off_mutinit", "@24", 8, 1 << 20, ETC_BAD_FILE, "segments start inside"},
    {"off_mutinit", "@24", 8, 0, ETC_BAD_FILE, "segments larger than the file"},
    {"off_mutinit", "@24", 8, 1791, ETC_BAD_FILE, "misaligned"},
    {"off_mutinit", "@32", 8, -1, ETC_BAD_FILE, "segments larger than the file"},
    {"off_mutinit", "@32", 8, 1, ETC_BAD_FILE, "segment past the end"},
    /* FlatBuffer */
    {"off_add", "@0", 4, 0, ETC_BAD_FILE, "FlatBuffer"},
    {"off_add", "@0", 4, 4, ETC_BAD_FILE, "FlatBuffer"},
    {"off_mutinit", "@0", 4, 8, ETC_BAD_FILE, "FlatBuffer"},
    {"off_add", "@0", 4, 1072, ETC_BAD_FILE, "FlatBuffer"},
    {"off_add", "@0", 4, 1070, ETC_BAD_FILE, "FlatBuffer"},
    {"off_add", "@0", 4, -4, ETC_BAD_FILE, "FlatBuffer"},
    {"off_add", "@4", 4, 0x33315445, ETC_BAD_FILE, "ET12"},
    {"off_add", "$", 2, 0xFFFF, ETC_BAD_FILE, "vtable of a wrong length"},
    {"off_add", "$", 2, 3, ETC_BAD_FILE, "vtable of a wrong length"},
    {"off_add", "$", 2, 512, ETC_BAD_FILE, "FlatBuffer"},
    {"off_add", "1#", 4, -1, ETC_BAD_FILE, "vector longer"},
    {"off_add", "1[0].2#", 4, 0x40000000, ETC_BAD_FILE, "vector longer"},
    {"off_add", "1[0].8#", 4, 0x20000000, ETC_BAD_FILE, "vector longer"},
    {"off_add", "1[0].0#", 4, 6, ETC_BAD_FILE, "NUL"},
    {"off_add", "1[0].2[0]", 4, 0, ETC_BAD_FILE, "offset outside"},
    {"off_add", "1[0].2[0]", 4, 0x7FFFFFFC, ETC_BAD_FILE, "offset outside"},
    {"off_add", "1[0].2[0]", 4, -4, ETC_BAD_FILE, "offset outside"},
    {"off_add", "1[0].2[0].0", 1, 12, ETC_BAD_FILE, "unknown type of a union"},
    {"off_add", "1[0].2[0].0", 1, 0, ETC_BAD_FILE, "value but no type"},
    /* plan */
    {"off_add", "1[0].3[0]", 4, -1, ETC_BAD_FILE, "input is not a value"},
    {"off_add", "1[0].3[0]", 4, 4, ETC_BAD_FILE, "input is not a value"},
    {"off_add", "1[0].4[0]", 4, -1, ETC_BAD_FILE, "output is not a value"},
    {"off_add", "1[0].4[0]", 4, 4, ETC_BAD_FILE, "output is not a value"},
    {"off_add", "1[0].5#", 4, 0, ETC_BAD_FILE, "without a chain"},
    {"off_add", "1[0].8{1}", 8, -1, ETC_BAD_FILE, "impossible size"},
    {"off_add", "1[0].8{1}", 8, 87, ETC_BAD_FILE, "past the end of its pool"},
    {"off_add", "1[0].8#", 4, 1, ETC_BAD_FILE, "pool that does not exist"},
    /* instructions */
    {"off_map", "1[0].5[0].2[1].1.0", 4, 7, ETC_BAD_FILE, "not listed"},
    {"off_map", "1[0].5[0].2[1].1.0", 4, -1, ETC_BAD_FILE, "not listed"},
    {"off_add", "1[0].5[0].2[0].1.1[0]", 4, -1, ETC_BAD_FILE, "argument of a call"},
    {"off_add", "1[0].5[0].2[0].1.1[0]", 4, 4, ETC_BAD_FILE, "argument of a call"},
    {"off_map", "1[0].5[0].2[4].1.1#", 4, 2, ETC_BAD_FILE, "too few arguments"},
    {"off_cond", "1[0].5[0].2[5].1.0", 4, 99, ETC_BAD_FILE, "no value"},
    {"off_cond", "1[0].5[0].2[5].1.1", 4, -1, ETC_BAD_FILE, "no value"},
    {"off_cond", "1[0].5[0].2[5].1.0", 4, 7, ETC_BAD_FILE, "another kind"},
    {"off_cond", "1[0].5[0].2[5].1.0", 4, 12, ETC_BAD_FILE, "another kind"},
    {"off_cond", "1[0].5[0].2[2].1.0", 4, 99, ETC_BAD_FILE, "condition"},
    {"off_cond", "1[0].5[0].2[2].1.0", 4, 3, ETC_BAD_FILE, "condition"},
    {"off_cond", "1[0].5[0].2[2].1.1", 4, 11, ETC_BAD_FILE, "past the end of the chain"},
    {"off_cond", "1[0].5[0].2[2].1.1", 4, -1, ETC_BAD_FILE, "past the end of the chain"},
    {"mini_linear_xnn", "1[0].7[0].1.1", 4, 99, ETC_BAD_FILE, "data of a delegate"},
    {"mini_linear_xnn_named", "4[2].0", 8, 1 << 20, ETC_BAD_FILE, "segment past the end"},
    {"mini_linear_xnn", "4[1].1", 8, -1, ETC_BAD_FILE, "segment past the end"},
    {"mini_linear_xnn_named", "4[2].0", 8, -64, ETC_BAD_FILE, "segment past the end"},
    {"mini_linear_xnn_named", "7[0].1", 4, 99, ETC_BAD_FILE, "named data"},
    {"mini_linear_xnn_named", "7[1].1", 4, -1, ETC_BAD_FILE, "named data"},
    /* tensors */
    {"off_add", "1[0].2[0].1.2#", 4, 1, ETC_BAD_FILE, "dim_order is missing or not as long"},
    {"off_add", "1[0].2[0].1.3#", 4, 1, ETC_BAD_FILE, "dim_order is missing or not as long"},
    {"off_add", "1[0].2[0].1.3<0>", 1, 1, ETC_BAD_FILE, "not a permutation"},
    {"off_add", "1[0].2[0].1.3<0>", 1, 2, ETC_BAD_FILE, "not a permutation"},
    {"off_add", "1[0].2[0].1.3<0>", 1, 200, ETC_BAD_FILE, "not a permutation"},
    {"off_add", "1[0].2[0].1.2[0]", 4, -2, ETC_BAD_FILE, "negative or too large"},
    {"off_add", "1[0].2[0].1.2[0]", 4, INT32_MAX, ETC_BAD_FILE, "past the end of its pool"},
    {"off_add", "1[0].2[0].1.0", 1, 12, ETC_UNSUPPORTED, "dtype"},
    {"off_add", "1[0].2[0].1.0", 1, 99, ETC_UNSUPPORTED, "dtype"},
    {"off_add", "1[0].2[0].1.0", 1, -1, ETC_UNSUPPORTED, "dtype"},
    {"off_add", "1[0].2[0].1.6.0", 4, 0, ETC_BAD_FILE, "pool that does not exist"},
    {"off_add", "1[0].2[0].1.6.0", 4, 2, ETC_BAD_FILE, "pool that does not exist"},
    {"off_add", "1[0].2[0].1.6.0", 4, -1, ETC_BAD_FILE, "pool that does not exist"},
    {"off_add", "1[0].2[0].1.6.1", 4, 80, ETC_BAD_FILE, "past the end of its pool"},
    {"off_add", "1[0].2[0].1.6.1", 4, -8, ETC_BAD_FILE, "past the end of its pool"},
    {"off_add", "1[0].2[0].1.6.1", 4, 66, ETC_BAD_FILE, "misaligned"},
    {"off_v", "1[0].2[0].1.5", 4, 4, ETC_BAD_FILE, "not wholly, in the file"},
    {"off_v", "1[0].2[0].1.5", 4, -1, ETC_BAD_FILE, "not wholly, in the file"},
    {"off_v", "1[0].2[1].1.2[0]", 4, 40, ETC_BAD_FILE, "not wholly, in the file"},
    {"off_v", "5.1{1}", 8, 116, ETC_BAD_FILE, "not wholly, in the file"},
    {"off_v", "5.1{1}", 8, -16, ETC_BAD_FILE, "not wholly, in the file"},
    {"off_v", "5.1{1}", 8, 2, ETC_BAD_FILE, "misaligned"},
    {"off_mutinit", "6[0].1{1}", 8, 4, ETC_BAD_FILE, "not wholly, in the file"},
    {"off_mutinit", "6[0].0", 4, 9, ETC_BAD_FILE, "initial values"},
    {"off_mutinit", "4[1].1", 8, 15, ETC_BAD_FILE, "not wholly, in the file"},
    /* lists */
    {"off_idx", "1[0].2[8].1.0[0]", 4, -1, ETC_BAD_FILE, "before the list"},
    {"off_idx", "1[0].2[8].1.0[0]", 4, 39, ETC_BAD_FILE, "before the list"},
    {"off_idx", "1[0].2[8].1.0[0]", 4, 8, ETC_BAD_FILE, "before the list"},
    {"off_idx", "1[0].2[8].1.0[0]", 4, 4, ETC_BAD_FILE, "not a tensor"},
    {"off_idx", "1[0].2[18].1.0[0]", 4, -2, ETC_BAD_FILE, "before the list"},
    {"off_idx", "1[0].2[18].1.0[1]", 4, 18, ETC_BAD_FILE, "before the list"},
    {"off_idx", "1[0].2[18].1.0[1]", 4, 16, ETC_BAD_FILE, "not a tensor"},
    {"off_idx", "1[0].2[6].1.0{0}", 8, -1, ETC_BAD_FILE, "list item is not a value"},
    {"off_idx", "1[0].2[6].1.0{0}", 8, 1LL << 32, ETC_BAD_FILE, "list item is not a value"},
    {"off_idx", "1[0].2[6].1.0{0}", 8, 0, ETC_BAD_FILE, "not an int"},
    {"off_idx", "1[0].2[6].1.0{0}", 8, 14, ETC_BAD_FILE, "not an int"},
};

Test(runtime, changed_fields)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const Change *c = &changes[i];
        char name[160];
        size_t n;
        Loaded l;
        snprintf(name, sizeof name, "%s.pte", c->file);
        uint8_t *file = slurp(name, &n), *at = find(file, c->path);
        cr_assert(memcmp(at, &c->value, (size_t)c->bytes), "%s %s: no change", name, c->path);
        memcpy(at, &c->value, (size_t)c->bytes);
        EtcStatus s = loaded_start(&l, file, n, 0);
        if (s == ETC_OK)
            s = loaded_run_on_zeros(&l);
        snprintf(name, sizeof name, "%s %s = %lld", c->file, c->path, (long long)c->value);
        expect_refusal(&l, s, c->status, c->what, name);
        loaded_stop(&l);
    }
}

/* Every shorter file is refused; the last bytes of these hold data that is read. */
Test(runtime, truncated)
{
    static const char *const names[] = {"off_add.pte", "off_mutinit.pte", "good_prim.pte"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        size_t n;
        uint8_t *whole = slurp(names[k], &n);
        for (size_t cut = 0; cut < n; cut++) {
            Loaded l;
            uint8_t *file = loaded_memory(16, cut ? cut : 1);
            memcpy(file, whole, cut);
            EtcStatus s = loaded_start(&l, file, cut, 0);
            cr_expect_neq(s, ETC_OK, "%s cut to %zu bytes is accepted", names[k], cut);
            cr_expect(s == ETC_OK || l.e.what, "%s cut to %zu bytes: no reason", names[k], cut);
            loaded_stop(&l);
        }
        free(whole);
    }
}

/* No claim but the sanitizers': each byte in turn takes other values. */
Test(runtime, any_byte_changed)
{
    static const char *const names[] = {"good_state.pte", "off_mutinit.pte"};
    int n_refused = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        size_t n, most = 1;
        for (size_t i = 0; i < most; i++)
            for (int value = 0; value < 2; value++) {
                Loaded l;
                uint8_t *file = slurp(names[k], &n);
                most = n;
                file[i] = (uint8_t)(value ? 0xFF : file[i] + 1);
                EtcStatus s = loaded_start(&l, file, n, 0);
                if (s == ETC_OK)
                    s = loaded_run_on_zeros(&l);
                n_refused += s != ETC_OK;
                loaded_stop(&l);
            }
    }
    cr_expect_gt(n_refused, 1000);
}

/* -- the verifier on schemas of its own ----------------------------------------------------- */

static void put32(uint8_t *p, uint32_t v)
{
    memcpy(p, &v, sizeof v);
}

/* n tables, each 8 bytes behind a vtable of its own, slot 0 leading to the next. */
static const char *verify_nested(uint32_t n)
{
    static const EtcFlatSlot slot[] = {ETC_SLOT_TABLE(0)};
    static const EtcFlatTable schema[] = {{slot, 1}};
    static _Alignas(16) uint8_t data[16 + 100 * 16];
    memset(data, 0, sizeof data);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *vtable = data + 8 + 16 * i;
        static const uint16_t words[] = {6, 8, 4};
        memcpy(vtable, words, sizeof words);
        if (i + 1 == n)
            memset(vtable + 4, 0, 2);
        put32(vtable + 8, 8);
        put32(vtable + 12, 12); /* from 20 + 16 i to 16 + 16 (i + 1) */
    }
    EtcFlat f = {data, sizeof data};
    return etc_flat_verify(&f, schema, 16);
}

Test(flat, depth)
{
    cr_expect_null(verify_nested(64), "%s", verify_nested(64));
    cr_assert_not_null(verify_nested(65));
    cr_expect(strstr(verify_nested(65), "nested deeper"), "%s", verify_nested(65));
}

/* Three levels of vectors whose items all lead to one table: fan * fan + fan + 1 visits. */
static const char *verify_shared(uint32_t fan)
{
    static const EtcFlatSlot slot[] = {ETC_SLOT_TABLES(0)};
    static const EtcFlatTable schema[] = {{slot, 1}};
    size_t level = 24 + 4 * (size_t)fan, size = 8 + 3 * ((level + 15) / 16 * 16);
    uint8_t *data = loaded_memory(16, size);
    memset(data, 0, size);
    for (uint32_t i = 0; i < 3; i++) {
        uint8_t *vtable = data + 8 + i * ((level + 15) / 16 * 16);
        uint8_t *next = vtable + (level + 15) / 16 * 16 + 8;
        uint16_t words[] = {6, 8, i < 2 ? 4 : 0};
        memcpy(vtable, words, sizeof words);
        put32(vtable + 8, 8);
        put32(vtable + 12, 4);
        put32(vtable + 16, fan);
        for (uint32_t k = 0; i < 2 && k < fan; k++)
            put32(vtable + 20 + 4 * k, (uint32_t)(next - (vtable + 20 + 4 * k)));
    }
    EtcFlat f = {data, (uint32_t)size};
    const char *what = etc_flat_verify(&f, schema, 16);
    free(data);
    return what;
}

Test(flat, number_of_tables)
{
    cr_expect_null(verify_shared(998), "%s", verify_shared(998)); /* 997,003 visits */
    cr_assert_not_null(verify_shared(1000));
    cr_expect(strstr(verify_shared(1000), "1,000,000 tables"), "%s", verify_shared(1000));
}

/* -- limits ---------------------------------------------------------------------------------- */

/* A product of [2, 3] and [3, 5] is an instruction, 31 elements and 30 multiply-adds; the jump back
 * is an instruction. */
Test(runtime, work_is_counted)
{
    static const struct {
        int64_t work;
        const char *name; /* of the operator that asks for more; NULL: an instruction does */
        int64_t index;
    } list[] = {{1, "aten::mm", 0},     {61, "aten::mm", 0},       {62, NULL, 1},
                {63, NULL, 0},          {64, "aten::mm", 0},       {124, "aten::mm", 0},
                {63 * 100, NULL, 0},    {63 * 100 + 62, NULL, 1}};
    Loaded l;
    cr_assert_eq(start_file(&l, "limit_work.pte"), ETC_OK);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        etc_method_limit(l.method, list[i].work);
        l.e = (EtcError){.index = -1};
        cr_expect_eq(etc_method_run(l.method, &l.e), ETC_TOO_MUCH);
        cr_expect(strstr(l.e.what, "element operations"), "%s", l.e.what);
        cr_expect(list[i].name ? l.e.name && !strcmp(l.e.name, list[i].name) : !l.e.name,
                  "%d: %s", (int)list[i].work, l.e.name);
        cr_expect_eq(l.e.index, list[i].index, "%d: %d", (int)list[i].work, (int)l.e.index);
    }
    loaded_stop(&l);
    cr_assert_eq(start_file(&l, "good_in_place.pte"), ETC_OK);
    cr_assert_eq(loaded_run_on_zeros(&l), ETC_OK);
    etc_method_limit(l.method, 7 + 12 + 18 + 12 + 12 + 12 + 12 + 12);
    cr_expect_eq(etc_method_run(l.method, &l.e), ETC_OK, "%s", l.e.what);
    cr_expect_eq(etc_method_run(l.method, &l.e), ETC_OK, "each run anew: %s", l.e.what);
    etc_method_limit(l.method, 7 + 12 + 18 + 12 + 12 + 12 + 12 + 12 - 1);
    cr_expect_eq(etc_method_run(l.method, &l.e), ETC_TOO_MUCH);
    etc_method_limit(l.method, 0);
    cr_expect_eq(etc_method_run(l.method, &l.e), ETC_OK);
    loaded_stop(&l);
}

/* -- calls of the API ------------------------------------------------------------------------ */

Test(runtime, memory_must_be_aligned)
{
    size_t n;
    uint8_t *file = slurp("good_state.pte", &n), *odd = loaded_memory(16, n + 16);
    Loaded l;
    EtcProgram p;
    memcpy(odd + 8, file, n);
    cr_expect_eq(etc_program_open(&p, odd + 8, n, &l.e), ETC_NO_MEMORY);
    cr_expect_eq(etc_program_open(&p, NULL, 0, &l.e), ETC_NO_MEMORY);
    free(odd);
    cr_assert_eq(loaded_start(&l, file, n, 0), ETC_OK);
    EtcMethod *m;
    void *none[16] = {0}, *tables = l.tables, *scratch = l.scratch;
    uint8_t *t8 = (uint8_t *)tables + 8, *s8 = (uint8_t *)scratch + 8;
    cr_expect_eq(etc_method_init(&l.program, 0, t8, l.pool, scratch, &m, &l.e), ETC_NO_MEMORY);
    cr_expect_eq(etc_method_init(&l.program, 0, tables, l.pool, s8, &m, &l.e), ETC_NO_MEMORY);
    cr_expect_eq(etc_method_init(&l.program, 0, tables, none, scratch, &m, &l.e), ETC_NO_MEMORY);
    cr_expect_eq(etc_method_init(&l.program, 1, tables, l.pool, scratch, &m, &l.e), ETC_BAD_ARG);
    cr_expect_eq(etc_method_init(&l.program, -1, tables, l.pool, scratch, &m, &l.e), ETC_BAD_ARG);
    loaded_stop(&l);
}

Test(runtime, methods_are_found_by_name)
{
    Loaded l;
    cr_assert_eq(start_file(&l, "good_prim.pte"), ETC_OK);
    cr_expect_eq(etc_program_n_methods(&l.program), 1);
    cr_expect_str_eq(etc_program_method_name(&l.program, 0), "forward");
    cr_expect_null(etc_program_method_name(&l.program, 1));
    cr_expect_eq(etc_program_find_method(&l.program, "forward"), 0);
    cr_expect_eq(etc_program_find_method(&l.program, "backward"), -1);
    loaded_stop(&l);
}

Test(runtime, missing_operators_are_listed)
{
    Loaded l;
    const char *name = NULL, *overload = NULL;
    cr_assert_eq(start_file(&l, "bad_unknown_operator.pte"), ETC_UNSUPPORTED);
    cr_expect_str_eq(l.e.name, "aten::no_such_operator");
    cr_expect_str_eq(l.e.overload, "out");
    cr_expect_eq(etc_method_missing(&l.program, 0, 0, &name, &overload), 1);
    cr_expect_str_eq(name, "aten::no_such_operator");
    cr_expect_eq(etc_method_missing(&l.program, 0, 1, &name, &overload), 0);
    loaded_stop(&l);
}

static EtcStatus give(Loaded *l, EtcTensor t, const char *what)
{
    EtcValue v = {.tag = ETC_TENSOR, .as.tensor = &t};
    EtcStatus s = etc_method_set_input(l->method, 0, &v, &l->e);
    cr_expect_eq(s != ETC_OK, what != NULL, "%s: %s", what ? what : "", s ? l->e.what : "ok");
    if (s && what)
        cr_expect(strstr(l->e.what, what), "says '%s', expected '%s'", l->e.what, what);
    return s;
}

Test(runtime, inputs_must_fit)
{
    Loaded l;
    float data[8] = {0};
    int32_t dim[2] = {2, 2}, past[2] = {1, 3}, negative[2] = {-1, 2};
    uint8_t order[2] = {1, 0}, plain[2] = {0, 1};
    cr_assert_eq(start_file(&l, "good_prim.pte"), ETC_OK); /* bounds [3, 2] */
    EtcTensor ok = {.data = data, .dtype = ETC_F32, .rank = 2, .dim = dim, .capacity = 16}, t = ok;
    give(&l, t, NULL);
    t.order = plain;
    give(&l, t, NULL);
    t.order = order;
    give(&l, t, "dim_order");
    t = ok, t.dtype = ETC_I32;
    give(&l, t, "dtype");
    t = ok, t.rank = 1;
    give(&l, t, "rank");
    t = ok, t.dim = past;
    give(&l, t, "past its bound"); /* though 3 elements would fit */
    t = ok, t.dim = negative;
    give(&l, t, "past its bound");
    t = ok, t.capacity = 15;
    give(&l, t, "less data");
    t = ok, t.data = NULL;
    give(&l, t, "less data");
    t = ok, t.dim = NULL;
    give(&l, t, "rank");
    t = ok, t.rank = -1;
    give(&l, t, "rank");
    EtcValue nothing = {.tag = ETC_TENSOR}, i = {.tag = ETC_INT};
    cr_expect_eq(etc_method_set_input(l.method, 0, &nothing, &l.e), ETC_BAD_ARG);
    cr_expect_eq(etc_method_set_input(l.method, 0, NULL, &l.e), ETC_BAD_ARG);
    cr_expect_eq(etc_method_set_input(l.method, 0, &i, &l.e), ETC_BAD_ARG);
    cr_expect_eq(etc_method_set_input(l.method, 1, &i, &l.e), ETC_BAD_ARG);
    cr_expect_eq(etc_method_set_input(l.method, -1, &i, &l.e), ETC_BAD_ARG);
    loaded_stop(&l);
}

/* Planned inputs are copied: their bytes may lie anywhere, the output's own place included. */
Test(runtime, inputs_may_lie_at_odd_addresses_or_in_the_output)
{
    Loaded l;
    _Alignas(16) uint8_t bytes[20] = {0};
    float two[4] = {1, 2, 3, 4}, odd[4];
    int32_t dim[2] = {2, 2};
    cr_assert_eq(start_file(&l, "good_prim.pte"), ETC_OK);
    memcpy(bytes + 1, two, sizeof two);
    EtcTensor t = {.data = bytes + 1, .dtype = ETC_F32, .rank = 2, .dim = dim, .capacity = 16};
    give(&l, t, NULL);
    cr_assert_eq(etc_method_run(l.method, &l.e), ETC_OK, "%s", l.e.what);
    const EtcValue *out = NULL;
    for (int k = 0; k < etc_method_n_outputs(l.method); k++)
        if (etc_method_output(l.method, k)->tag == ETC_TENSOR)
            out = etc_method_output(l.method, k);
    if (out && out->as.tensor->dtype == ETC_F32 && out->as.tensor->rank == 2) {
        memcpy(odd, out->as.tensor->data, sizeof odd);
        EtcValue again = *out;
        cr_expect_eq(etc_method_set_input(l.method, 0, &again, &l.e), ETC_OK);
        cr_expect_eq(etc_method_run(l.method, &l.e), ETC_OK);
    }
    loaded_stop(&l);
}

/* An input that is not planned is the caller's: it must be there and aligned, and no result may lie
 * on it. */
Test(runtime, inputs_without_a_place_are_read_where_they_lie)
{
    Loaded l;
    _Alignas(16) float data[5] = {1, 2, 3, 4, 5};
    int32_t dim[2] = {2, 2};
    cr_assert_eq(start_file(&l, "good_callers_input.pte"), ETC_OK, "%s", l.e.what);
    cr_expect_eq(etc_method_run(l.method, &l.e), ETC_BAD_FILE, "none was given");
    cr_expect(strstr(l.e.what, "without memory"), "%s", l.e.what);
    EtcTensor ok = {.data = data, .dtype = ETC_F32, .rank = 2, .dim = dim, .capacity = 16}, t = ok;
    give(&l, t, NULL);
    cr_expect_eq(etc_method_run(l.method, &l.e), ETC_OK, "%s", l.e.what);
    cr_expect_eq(data[0], 1.0f);
    t.data = (uint8_t *)data + 2;
    give(&l, t, "misaligned");
    t = ok, t.data = NULL;
    give(&l, t, "less data");
    const EtcTensor *y = etc_method_output(l.method, 0)->as.tensor;
    t = ok, t.data = y->data;
    give(&l, t, NULL);
    cr_expect_eq(etc_method_run(l.method, &l.e), ETC_OK, "exp may write over what it reads");
    t.data = (uint8_t *)y->data + 4, t.dim = (int32_t[]){1, 2}, t.capacity = 8;
    give(&l, t, NULL);
    cr_expect_eq(etc_method_run(l.method, &l.e), ETC_BAD_FILE);
    cr_expect(strstr(l.e.what, "lies over an argument"), "%s", l.e.what);
    loaded_stop(&l);
}

Test(runtime, fixed_inputs_must_equal_the_file)
{
    Loaded l;
    EtcValue three = {.tag = ETC_INT, .as.i = 3}, four = {.tag = ETC_INT, .as.i = 4};
    EtcValue half = {.tag = ETC_DOUBLE, .as.d = 0.5}, more = {.tag = ETC_DOUBLE, .as.d = 0.501};
    EtcValue no = {.tag = ETC_IS_BOOL}, none = {.tag = ETC_NONE};
    cr_assert_eq(start_file(&l, "good_fixed_inputs.pte"), ETC_OK);
    cr_expect_eq(etc_method_set_input(l.method, 0, &three, &l.e), ETC_OK);
    cr_expect_eq(etc_method_set_input(l.method, 0, &four, &l.e), ETC_BAD_ARG);
    cr_expect_eq(etc_method_set_input(l.method, 1, &half, &l.e), ETC_OK);
    cr_expect_eq(etc_method_set_input(l.method, 1, &more, &l.e), ETC_BAD_ARG);
    cr_expect_eq(etc_method_set_input(l.method, 1, &three, &l.e), ETC_BAD_ARG);
    cr_expect_eq(etc_method_set_input(l.method, 2, &no, &l.e), ETC_BAD_ARG);
    cr_expect_eq(etc_method_set_input(l.method, 3, &none, &l.e), ETC_OK);
    cr_expect_eq(etc_method_set_input(l.method, 3, &no, &l.e), ETC_BAD_ARG);
    loaded_stop(&l);
}
