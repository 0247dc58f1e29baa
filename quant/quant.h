/* quant.h -- quantization: inserts quantize and dequantize nodes into a float program at stage
 * core.
 *
 * A recipe says what the user wants, the `spec` of a backend what is possible.  `annotate`
 * decides the format of each value, observers see the values for sample inputs, and `convert`
 * inserts the nodes. */
#ifndef ETC_QUANT_H
#define ETC_QUANT_H

#include "ir/backend.h"
#include "ir/eval.h"

/* -- recipe.c: what the user wants ----------------------------------------------------------- */

typedef enum ObserverKind {
    OBS_MINMAX,
    OBS_MOVING_AVERAGE, /* of the smallest and the largest value of each sample */
    OBS_PERCENTILE,
    OBS_MSE, /* the range with the least squared error, from a histogram */
    OBS_KL,  /* the range with the least divergence (Migacz 2017), from a histogram */
    N_OBSERVERS
} ObserverKind;

typedef enum Algorithm { /* bits */
                         ALG_BIAS_CORRECTION = 1 << 0,
                         ALG_EQUALIZATION = 1 << 1, /* cross-layer */
                         ALG_SMOOTHQUANT = 1 << 2,
                         ALG_AWQ = 1 << 3,
                         ALG_SCALE_ESTIMATION = 1 << 4,
                         ALG_GPTQ = 1 << 5,
                         ALG_HQQ = 1 << 6
} Algorithm;

typedef enum Granularity { PER_TENSOR, PER_CHANNEL, PER_GROUP, PER_TOKEN } Granularity;

/* This says how the activations or the weights of a node are stored: dtype ETC_F32 (unchanged), ETC_F16, or
 * ETC_I8 with 8 or 4 bits. */
typedef struct QuantFormat {
    EtcDtype dtype;
    int bits;
    Granularity granularity;
    int group; /* the elements of a group along the reduced axis, for PER_GROUP */
    bool symmetric;
    bool reduce_range;   /* only of weights with 8 bits: they are in -64 .. 64 */
    bool dynamic;        /* scales are computed at run time; only of activations */
    bool may_be_dynamic; /* dynamic: auto; they are if static scales would be too coarse */
    ObserverKind observer;
    double percentile; /* of OBS_PERCENTILE, in (50, 100] */
} QuantFormat;

/* A rule applies to the nodes that match all fields of its scope.  If several rules match a node,
 * the last one counts, for each of activation, weight and algorithms separately.
 *
 * In a glob, '*' matches any run of characters and '?' one character.  `op` may leave out
 * "aten." and the overload.  A module's path also matches everything inside the module.
 * `backend` is the name of the backend that takes the node, or "portable". */
typedef struct QuantRule {
    const char *name, *op, *module, *backend; /* globs; NULL matches everything */
    int line, column; /* of the scope in the file; 0: of a preset, whose scopes need not match */
    bool has_activation, has_weight, has_algorithms;
    QuantFormat activation, weight;
    bool has_with_samples;
    unsigned algorithms;
    unsigned with_samples; /* further algorithms if there are samples or statistics of them */
} QuantRule;

typedef enum Metric {
    METRIC_NONE,
    METRIC_TOP1,
    METRIC_COSINE,
    METRIC_SQNR,
    METRIC_MAX_ABS_ERROR
} Metric;
extern const char *const metric_name[]; /* from METRIC_TOP1 on; ends with NULL */

typedef struct Recipe {
    const char *file; /* the recipe's file, or the preset's name */
    QuantRule *rule;
    int n_rules;
    bool for_latency; /* quantize only what gets faster by the cost model */
    Metric metric;    /* of --max-drop */
    int output;       /* the only output that is measured, counted from 1; 0: all outputs */
    double max_drop;  /* for METRIC_SQNR the smallest SQNR that is allowed */
    uint64_t id;      /* a hash of its text */
} Recipe;

typedef struct QuantChoice {
    QuantFormat activation, weight;
    unsigned algorithms, with_samples;
} QuantChoice;

/* Returns the settings of a node from all rules that match it. */
QuantChoice recipe_choice(const Recipe *r, const Node *n, const Backend *backend);

/* Checks that every scope matches a node of p.  Reports those that match none, with similar
 * names, and returns false. */
MUST_USE bool recipe_check_scopes(const Recipe *r, const Program *p, Diag *d);

/* -- sample inputs: the driver reads them ------------------------------------------------------ */

typedef struct Samples {
    int n;
    /* Reads sample i into `a`: its inputs, the values of the symbols by index, and its name for
     * messages.  Returns false if it fails, which is reported. */
    bool (*read)(void *ctx, int i, Arena *a, EtcTensor **in, int64_t *symbol, const char **name,
                 Diag *d);
    void *ctx;
    int threads; /* how many evaluate samples, with the same results; one reads at a time */
    /* Reports progress: samples first .. n - 1 are run, and those below `done` are finished.  A
     * `first` below 0 reports the end.  May be NULL. */
    void (*progress)(void *ctx, int first, int done, int n);
    void *progress_ctx;
} Samples;

/* -- statistics.c: what the observers found, in memory or in a file ---------------------------- */

typedef struct Statistics Statistics;

/* Parses the text of a file, which may be anything.  Returns NULL if it is wrong, which is
 * reported. */
Statistics *statistics_read(Arena *a, const char *file, const char *text, size_t n, Diag *d);
void statistics_write(const Statistics *s, FILE *out);
int statistics_count(const Statistics *s); /* the number of ranges */

/* Returns the name of the library that multiplied when the samples were evaluated; NULL: none
 * did. */
const char *statistics_library(const Statistics *s);

/* Continues hash h with n bytes.  It is the same on all machines of one endianness. */
uint64_t statistics_hash(uint64_t h, const void *data, size_t n);

/* Makes statistics that only say that the first results of the named nodes stay floats. */
Statistics *statistics_keeping(Arena *a, const char *const *name, int n);

/* The state of an unfinished run over samples, from which a later run can continue. */
typedef struct Checkpoint {
    uint64_t id;               /* a hash of everything that the result depends on */
    const Statistics *from;    /* what an earlier run saved, or NULL */
    int first;                 /* result: the samples that it had evaluated; 0: it does not fit */
    bool (*is_due)(void *ctx); /* asked before each sample, by one thread at a time */
    bool (*keep)(void *ctx, const Statistics *s, int done, Diag *d); /* saves the state */
    void *ctx;
} Checkpoint;

/* -- quantize.c: the pass --------------------------------------------------------------------- */

/* The quantization job of a session. */
typedef struct QuantJob {
    const Recipe *recipe;
    const Samples *samples;       /* samples of method 0; may be NULL */
    const Statistics *statistics; /* statistics in place of samples, or NULL */
    const Statistics *keep;       /* which nodes stay floats; NULL: those that `statistics` names */
    Statistics *seen;             /* result: statistics of the samples, in the program's arena */
    const Statistics *dynamic;    /* the products that `dynamic: auto` makes dynamic; NULL: none */
    Checkpoint *checkpoint;  /* of the samples, or NULL */
    const Blas *blas;        /* multiplies when samples are evaluated; may be NULL */
    int threads;             /* how many threads quantize weights; 0: one */
    bool only_observe;       /* the program is not changed */
    bool is_refit;  /* the statistics are of this graph with other weights, as the caller checked */
    bool is_nested; /* the graph is nested in a node, and no sample shows its values */
} QuantJob;

bool pass_quantize(Program *p, Arena *tmp, Diag *d);

/* -- observe.c: ranges of values, in constant memory ------------------------------------------ */

/* The statistics of one value over all samples.  Its size does not depend on their number. */
typedef struct Observer Observer;

Observer *observer_new(Arena *a, ObserverKind kind, double percentile, int channels);
/* Adds n elements; the channel of element i is i / inner % channels.  Returns false if there is
 * a NaN or an infinity; *bad is then its index. */
bool observer_add(Observer *o, const float *x, int64_t n, int64_t inner, int64_t *bad);
/* Clamps the statistics: values beyond lo or hi count as lo or hi from now on; lo <= 0 <= hi. */
void observer_clip(Observer *o, float lo, float hi);
/* Chooses the range lo <= 0 <= hi that integers from quant_min to quant_max shall cover.  Both
 * are 0 if all values were 0 or there were none. */
void observer_range(const Observer *o, int channel, int quant_min, int quant_max, bool symmetric,
                    float *lo, float *hi);
/* Returns the SQNR in dB if integers from quant_min to quant_max cover lo to hi.  Returns 0 if all
 * values were 0, or if this kind of observer has no histogram. */
double observer_sqnr(const Observer *o, int channel, int quant_min, int quant_max, bool symmetric,
                     float lo, float hi);
/* Divides the observed range, *lo to *hi, into n equal parts and counts the values in each.
 * Returns false if there were no values, or if this kind of observer has no histogram. */
bool observer_bars(const Observer *o, int channel, int n, uint64_t *bar, float *lo, float *hi);

/* -- report.c: the damage of quantization, layer by layer ------------------------------------- */

enum { REPORT_BARS = 24 };

/* The difference between values `want` in floats and `got`, summed over elements. */
typedef struct Difference {
    double signal, noise, square, dot; /* sums of want^2, (got - want)^2, got^2 and want * got */
    double most; /* the largest |got - want|; NaN if one of the values is NaN */
    int64_t n;
} Difference;

void difference_add(Difference *d, const float *want, const float *got, int64_t n);
/* The SQNR in dB: infinite if nothing differs, -infinite if a value is NaN. */
double difference_sqnr(const Difference *d);
double difference_cosine(const Difference *d); /* 1 if all values are 0 */
int64_t largest_of(const float *x, int64_t n); /* the index of the first largest element; n > 0 */

typedef struct LayerReport {
    Loc loc;
    const Node *node;  /* in the program before quantization */
    bool is_quantized; /* its weights or all its operands are integers */
    const char *kept;  /* its format: "int8, weights int4 in groups of 32" */
    bool has_partner;  /* both programs have this node; else only bytes_* are known below */
    Difference error;  /* of its result, including the errors of its operands */
    double damage;     /* the noise that it adds to that of its operands, relative to the signal */
    int rank;          /* by damage, counted from 1 */
    bool has_range;    /* its result is stored as integers, which cover lo to hi */
    float lo, hi;
    int64_t n_clipped;         /* how many elements lie outside of lo to hi */
    uint64_t bar[REPORT_BARS]; /* a histogram of its result in floats, over seen_lo to seen_hi */
    float seen_lo, seen_hi;
    int64_t bytes_before, bytes_after; /* of its constants */
} LayerReport;

typedef struct QuantReport {
    const char *model, *recipe, *library; /* library: that of --fast-calibrate, or NULL */
    int n_samples, n_layers;
    LayerReport *layer; /* in the order of the program */
    Difference outputs; /* of all outputs together */
    Difference *output; /* of each output; n is 0 for one that is not float32 */
    int n_outputs;
    int64_t bytes_before, bytes_after; /* of all constants; shared ones count once */
    const int64_t *label;              /* the right index for each row of output 1, or NULL */
    int64_t n_labels, n_rows;
    int64_t right[2]; /* rows whose largest element is at the label, before and after */
} QuantReport;

/* Evaluates both graphs on the samples and compares them.  `after` is the result of
 * pass_quantize on `before`; both are at stage core.  The caller sets `model`, `recipe`,
 * `library` and `label`; the rest of *out is set here, in `a`.  Returns false if it fails, which
 * is reported. */
MUST_USE bool report_measure(const Graph *before, const Graph *after, const Samples *s, Arena *a,
                             QuantReport *out, Diag *d);

typedef struct LayerDamage {
    int layer; /* its index in the report */
    double damage;
} LayerDamage;

/* Returns the quantized layers, those with the most damage first.  A clamp or activation
 * function that alone reads a layer's result belongs to that layer. */
LayerDamage *report_worst(const QuantReport *r, int *n, Arena *a);

#endif
