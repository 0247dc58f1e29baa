/* c_mcu.c -- prints convolutions, linear layers and means of 8-bit integers in fixed point, for
 * targets that have a set of steps, kernels/mcu_*.h.  Weights are laid out as the set needs them.
 * The zero points, sums and bias of a channel become one number, from which its sum starts. */
#include "emit/c_emit.h"
#include "ir/eval.h"
#include <math.h>
#include <string.h>

/* The channels and terms of a block of weights.  The terms of a channel are filled up with zeros to
 * a multiple of `multiple`. */
typedef struct Blocks {
    int64_t channels, terms, multiple;
    int add; /* it is added to each weight, modulo 256 */
    enum { IN_ORDER, EVEN_FIRST, PAIRS } order; /* EVEN_FIRST: terms 0, 2, 1, 3; PAIRS: as
                                                   etc_mcu_weight of mcu_dsp.h writes them */
} Blocks;

struct McuSet {
    const char *name; /* the X of kernels/mcu_X.h */
    Blocks conv, linear;
    /* The bytes of a term in a panel, of an element of a linear layer's x, and of a number of a
     * picture. */
    int64_t panel_bytes, line_bytes, number_bytes;
    int64_t picked;        /* ETC_MCU_PICKS holds for pairs of terms in whole rows of up to so many */
    int64_t pair_bytes;    /* the bytes of two taps of a row: ETC_MCU_TAPS */
    int64_t run;           /* the numbers in a row of a window should be a multiple of this */
    int64_t window_bytes;  /* about how many bytes the rows that windows read should have */
    int64_t picture_bytes; /* about how many bytes a picture of a channel should have */
    bool counts_from_0; /* x is unsigned */
    bool has_strips;    /* it has strips of four rows, and etc_mcu_sum_4 */
    bool copies_x;      /* linear layers copy each row of x, not only to turn its signs, and compute
                           one or two last outputs apart */
    bool holds_points;  /* a block of a convolution holds the starts and factors of its channels */
    int by_shift;       /* a factor is stored as its product with 2^(31 + by_shift) */
};

static const McuSet mcu_set[] = {
    {"plain", {1, 1, 4, 0, IN_ORDER}, {4, 1, 1, 128, IN_ORDER},
     4, 1, 1, 0, 0, 1, 1024, 6144, true, false, true, false, 1},
    {"mve", {2, 16, 16, 0, IN_ORDER}, {4, 16, 16, 0, IN_ORDER},
     4, 1, 1, 0, 0, 16, 2048, 2048, false, true, false, false, 0},
    {"dsp", {1, 4, 4, 0, EVEN_FIRST}, {4, 4, 4, 128, PAIRS},
     8, 2, 2, 8, 4, 2, 1536, 6144, false, false, true, true, 1},
};

const McuSet *mcu_set_find(const char *name)
{
    for (size_t i = 0; name && i < sizeof mcu_set / sizeof *mcu_set; i++)
        if (!strcmp(mcu_set[i].name, name))
            return &mcu_set[i];
    return NULL;
}

/* The constants with which a node computes its sums, and then its results as int8. */
typedef struct Points {
    const Node *n;
    int64_t channels, terms, groups;
    const int8_t *weights; /* [channels][terms] */
    const int32_t *sums;
    const float *scales, *bias; /* bias is NULL if there is none */
    double scale;               /* the scale of y */
    int64_t x_zero, zero, lo, hi;
    bool x_is_signed, y_is_signed;
    bool is_stretched; /* the weights are not those of the graph */
    int32_t *start, *by; /* for each channel, and zeros up to a multiple of four */
} Points;

static double number(const Node *n, const char *name)
{
    double v = 0;
    arg_number(n, arg_find(n, name), &v);
    return v;
}

static bool is_byte(const Value *v)
{
    return v->type.dtype == ETC_I8 || v->type.dtype == ETC_U8;
}

/* Returns the integer to which the bound v is quantized, clamped to lo .. hi. */
static int64_t bound(const Points *p, double v, int64_t lo, int64_t hi)
{
    double at = nearbyint(v / p->scale) + (double)p->zero;
    return at <= (double)lo ? lo : at >= (double)hi ? hi : (int64_t)at;
}

static void read_range(Points *p)
{
    const Node *n = p->n;
    int64_t turn = p->y_is_signed ? 0 : 128;
    int64_t lo = (int64_t)number(n, "quant_min") - turn;
    int64_t hi = (int64_t)number(n, "quant_max") - turn;
    p->zero = (int64_t)number(n, "output_zero") - turn;
    p->lo = lo;
    p->hi = hi;
    if (arg_find(n, "lo") >= 0 && p->scale > 0) {
        p->lo = bound(p, number(n, "lo"), lo, hi);
        p->hi = bound(p, number(n, "hi"), lo, hi);
    }
}

/* Reads the constants of a node.  Returns false if some are only known when the model runs, or if y
 * is not bytes. */
static bool read_points(Function *f, const Node *n, Points *p)
{
    const Value *w = arg_value(n, "weight"), *bias = arg_value(n, "bias");
    *p = (Points){.n = n, .channels = w->type.dim[0].value, .groups = 1};
    p->terms = type_numel(w->type) / (p->channels ? p->channels : 1);
    p->weights = constant_data(f->e, w, ETC_I8);
    p->sums = constant_data(f->e, arg_value(n, "sums"), ETC_I32);
    p->scales = constant_data(f->e, arg_value(n, "scales"), ETC_F32);
    p->bias = constant_data(f->e, bias, ETC_F32);
    p->x_is_signed = arg_value(n, "input")->type.dtype == ETC_I8;
    p->y_is_signed = n->out[0]->type.dtype == ETC_I8;
    p->x_zero = (int64_t)number(n, "zero_point");
    p->scale = number(n, "output_scale");
    read_range(p);
    return p->sums && p->scales && (p->bias || !bias) && p->channels && is_byte(n->out[0]) &&
           !arg_value(n, "input_scale") && p->weights;
}

/* -- constants ------------------------------------------------------------------------------- */

static int64_t blocks_of(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* The layout of the terms of a channel: [rows][columns][wide].  Zeros fill up the terms of an
 * element to `wide`, and the terms of a row to `row`. */
typedef struct Window {
    int64_t rows, columns, wide, row;
} Window;

/* Returns the layout of terms that are next to each other. */
static Window one_run(int64_t terms)
{
    return (Window){1, 1, terms, terms};
}

/* Writes the weight of a term of a channel, of those in a block, to the weights of these channels. */
static void put_weight_of(int8_t *to, const Blocks *b, int64_t channel, int64_t t, int weight)
{
    int64_t at = channel * b->terms + t % b->terms;
    if (b->order == EVEN_FIRST)
        at = t % 2 * 2 + t / 2 % 2;
    if (b->order == PAIRS)
        at = channel / 2 * 8 + t % 2 * 4 + t % 4 / 2 * 2 + channel % 2;
    int add = b->order == PAIRS && channel % 2 ? 0 : b->add;
    to[t / b->terms * b->channels * b->terms + at] = (int8_t)(uint8_t)(weight + add);
}

/* Makes an array of the weights in blocks, group by group, and returns its name.  The terms of a
 * channel are [terms / area][area] in the file, and are transposed.  If holds_points is set, the
 * starts of the channels of a block are before its weights, and their factors after them.  Sets
 * *bytes to the size of a group. */
static const char *put_weights(Emit *e, const Points *p, const Blocks *b, const Window *w,
                               bool holds_points, int64_t *bytes)
{
    const int8_t *from = p->weights;
    const int64_t area = w->rows * w->columns;
    const int64_t k = blocks_of(w->rows * w->row, b->multiple) * b->multiple;
    const int64_t each = p->channels / p->groups;
    const int64_t points = holds_points ? 4 * b->channels : 0;
    const int64_t block = points + b->channels * k + points;
    *bytes = blocks_of(each, b->channels) * block;
    assert(from && b->multiple % b->terms == 0 && p->terms % area == 0);
    assert(b->order != EVEN_FIRST || b->channels == 1);
    int8_t *to = NEW(e->a, int8_t, p->groups * *bytes + 1);
    for (int64_t c = 0; c < p->channels; c++) {
        const int64_t channel = c % each % b->channels;
        int8_t *at = to + c / each * *bytes + c % each / b->channels * block;
        if (holds_points) {
            memcpy(at + 4 * channel, &p->start[c], 4);
            memcpy(at + block - points + 4 * channel, &p->by[c], 4);
        }
        for (int64_t i = 0; i < p->terms; i++) {
            int64_t t = i % area / w->columns * w->row + i % w->columns * w->wide + i / area;
            put_weight_of(at + points, b, channel, t, *from++);
        }
    }
    return made_array(e, wish_of(arg_value(p->n, "weight")), "blocks", ETC_I8,
                      p->groups * *bytes, to);
}

/* Makes an array of the weights of a depthwise convolution as etc_mcu_short needs them, and
 * returns its name.  Sets *bytes to the size of a channel. */
static const char *put_strips(Emit *e, const Points *p, const Conv *c, int64_t *bytes)
{
    const Value *w = arg_value(p->n, "weight");
    const int8_t *from = p->weights;
    *bytes = 16;
    int8_t *to = NEW(e->a, int8_t, p->channels * *bytes + 1);
    for (int64_t i = 0; i < p->channels * p->terms; i++) {
        int64_t y = i % p->terms / c->kernel[1], x = i % c->kernel[1];
        to[i / p->terms * *bytes + x * 4 + y] = *from++;
    }
    return made_array(e, wish_of(w), "strips", ETC_I8, p->channels * *bytes, to);
}

/* Computes the start and the factor of each channel.  Returns false if a sum could overflow 32
 * bits, or a factor does not fit into 32 bits. */
static bool make_points(Emit *e, Points *p, const McuSet *set)
{
    int64_t n = blocks_of(p->channels, 4) * 4, most = 255 * 128 * p->terms;
    int64_t turn = set->counts_from_0 ? (p->x_is_signed ? 128 : 0) : (p->x_is_signed ? 0 : -128);
    p->start = NEW(e->a, int32_t, n);
    p->by = NEW(e->a, int32_t, n);
    for (int64_t c = 0; c < p->channels; c++) {
        double scale = (double)p->scales[c], ratio = scale / p->scale;
        double from = p->bias && scale > 0 ? nearbyint((double)p->bias[c] / scale) : 0;
        from -= (double)(p->x_zero + turn) * p->sums[c];
        if (!(ratio >= 0) || ratio >= 0.4999999 || !(fabs(from) + (double)most < 2147483647.0) ||
            (p->bias && p->bias[c] != 0 && !(scale > 0)))
            return false;
        p->start[c] = (int32_t)from;
        p->by[c] = (int32_t)nearbyint(ratio * 2147483648.0) * (1 << set->by_shift);
    }
    return true;
}

/* Makes arrays of the starts and factors, and sets their names. */
static void name_points(Emit *e, const Points *p, const char *name[2])
{
    const int64_t n = blocks_of(p->channels, 4) * 4;
    const char *const wish = wish_of(arg_value(p->n, "weight"));
    name[0] = made_array(e, wish, "start", ETC_I32, n, p->start);
    name[1] = made_array(e, wish, "by", ETC_I32, n, p->by);
}

static void put_points(Function *f, const Points *p, const char *const name[2], bool turns_x)
{
    put(&f->body, "    /* start, by; zero point and range of y; signs of x and y to turn */\n"
        "    %sconst EtcMcu q = {%s, %s, %d, %d, %d, %s, %s};\n",
        strcmp(name[0], "NULL") ? "" : "static ", /* an array in a blob is no constant in C */
        name[0], name[1], (int)p->zero, (int)p->lo, (int)p->hi, turns_x ? "0x80808080u" : "0",
        p->y_is_signed ? "0" : "0x80808080u");
}

/* Prints a call that clamps the bytes of y and flips their signs, if either is necessary. */
static void put_finish(Function *f, const Points *p, const Value *y)
{
    if (p->lo == -128 && p->hi == 127 && p->y_is_signed)
        return;
    put(&f->body, "    etc_mcu_finish(%s, (int32_t)(", f->name_of[y->index]);
    function_dim(f, c_dims_product(f->e, y->type.dim, y->type.rank));
    put(&f->body, "), &q);\n");
}

/* -- nodes ----------------------------------------------------------------------------------- */

static void use_work(Function *f, int64_t bytes)
{
    assert(bytes > 0 && !f->gap_bytes);
    f->uses_work = true;
    f->gap_bytes = round_up(bytes, WORK_ALIGN);
}

typedef struct Image {
    int64_t h, w;
} Image;

static Image image_of(const Value *v)
{
    const Type t = v->type;
    return (Image){t.rank == 4 ? t.dim[2].value : 1, t.dim[t.rank - 1].value};
}

static void put_geometry(Function *f, const int64_t *c, Image x, Image y, const int64_t *kernel,
                         const int64_t *stride, const int64_t *pad, const int64_t more[4])
{
    put(&f->body, "    /* ic, ih, iw; oc, oh, ow; kernel, stride, padding; terms, byte of padding, "
        "rows or\n     * columns at a time, numbers of a pixel */\n"
        "    static const EtcMcuConv g = {%d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, "
        "%d};\n",
        (int)c[0], (int)x.h, (int)x.w, (int)c[1], (int)y.h, (int)y.w, (int)kernel[0],
        (int)kernel[1], (int)stride[0], (int)stride[1], (int)pad[0], (int)pad[1], (int)more[0],
        (int)more[1], (int)more[2], (int)more[3]);
}

/* Says how a convolution is computed: with which core, weights, scratch (`bytes`), and fields of
 * its geometry. */
typedef struct Plan {
    const char *core, *weights;
    int64_t k, band, bytes, group_bytes; /* group_bytes: the size of the weights of a group */
    int64_t wide;                        /* the numbers of a pixel of the windows */
    bool holds_points;                   /* the weights contain the starts and factors */
} Plan;

/* Prints calls of a core for each image of a batch, and for each group of channels. */
static void put_images(Function *f, const Points *p, const Plan *plan)
{
    const Value *x = arg_value(p->n, "input"), *y = p->n->out[0];
    const int64_t images = x->type.dim[0].value, parts = images * p->groups;
    const int x_bytes = (int)(type_numel(x->type) / parts),
              y_bytes = (int)(type_numel(y->type) / parts);
    const char *from = function_pointer(f, x), *to = f->name_of[y->index], *weights = plan->weights;
    if (parts > 1) {
        put(&f->body, "    for (int32_t i = 0; i < %d; i++) {\n    ", (int)parts);
        from = arena_printf(f->e->a, "%s + (i * %d)", from, x_bytes);
        to = arena_printf(f->e->a, "%s + (i * %d)", to, y_bytes);
    }
    const bool is_part = p->groups > 1 && !plan->holds_points;
    const char *at = images > 1 ? arena_printf(f->e->a, "(i %% %d)", (int)p->groups) : "i";
    if (p->groups > 1)
        weights = arena_printf(f->e->a, "%s + (%s * %d)", weights, at, (int)plan->group_bytes);
    if (is_part) {
        const int each = (int)(p->channels / p->groups);
        put(&f->body,
            "    const EtcMcu part = {q.start + (%s * %d), q.by + (%s * %d), q.zero, q.lo, "
            "q.hi, q.x_flip, q.y_flip};\n    ",
            at, each, at, each);
    }
    put(&f->body, "    %s(%s, %s, %s, &g, &%s, work);\n", plan->core, from, weights, to,
        is_part ? "part" : "q");
    put(&f->body, parts > 1 ? "    }\n" : "");
    put_finish(f, p, y);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static const char *put_stretched(Emit *e, const Points *p)
{
    const int64_t n = p->channels * p->terms;
    int8_t *data = NEW(e->a, int8_t, n);
    memcpy(data, p->weights, (size_t)n);
    return made_array(e, wish_of(arg_value(p->n, "weight")), "taps", ETC_I8, n, data);
}

/* Makes an array of the weights of a depthwise convolution as etc_mcu_nine needs them, and returns
 * its name. */
static const char *put_nine(Emit *e, const Points *p)
{
    static const int tap[12] = {0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8};
    int8_t *to = NEW(e->a, int8_t, p->channels * 12);
    for (int64_t i = 0; i < p->channels * 12; i++)
        to[i] = p->weights[i / 12 * 9 + tap[i % 12]];
    return made_array(e, wish_of(arg_value(p->n, "weight")), "nine", ETC_I8, p->channels * 12, to);
}

/* Returns whether strips of four rows and vectors of four columns have room for a window. */
static bool fits_strip(const Conv *c)
{
    return c->kernel[0] <= 4 && c->kernel[1] <= 4 && c->stride[1] <= 2;
}

/* Returns whether the set has a core for windows of three taps by three with these strides. */
static bool is_nine(const McuSet *set, const Conv *c)
{
    return c->kernel[0] == 3 && c->kernel[1] == 3 &&
           (!set->pair_bytes || (c->stride[0] == c->stride[1] && c->stride[0] <= 2));
}

/* Returns whether the set has a core for such windows; others are computed by etc_mcu_any. */
static bool has_core(const McuSet *set, const Conv *c)
{
    return set->has_strips ? fits_strip(c) : is_nine(set, c);
}

/* Sets the weights of a depthwise convolution and what they take in a strip or as pairs. */
static int64_t plan_taps(Emit *e, const McuSet *set, const Points *p, const Conv *c, Image y,
                         int64_t pitch, Plan *to)
{
    enum { SOME = 96, MORE = 32 }; /* columns of a strip */
    const bool has_pairs = set->pair_bytes && is_nine(set, c);
    if (set->has_strips && fits_strip(c)) {
        const int64_t rows = c->stride[0] > 1 || pitch > SOME ? 1 : least(SOME / pitch, y.h);
        to->weights = put_strips(e, p, c, &to->k);
        to->wide = rows; /* of y, of which the strip reads more rows of x */
        return (rows * pitch + MORE) * 4 + (4 - c->kernel[0]) * pitch + MORE;
    }
    to->k = has_pairs ? 12 : p->terms;
    to->wide = 0;
    to->weights = has_pairs         ? put_nine(e, p)
                  : p->is_stretched ? put_stretched(e, p)
                                    : constant_name(e, arg_value(p->n, "weight")->state);
    return c->kernel[0] * blocks_of(c->kernel[1], 2) * set->pair_bytes;
}

/* Plans a convolution with etc_mcu_depthwise.  It computes so many rows of y at a time that a
 * picture of one channel takes about set->picture_bytes. */
static void plan_depthwise(Emit *e, const McuSet *set, const Points *p, const Conv *c, Image y,
                           Plan *to)
{
    const int64_t slack = 16 + 4 * c->stride[1];
    const int64_t pitch = ((y.w - 1) * c->stride[1] + c->kernel[1] + 2) / 2 * 2;
    int64_t band = (set->picture_bytes / (pitch * set->number_bytes) - c->kernel[0]) /
                   c->stride[0] + 1;
    to->core = "etc_mcu_depthwise";
    to->band = band > y.h ? y.h : band < 1 ? 1 : band;
    to->bytes = ((to->band - 1) * c->stride[0] + c->kernel[0]) * pitch * set->number_bytes + slack +
                plan_taps(e, set, p, c, y, pitch, to);
}

/* Returns the columns of y that are computed at a time.  The rows of their windows take about
 * set->window_bytes. */
static int64_t columns_of(const McuSet *set, const Conv *c, int64_t wide, Image y)
{
    int64_t width = set->window_bytes / (c->kernel[0] * wide * set->number_bytes);
    int64_t columns = (width - c->kernel[1]) / c->stride[1] + 1;
    return columns >= y.w ? y.w : columns < 8 ? least(8, y.w) : columns / 4 * 4;
}

/* Returns the numbers that a pixel of the windows has.  If a set of steps holds the points, each
 * row of a window should have pairs of terms: else it is copied twice, with two instructions for a
 * term, and odd channels are converted one by one.  More terms take an instruction for each channel
 * of y. */
static int64_t wide_of(const McuSet *set, const Points *p, const Conv *c, int64_t channels)
{
    const int64_t area = c->kernel[0] * c->kernel[1], multiple = set->conv.multiple;
    const int64_t wide = channels + c->kernel[1] * channels % 2;
    const int64_t more = area * wide - blocks_of(area * channels, multiple) * multiple;
    const bool pays = more * (p->channels / p->groups) < 3 * area * channels + 8 * c->kernel[0];
    return set->holds_points && pays ? wide : channels;
}

/* Returns the terms from row to row of a window.  Rows of whole steps are copied to a panel, others
 * first to a line, or by a table of places if pairs of their numbers are aligned.  Zeros fill up
 * rows if they need no more steps, or, with steps of 16 terms, if these steps of all channels take
 * fewer instructions than the line of four pixels. */
static int64_t row_of(const McuSet *set, const Points *p, const Conv *c, int64_t wide)
{
    enum { STEP = 16, PANEL = 80, OF_STEP = 12, ROW = 27, OF_ROW = 3 }; /* instructions */
    const int64_t rows = c->kernel[0], run = c->kernel[1] * wide, steps = blocks_of(run, set->run);
    const int64_t least = blocks_of(rows * run, set->conv.multiple) * set->conv.multiple;
    const int64_t whole = steps * set->run, more = (rows * whole - least) / set->conv.multiple;
    const bool has_pairs = run % 2 == 0 && c->stride[1] * wide % 2 == 0;
    const bool pays = set->has_strips && !has_pairs &&
                      more * STEP * blocks_of(p->channels / p->groups, set->conv.channels) <
                          PANEL + OF_STEP * (least / set->run) + rows * (ROW + OF_ROW * steps);
    return rows * whole == least || pays ? whole : run;
}

static void plan_windows(Emit *e, const McuSet *set, const Points *p, const Conv *c, Image y,
                         Plan *to)
{
    int64_t area = c->kernel[0] * c->kernel[1], channels = p->terms / area;
    to->core = "etc_mcu_windows";
    to->wide = wide_of(set, p, c, channels);
    const int64_t run = row_of(set, p, c, to->wide);
    const Window w = {c->kernel[0], c->kernel[1], to->wide, run};
    to->k = blocks_of(c->kernel[0] * run, set->conv.multiple) * set->conv.multiple;
    to->weights = put_weights(e, p, &set->conv, &w, set->holds_points, &to->group_bytes);
    to->band = columns_of(set, c, to->wide, y);
    const int64_t row = ((to->band - 1) * c->stride[1] + c->kernel[1]) * to->wide;
    const bool is_whole = run % set->run == 0 && run > set->picked;
    const bool fills = y.w % 4 == 0 || (to->band == y.w && y.h * y.w % 4 == 0);
    to->bytes = to->k * set->panel_bytes +
                (c->kernel[0] * row + 31) / 16 * 16 * set->number_bytes +
                (is_whole ? 0 : to->k * set->number_bytes + 16) + (fills ? 0 : 4 * p->channels);
}

static bool is_pointwise(const Conv *c, Image y)
{
    bool ok = y.h * y.w >= 4;
    for (int i = 0; i < 2; i++)
        ok = ok && c->kernel[i] == 1 && c->stride[i] == 1 && !c->pad[i];
    return ok;
}

/* Returns whether a convolution is computed from a picture of each channel.  This is so if every
 * result reads one channel, and a panel would be shared by few results, or the set has a core for
 * such windows. */
static bool is_planewise(const McuSet *set, const Points *p, const Conv *c)
{
    enum { FEW_RESULTS = 4 };
    const int64_t area = c->kernel[0] * c->kernel[1];
    return p->terms == area && area > 1 &&
           (p->channels <= FEW_RESULTS * c->groups || has_core(set, c));
}

static Plan plan_conv(Emit *e, const McuSet *set, const Points *p, const Conv *c, Image y)
{
    int64_t k = blocks_of(p->terms, set->conv.multiple) * set->conv.multiple;
    Plan to = {.k = k, .band = y.h, .wide = 1};
    const bool is_depthwise = is_planewise(set, p, c);
    if (is_depthwise)
        plan_depthwise(e, set, p, c, y, &to);
    else if (!is_pointwise(c, y))
        plan_windows(e, set, p, c, y, &to);
    else {
        to.core = "etc_mcu_pointwise";
        const Window w = one_run(p->terms);
        to.weights = put_weights(e, p, &set->conv, &w, set->holds_points, &to.group_bytes);
        to.bytes = k * set->panel_bytes;
    }
    to.holds_points = set->holds_points && to.group_bytes > 0;
    return to;
}

/* Returns whether all sizes are known, and so small that 32 bits are enough for any index. */
static bool is_small(const Value *v)
{
    return type_is_static(v->type) && type_bytes(v->type) > 0 && type_bytes(v->type) < 1 << 28;
}

/* Turns a dilated kernel into one with zeros between its taps.  Returns false if it is more than
 * four times as large. */
static bool stretch(Emit *e, Points *p, Conv *c)
{
    enum { MOST_GROWTH = 4 };
    int64_t had[2] = {c->kernel[0], c->kernel[1]}, area = had[0] * had[1];
    for (int i = 0; i < 2; i++)
        c->kernel[i] = (had[i] - 1) * c->dilation[i] + 1;
    const int64_t wide = c->kernel[0] * c->kernel[1], planes = p->channels * p->terms / area;
    if (wide == area)
        return true;
    int8_t *to = NEW(e->a, int8_t, planes * wide);
    for (int64_t i = 0; i < planes * area; i++) {
        int64_t y = i % area / had[1] * c->dilation[0], x = i % had[1] * c->dilation[1];
        to[i / area * wide + y * c->kernel[1] + x] = p->weights[i];
    }
    p->weights = to;
    p->terms = p->terms / area * wide;
    p->is_stretched = true;
    return wide <= MOST_GROWTH * area;
}

/* Counts the steps of a convolution for its forecast.  Panels have four pixels. */
static void count_conv(Function *f, const McuSet *set, const Points *p, const Conv *c,
                       const Plan *plan, Image y, int64_t images)
{
    const int64_t channels = blocks_of(p->channels / p->groups, set->conv.channels);
    const int64_t columns = set->has_strips ? blocks_of(y.w, 4) * 4 : y.w;
    if (plan->group_bytes) {
        const int64_t panels = blocks_of(y.h * y.w, 4) * 4;
        f->terms = (double)images * (double)panels * (double)(p->groups * plan->k);
        f->steps = f->terms * (double)(channels * set->conv.channels);
    } else { /* the core reads planes */
        f->kernel = has_core(set, c) ? NULL : "etc_mcu_any(";
        f->terms = (double)type_numel(arg_value(p->n, "input")->type);
        f->steps = (double)images * (double)y.h * (double)columns *
                   (double)(p->channels * p->terms);
    }
}

bool emit_mcu_conv(Function *f, const Node *n, bool *done)
{
    const McuSet *set = mcu_set_find(f->e->target->mcu);
    Points p;
    Conv c;
    const char *name[2] = {"NULL", "NULL"};
    *done = false;
    if (!set || !conv_read(n, &c) || !conv_as_image(&c) || !read_points(f, n, &p) ||
        !is_small(arg_value(n, "input")) || !is_small(n->out[0]) || !stretch(f->e, &p, &c))
        return true;
    const Value *xv = arg_value(n, "input");
    p.groups = is_planewise(set, &p, &c) ? 1 : c.groups;
    if (!make_points(f->e, &p, set))
        return true;
    Image x = image_of(xv), y = image_of(n->out[0]);
    const Plan plan = plan_conv(f->e, set, &p, &c, y);
    if (!plan.holds_points)
        name_points(f->e, &p, name);
    put_geometry(f, (int64_t[]){xv->type.dim[1].value / p.groups, p.channels / p.groups}, x, y,
                 c.kernel, c.stride, c.pad,
                 (int64_t[]){plan.k, p.x_zero & 0xff, plan.band, plan.wide});
    put_points(f, &p, name, p.x_is_signed == set->counts_from_0);
    put_images(f, &p, &plan);
    use_work(f, plan.bytes);
    count_conv(f, set, &p, &c, &plan, y, xv->type.dim[0].value);
    *done = true;
    return true;
}

bool emit_mcu_linear(Function *f, const Node *n, bool *done)
{
    const McuSet *set = mcu_set_find(f->e->target->mcu);
    Points p;
    const char *const name[2] = {"NULL", "NULL"};
    *done = false;
    if (!set || !read_points(f, n, &p) || (set->linear.add && p.terms > 32768) ||
        !make_points(f->e, &p, set))
        return true;
    const Value *x = arg_value(n, "input");
    int64_t k = blocks_of(p.terms, set->linear.multiple) * set->linear.multiple, bytes;
    const bool turns_x = p.x_is_signed == set->counts_from_0;
    const bool copies_x = turns_x || set->copies_x;
    put_points(f, &p, name, turns_x);
    const Window w = one_run(p.terms);
    const char *weights = put_weights(f->e, &p, &set->linear, &w, true, &bytes);
    put(&f->body, "    etc_mcu_linear(%s, %s, %s, (int32_t)(", function_pointer(f, x), weights,
        f->name_of[n->out[0]->index]);
    function_dim(f, c_dims_product(f->e, x->type.dim, x->type.rank - 1));
    put(&f->body, "), %d, %d, &q, %s);\n", (int)p.channels, (int)p.terms,
        copies_x ? "work" : "NULL");
    put_finish(f, &p, n->out[0]);
    if (copies_x)
        use_work(f, k * set->line_bytes + 4);
    f->terms = type_bytes(x->type) == INT64_MAX ? 0 : (double)type_bytes(x->type);
    const int64_t some = set->copies_x && p.channels % 4 < 3 ? 2 : 4; /* at a time, of the last */
    f->steps = f->terms / (double)p.terms * (double)(k * blocks_of(p.channels, some) * some);
    *done = true;
    return true;
}

/* Prints a product.  The core makes weights of a linear layer from the second operand when the
 * model runs. */
bool emit_mcu_matmul(Function *f, const Node *n, bool *done)
{
    const McuSet *set = mcu_set_find(f->e->target->mcu);
    const Value *x = arg_value(n, "self"), *w = arg_value(n, "mat2"), *y = n->out[0];
    *done = set && is_small(x) && is_small(w) && is_small(y);
    if (!*done)
        return true;
    const bool is_turned = arg_bool(n, "is_transposed"), x_signed = x->type.dtype == ETC_I8;
    const int64_t k = x->type.dim[2].value, cols = y->type.dim[2].value;
    const int64_t wide = blocks_of(k, set->linear.multiple) * set->linear.multiple;
    const int64_t channels = blocks_of(cols, 4) * 4;
    const int64_t turn = set->counts_from_0 ? (x_signed ? 128 : 0) : (x_signed ? 0 : -128);
    Points p = {.n = n, .x_is_signed = x_signed, .y_is_signed = y->type.dtype == ETC_I8};
    const char *const name[2] = {"NULL", "NULL"};
    read_range(&p);
    put_points(f, &p, name, x_signed == set->counts_from_0);
    put(&f->body, "    /* batches, m, n, k, k with zeros; bytes of the second from row to row and "
        "column to\n     * column, its sign to turn; zero points; factor */\n"
        "    static const EtcMcuMatmul g = {%d, %d, %d, %d, %d, %d, %d, %s, %d, %d, %d};\n",
        (int)x->type.dim[0].value, (int)x->type.dim[1].value, (int)cols, (int)k, (int)wide,
        (int)(is_turned ? 1 : cols), (int)(is_turned ? k : 1),
        w->type.dtype == ETC_I8 ? "0" : "0x80",
        (int)(number(n, "self_zero") + (double)turn),
        (int)number(n, "mat2_zero") - (w->type.dtype == ETC_I8 ? 0 : 128),
        (int)number(n, "by") * (1 << set->by_shift));
    put(&f->body, "    etc_mcu_matmul(%s, ", function_pointer(f, x));
    put(&f->body, "%s, %s, &g, &q, work);\n", function_pointer(f, w), f->name_of[y->index]);
    put_finish(f, &p, y);
    use_work(f, 4 * channels + channels * (8 + wide) + wide * set->line_bytes + 4);
    return true;
}

/* Returns whether a window may have elements outside x. */
static bool is_cut(const Pool *w, Image x, Image y)
{
    return w->pad[0] || w->pad[1] || (y.h - 1) * w->stride[0] + w->kernel[0] > x.h ||
           (y.w - 1) * w->stride[1] + w->kernel[1] > x.w;
}

/* Returns the number by which a mean divides the sum of `count` elements. */
static double divisor_of(const Pool *w, int64_t count)
{
    return (double)(w->divisor ? w->divisor : count > 0 ? count : 1);
}

/* Prints means of windows.  Those that are cut count fewer elements, so there is a factor for each count. */
bool emit_mcu_mean(Function *f, const Node *n, const Pool *w, double ratio, bool *done)
{
    enum { MOST_CUT = 1024 };
    const McuSet *set = mcu_set_find(f->e->target->mcu);
    const Value *xv = arg_value(n, "input"), *yv = n->out[0];
    int64_t count = w->kernel[0] * w->kernel[1];
    *done = false;
    if (!set || !is_small(xv) || !is_small(yv) || xv->type.rank != 4 || count < 1 || count > 65536)
        return true;
    Image x = image_of(xv), y = image_of(yv);
    const bool cut = is_cut(w, x, y);
    double part = 1, by = ratio / divisor_of(w, cut ? 1 : count);
    int shift = 0; /* the shift of the sum that makes all factors less than 1/2 */
    while (by * part >= 0.4999999 && count < 1 << (22 - shift)) {
        part /= 2;
        shift++;
    }
    if (!(by > 0 && by * part < 0.4999999) || (cut && count > MOST_CUT))
        return true;
    Points p = {.n = n, .channels = 1, .x_is_signed = xv->type.dtype == ETC_I8,
                .y_is_signed = yv->type.dtype == ETC_I8};
    read_range(&p);
    const int64_t n_factors = cut ? count + 1 : 1;
    int32_t *start = NEW(f->e->a, int32_t, 1), *factor = NEW(f->e->a, int32_t, n_factors);
    int64_t zero = (int64_t)number(n, "zero_point") - (p.x_is_signed ? 0 : 128);
    *start = (int32_t)(-zero * (cut ? 1 : count));
    for (int64_t i = 0; i < n_factors; i++)
        factor[i] = (int32_t)nearbyint(ratio / divisor_of(w, cut ? i : count) * part * 2147483648.0) *
                    (1 << set->by_shift);
    const char *name[2];
    name[0] = made_array(f->e, yv->name, "start", ETC_I32, 1, start);
    name[1] = made_array(f->e, yv->name, "by", ETC_I32, n_factors, factor);
    int64_t planes = xv->type.dim[0].value * xv->type.dim[1].value;
    put_geometry(f, (int64_t[]){planes, planes}, x, y, w->kernel, w->stride, w->pad,
                 (int64_t[]){cut ? w->counts_pad : count, shift, 1, 1});
    put_points(f, &p, name, !p.x_is_signed);
    put(&f->body, "    etc_mcu_%smeans(%s, %s, &g, &q);\n", cut ? "cut_" : "",
        function_pointer(f, xv), f->name_of[yv->index]);
    put_finish(f, &p, yv);
    *done = true;
    return true;
}

bool emit_mcu_max(Function *f, const Node *n, const Pool *w, bool *done)
{
    const Value *xv = arg_value(n, "self"), *yv = n->out[0];
    *done = mcu_set_find(f->e->target->mcu) && is_small(xv) && is_small(yv) &&
            xv->type.dtype == ETC_I8 && xv->type.rank == 4 && w->dilation[0] == 1 &&
            w->dilation[1] == 1 && c_type_is_dense(f->e, value_type(xv)) &&
            c_type_is_dense(f->e, yv->type);
    if (!*done)
        return true;
    const Image x = image_of(xv);
    const int64_t planes = xv->type.dim[0].value * xv->type.dim[1].value;
    put_geometry(f, (int64_t[]){planes, planes}, x, image_of(yv), w->kernel, w->stride, w->pad,
                 (int64_t[]){0, 0, 1, 1});
    put(&f->body, "    etc_mcu_max(%s, %s, &g, work);\n", function_pointer(f, xv),
        f->name_of[yv->index]);
    use_work(f, x.w);
    return true;
}

/* -- sums and products of two images ----------------------------------------------------------- */

/* Returns x if v is a dequantize of x, and x is int8 with one scale; else NULL. */
static const Value *read_dequantize(const Value *v, QParams *q)
{
    bool ok = v && v->def && qparams_read(v->def, q) && q->undoes && q->kind == Q_TENSOR &&
              !q->scales && q->dtype == ETC_I8 && q->scale > 0 && v->type.dtype == ETC_F32;
    return ok ? q->x : NULL;
}

/* The parts of quantize(clamp(dequantize(a) + times * dequantize(b))), or of the same with a product. */
typedef struct Pair {
    const Value *x[2];
    QParams of[2], to;
    double times;
    Clamp clamp; /* the clamp of the floats */
} Pair;

static bool is_pair(const Graph *body, OpId op, Pair *s)
{
    const Node *n = body->out[0]->def;
    s->clamp = NO_CLAMP;
    s->times = 1;
    if (body->n_out != 1 || !n || !qparams_read(n, &s->to) || s->to.undoes ||
        s->to.kind != Q_TENSOR || s->to.scales || s->to.dtype != ETC_I8)
        return false;
    n = s->to.x->def;
    if (n && clamp_read(n, &s->clamp))
        n = s->clamp.x->def;
    if (!n || !(n->op == op || (op == OP_ADD_TENSOR && n->op == OP_SUB_TENSOR)))
        return false;
    if (arg_find(n, "alpha") >= 0 && !arg_number(n, arg_find(n, "alpha"), &s->times))
        return false;
    if (n->op == OP_SUB_TENSOR)
        s->times = -s->times;
    const char *const name[2] = {"self", "other"};
    for (int i = 0; i < 2; i++) {
        const Value *v = arg_value(n, name[i]);
        s->x[i] = read_dequantize(v, &s->of[i]);
        if (!s->x[i] || s->x[i]->def)
            return false;
    }
    return true;
}

/* Returns the most fraction bits with which numbers up to `most` fit into 32 bits; 0: there are
 * none. */
static int fraction_of(double most)
{
    for (int bits = 22; bits > 8; bits--)
        if (ldexp(most + 1, bits) < 2147483648.0 - 65536) /* the last term is for rounded factors */
            return bits;
    return 0;
}

static void put_pair(Function *f, const Pair *s, const Value *y, const char *core, bool clamps,
                     const char *sizes, const int32_t *by, int n_by, int bits)
{
    Points p = {.scale = s->to.scale, .zero = s->to.zero, .y_is_signed = true};
    int32_t *to = NEW(f->e->a, int32_t, n_by);
    memcpy(to, by, (size_t)n_by * sizeof *to);
    p.lo = bound(&p, s->clamp.lo, s->to.lo, s->to.hi);
    p.hi = bound(&p, s->clamp.hi, s->to.lo, s->to.hi);
    const char *factors = made_array(f->e, y->name, "by", ETC_I32, n_by, to);
    const char *const name[2] = {"NULL", "NULL"};
    put_points(f, &p, name, false);
    const char *a = function_pointer(f, s->x[0]), *b = function_pointer(f, s->x[1]);
    put(&f->body, "    %s(%s, %s, %s, %s, %s, %d, &q);\n", core, a, b, f->name_of[y->index], sizes,
        factors, bits);
    if (!clamps)
        put_finish(f, &p, y);
}

static bool emit_mcu_sum(Function *f, const Graph *body, bool *done)
{
    Pair s;
    const Value *y = body->out[0];
    *done = false;
    if (!is_pair(body, OP_ADD_TENSOR, &s) || !is_small(y) || !c_type_is_dense(f->e, y->type))
        return true;
    double ratio[2], start = (double)s.to.zero;
    for (int i = 0; i < 2; i++) {
        if (!type_equal(s.x[i]->type, y->type) || !c_type_is_dense(f->e, s.x[i]->type))
            return true;
        ratio[i] = (i ? s.times : 1) * s.of[i].scale / s.to.scale;
        start -= ratio[i] * (double)s.of[i].zero;
    }
    int bits = fraction_of(128 * (fabs(ratio[0]) + fabs(ratio[1])) + fabs(start));
    const int32_t by[3] = {(int32_t)nearbyint(ldexp(ratio[0], bits)),
                           (int32_t)nearbyint(ldexp(ratio[1], bits)),
                           (int32_t)nearbyint(ldexp(start + 0.5, bits))};
    *done = bits > 0;
    if (!*done)
        return true;
    const bool by_four = mcu_set_find(f->e->target->mcu)->has_strips;
    put_pair(f, &s, y, by_four ? "etc_mcu_sum_4" : "etc_mcu_sum", by_four,
             arena_printf(f->e->a, "%d", (int)type_numel(y->type)), by, 3, bits);
    return true;
}

/* Returns the number of bytes of y that use the same byte of b.  b must have the sizes of y before
 * some axis, and sizes of 1 from there on; 0: it does not. */
static int64_t each_of(const Type b, const Type y)
{
    int64_t each = 1;
    int axis = y.rank;
    if (b.rank != y.rank)
        return 0;
    while (axis > 0 && b.dim[axis - 1].value == 1)
        each *= y.dim[--axis].value;
    for (int i = 0; i < axis; i++)
        if (b.dim[i].value != y.dim[i].value)
            return 0;
    return each;
}

static bool emit_mcu_product(Function *f, const Graph *body, bool *done)
{
    Pair s;
    const Value *y = body->out[0];
    *done = false;
    if (!is_pair(body, OP_MUL_TENSOR, &s) || !is_small(y) || !c_type_is_dense(f->e, y->type) ||
        !is_small(s.x[0]) || !is_small(s.x[1]) || !c_type_is_dense(f->e, s.x[0]->type) ||
        !c_type_is_dense(f->e, s.x[1]->type))
        return true;
    int wide = !type_equal(s.x[0]->type, y->type); /* the index of the one that has y's sizes */
    if (wide) {
        const Value *x = s.x[0];
        const QParams q = s.of[0];
        s.x[0] = s.x[1];
        s.of[0] = s.of[1];
        s.x[1] = x;
        s.of[1] = q;
    }
    const int64_t each = each_of(s.x[1]->type, y->type);
    const double ratio = s.of[0].scale * s.of[1].scale / s.to.scale;
    const int bits = fraction_of(255 * 255 * ratio + fabs((double)s.to.zero));
    const int32_t by[4] = {(int32_t)-s.of[0].zero, (int32_t)-s.of[1].zero,
                           (int32_t)nearbyint(ldexp(ratio, bits)),
                           (int32_t)nearbyint(ldexp((double)s.to.zero + 0.5, bits))};
    *done = type_equal(s.x[0]->type, y->type) && each > 0 && bits > 0;
    const char *sizes = arena_printf(f->e->a, "%d, %d", (int)type_numel(y->type), (int)each);
    if (*done)
        put_pair(f, &s, y, "etc_mcu_product", true, sizes, by, 4, bits);
    return true;
}

/* -- functions of a byte ---------------------------------------------------------------------- */

bool emit_lookup(Function *f, const Node *n, Clamp clamp)
{
    const Value *x = arg_value(n, "input"), *table = arg_value(n, "table"), *y = n->out[0];
    (void)clamp;
    if (!is_small(y) || !c_type_is_dense(f->e, value_type(x)) || !c_type_is_dense(f->e, y->type))
        return function_refuse(f, n, "expects known sizes without gaps");
    put(&f->body, "    etc_mcu_lookup(%s, %s, %s, %d);\n", function_pointer(f, x),
        function_pointer(f, table), f->name_of[y->index], (int)type_numel(y->type));
    return true;
}

/* -- between floats and integers -------------------------------------------------------------- */

/* Returns whether products of bytes with the scale, and floats that become bytes, are not close to
 * the ends of what floats represent. */
static bool is_ordinary(double scale)
{
    return scale > 1e-30 && scale < 1e30;
}

/* Returns whether a group is only a quantize of an input. */
static bool is_quantize(const Graph *body, QParams *q)
{
    const Node *n = body->out[0]->def;
    return body->n_out == 1 && n && qparams_read(n, q) && !q->undoes && q->kind == Q_TENSOR &&
           !q->scales && is_byte(body->out[0]) && !q->x->def && q->x->type.dtype == ETC_F32 &&
           is_ordinary(q->scale);
}

static bool emit_mcu_quantize(Function *f, const Graph *body, bool *done)
{
    QParams q;
    const Value *y = body->out[0];
    *done = is_quantize(body, &q) && c_type_is_dense(f->e, y->type) &&
            c_type_is_dense(f->e, q.x->type);
    if (!*done)
        return true;
    int64_t turn = y->type.dtype == ETC_I8 ? 0 : 128;
    Points p = {.zero = q.zero - turn, .lo = q.lo - turn, .hi = q.hi - turn, .y_is_signed = !turn};
    const char *const name[2] = {"NULL", "NULL"};
    put_points(f, &p, name, false);
    put(&f->body, "    etc_mcu_quantize(%s, %s, (int32_t)(", function_pointer(f, q.x),
        f->name_of[y->index]);
    function_dim(f, c_dims_product(f->e, y->type.dim, y->type.rank));
    put(&f->body, "), ");
    put_float(&f->body, (float)(1 / q.scale));
    put(&f->body, ", &q);\n");
    put_finish(f, &p, y);
    return true;
}

/* Prints a group that is only a dequantize of an input. */
static bool emit_mcu_dequantize(Function *f, const Graph *body, bool *done)
{
    QParams q;
    const Value *y = body->out[0];
    *done = body->n_out == 1 && y->def && qparams_read(y->def, &q) && q.undoes &&
            q.kind == Q_TENSOR && !q.scales && is_byte(q.x) && !q.x->def &&
            is_ordinary(q.scale) && y->type.dtype == ETC_F32 && c_type_is_dense(f->e, y->type) &&
            c_type_is_dense(f->e, q.x->type);
    if (!*done)
        return true;
    put(&f->body, "    etc_mcu_dequantize(%s, %s, (int32_t)(", function_pointer(f, q.x),
        f->name_of[y->index]);
    function_dim(f, c_dims_product(f->e, y->type.dim, y->type.rank));
    put(&f->body, "), %d, %d, ", q.x->type.dtype == ETC_I8, (int)q.zero);
    put_float(&f->body, (float)q.scale);
    put(&f->body, ");\n");
    return true;
}

bool emit_mcu_group(Function *f, const Graph *body, bool *done)
{
    static bool (*const emit[])(Function *, const Graph *, bool *) = {
        emit_mcu_quantize, emit_mcu_dequantize, emit_mcu_sum, emit_mcu_product, emit_mcu_loop};
    *done = false;
    for (size_t i = 0; mcu_set_find(f->e->target->mcu) && !*done && i < sizeof emit / sizeof *emit;
         i++)
        if (!emit[i](f, body, done))
            return false;
    return true;
}
