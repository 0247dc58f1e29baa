/* onnx_ml.c -- reads operators of ai.onnx.ml, which models of scikit-learn have: preprocessing,
 * linear models and trees.
 *
 * All rows walk down a tree at once.  Each step looks up the feature and the threshold of the node
 * that a row has reached, compares, and looks up the next node.  The next node of a leaf is the
 * leaf itself. */
#include "compiler/import/onnx.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* -- attributes -------------------------------------------------------------------------------- */

/* Copies numbers of an attribute, which are freed after the import.  NULL: there are none. */
static void *copy_of(OnnxNode *n, const void *data, int64_t count, size_t size)
{
    const size_t bytes = (size_t)count * size;
    return count ? memcpy(arena_bytes(n->in->program->arena, bytes), data, bytes) : NULL;
}

/* These return copies of an attribute's numbers, or NULL without a report if there are none. */
static float *floats_of(OnnxNode *n, const char *name, int64_t *count)
{
    const Onnx__Attribute *a = on_attribute(n, name);
    *count = a ? (int64_t)a->n_floats : 0;
    return copy_of(n, a ? a->floats : NULL, *count, sizeof(float));
}

static const int64_t *ints_of(OnnxNode *n, const char *name, int64_t *count)
{
    const Onnx__Attribute *a = on_attribute(n, name);
    *count = a ? (int64_t)a->n_ints : 0;
    return copy_of(n, a ? a->ints : NULL, *count, sizeof(int64_t));
}

static Value *line_of(OnnxNode *n, const char *name)
{
    int64_t count;
    const float *v = floats_of(n, name, &count);
    Dim size = DIM(count);
    return v ? on_floats(n, 1, &size, v) : NULL;
}

static Value *integers_of(OnnxNode *n, const int64_t *v, int64_t count)
{
    Dim size = DIM(count);
    OnnxConst c = {.type = type_tensor(n->in->program, ETC_I64, 1, &size), .data = (const uint8_t *)v,
                   .n_bytes = count * (int64_t)sizeof *v};
    return onnx_const_value(n->in, "table", &c);
}

/* Returns input 0 as floats of rank 2, [rows, features]. */
static Value *features(OnnxNode *n)
{
    Value *x = on_cast(n, on_value(n, 0), ETC_F32);
    if (x && x->type.rank == 1)
        x = on_insert(n, x, 0);
    if (x && (x->type.rank != 2 || x->type.dim[1].expr)) {
        onnx_unsupported(n, "has an operand that is no matrix of a known number of columns");
        return NULL;
    }
    return x;
}

/* -- features ---------------------------------------------------------------------------------- */

/* Defines (x - offset) * scale; both have a number for each column, or one for all. */
bool onnx_scaler(OnnxNode *n)
{
    Value *x = on_cast(n, on_value(n, 0), ETC_F32), *offset = line_of(n, "offset");
    Value *scale = line_of(n, "scale");
    if (offset)
        x = on_binary(n, OP_SUB_TENSOR, x, offset);
    return on_define(n, 0, scale ? on_binary(n, OP_MUL_TENSOR, x, scale) : x);
}

/* Divides rows by their greatest element, or by a norm.  Rows of zeros stay so. */
bool onnx_normalizer(OnnxNode *n)
{
    const char *norm = on_text(n, "norm", "MAX");
    Value *x = features(n), *by = NULL;
    if (!strcmp(norm, "MAX"))
        by = on_sum(n, OP_AMAX, x, 1, true);
    else if (!strcmp(norm, "L1"))
        by = on_sum(n, OP_SUM_DIM, on_unary(n, OP_ABS, x), 1, true);
    else if (!strcmp(norm, "L2"))
        by = on_unary(n, OP_SQRT, on_sum(n, OP_SUM_DIM, on_binary(n, OP_MUL_TENSOR, x, x), 1, true));
    else
        return onnx_wrong(n, "has the norm '%s', expected MAX, L1 or L2", norm);
    by = on_where(n, on_scalar(n, OP_EQ_SCALAR, by, 0), on_number(n, 1, ETC_F32), by);
    return on_define(n, 0, on_binary(n, OP_DIV_TENSOR, x, by));
}

bool onnx_binarizer(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    Value *is = on_scalar(n, OP_GT_SCALAR, x, on_float(n, "threshold", 0));
    return x && on_define(n, 0, on_cast(n, is, x->type.dtype));
}

/* Replaces missing numbers. */
bool onnx_imputer(OnnxNode *n)
{
    Value *x = on_value(n, 0), *with = line_of(n, "imputed_value_floats");
    double missing = on_float(n, "replaced_value_float", 0);
    if (!with)
        return onnx_unsupported(n, "has no imputed_value_floats");
    if (!x || x->type.dtype != ETC_F32)
        return x && onnx_unsupported(n, "has elements of type %s", dtype_name(x->type.dtype));
    Value *is = missing != missing ? on_given(n, OP_ISNAN, type_tensor(n->in->program, ETC_BOOL,
                                                                       x->type.rank, x->type.dim), x)
                                   : on_scalar(n, OP_EQ_SCALAR, x, missing);
    return on_define(n, 0, on_where(n, is, with, x));
}

bool onnx_feature_vectorizer(OnnxNode *n)
{
    int count = (int)n->node->n_input;
    Value **part = NEW(n->in->tmp, Value *, count + 1);
    for (int i = 0; i < count; i++) {
        part[i] = on_cast(n, on_value(n, i), ETC_F32);
        if (!part[i] || part[i]->type.rank != 2)
            return part[i] && onnx_unsupported(n, "joins other than matrices");
    }
    return count && on_define(n, 0, ON_BUILD(n, OP_CAT, "Vi", count, part, (int64_t)1));
}

/* Selects the columns that input 1 names.  The result is a matrix. */
bool onnx_array_feature_extractor(OnnxNode *n)
{
    Value *x = on_value(n, 0), *at = on_cast(n, on_value(n, 1), ETC_I64);
    if (!x || !at || !x->type.rank)
        return false;
    Dim all = on_numel(n, at);
    x = x->type.rank == 1 ? on_insert(n, x, 0) : x;
    at = on_view(n, at, 1, &all);
    return x && at &&
           on_define(n, 0, ON_BUILD(n, OP_INDEX_SELECT, "viv", x, (int64_t)(x->type.rank - 1), at));
}

/* Compares input 0 with each of the numbers that an attribute lists.  Returns bools, in a last axis
 * of their own. */
static Value *is_each(OnnxNode *n, const char *name)
{
    int64_t count;
    const int64_t *v = ints_of(n, name, &count);
    Value *x = on_value(n, 0);
    if (!v || !x || dtype_is_float(x->type.dtype)) {
        onnx_unsupported(n, "has no integers as '%s', or its input is not integers", name);
        return NULL;
    }
    x = on_insert(n, on_cast(n, x, ETC_I64), x->type.rank);
    return on_binary(n, OP_EQ_TENSOR, x, integers_of(n, v, count));
}

bool onnx_one_hot_encoder(OnnxNode *n)
{
    return on_define(n, 0, on_cast(n, is_each(n, "cats_int64s"), ETC_F32));
}

/* Looks up the elements of x among the keys.  The result is the value of the key, or a default. */
bool onnx_label_encoder(OnnxNode *n)
{
    int64_t count, keys;
    Value *is = is_each(n, "keys_int64s"), *to = line_of(n, "values_floats");
    const int64_t *v = to ? NULL : ints_of(n, "values_int64s", &count);
    if (!is || (!to && !v))
        return !n->failed && onnx_unsupported(n, "has neither values_int64s nor values_floats");
    to = to ? to : integers_of(n, v, count);
    ints_of(n, "keys_int64s", &keys);
    if (!dim_equal(to->type.dim[0], DIM(keys)))
        return onnx_wrong(n, "has another number of keys than of values");
    int last = is->type.rank - 1;
    int64_t dim = last;
    is = on_cast(n, is, ETC_I64);
    Value *at = is ? ON_BUILD(n, OP_ARGMAX, "vib", is, dim, false) : NULL;
    Value *list[1] = {at}, *y = at ? ON_BUILD(n, OP_INDEX_TENSOR, "vV", to, 1, list) : NULL;
    Value *any = on_scalar(n, OP_NE_SCALAR, on_sum(n, OP_AMAX, is, last, false), 0);
    bool is_float = y && dtype_is_float(y->type.dtype);
    double otherwise = is_float ? on_float(n, "default_float", 0) : (double)on_int(n, "default_int64", -1);
    return y && on_define(n, 0, on_where(n, any, y, on_number(n, otherwise, y->type.dtype)));
}

/* -- scores ------------------------------------------------------------------------------------ */

static Value *transformed(OnnxNode *n, Value *x)
{
    const char *how = on_text(n, "post_transform", "NONE");
    if (!x || !strcmp(how, "NONE"))
        return x;
    if (!strcmp(how, "LOGISTIC"))
        return on_unary(n, OP_SIGMOID, x);
    if (!strcmp(how, "SOFTMAX"))
        return ON_BUILD(n, OP__SOFTMAX, "vib", x, (int64_t)1, false);
    onnx_unsupported(n, "has the post_transform '%s'", how);
    return NULL;
}

/* Multiplies x with rows of coefficients, one for each result, and adds the intercepts. */
static Value *linear_of(OnnxNode *n, int64_t results)
{
    int64_t count;
    Value *x = features(n), *shift = line_of(n, "intercepts");
    const float *v = floats_of(n, "coefficients", &count);
    if (!x)
        return NULL;
    Dim dim[2] = {DIM(results), x->type.dim[1]};
    if (!v || results < 1 || count != results * dim[1].value ||
        (shift && !dim_equal(shift->type.dim[0], dim[0]))) {
        onnx_unsupported(n, "expects one coefficient for each column and result");
        return NULL;
    }
    return ON_BUILD(n, OP_LINEAR, "vvv", x, on_floats(n, 2, dim, v), shift);
}

bool onnx_linear_regressor(OnnxNode *n)
{
    return on_define(n, 0, transformed(n, linear_of(n, on_int(n, "targets", 1))));
}

/* Defines output 0 as the label of each row and output 1 as its scores.  `at` is the place of the
 * label in the list of labels. */
static bool define_classes(OnnxNode *n, Value *at, Value *scores, const char *labels)
{
    int64_t count;
    const int64_t *v = ints_of(n, labels, &count);
    if (!v)
        return onnx_unsupported(n, "has labels that are no integers");
    Value *y = at ? ON_BUILD(n, OP_INDEX_SELECT, "viv", integers_of(n, v, count), (int64_t)0, at) : NULL;
    return on_define(n, 0, y) && on_define(n, 1, scores);
}

static Value *greatest(OnnxNode *n, Value *x)
{
    return x ? ON_BUILD(n, OP_ARGMAX, "vib", x, (int64_t)1, false) : NULL;
}

bool onnx_linear_classifier(OnnxNode *n)
{
    int64_t count;
    ints_of(n, "classlabels_ints", &count);
    if (count < 2)
        return onnx_unsupported(n, "has labels that are no integers, or less than two");
    Value *y = linear_of(n, count);
    return define_classes(n, greatest(n, y), transformed(n, y), "classlabels_ints");
}

/* -- trees ------------------------------------------------------------------------------------- */

typedef struct Trees {
    int64_t nodes, trees, depth, results;
    int64_t *feature, *next[2]; /* of each node; next: where the condition is false, true */
    int64_t *root;              /* of each tree */
    float *value, *score;       /* thresholds; [nodes, results] */
    bool *tracks;               /* the condition is true for NaN too */
    OpId op;                    /* of the condition; OP_NONE: there are only leaves */
    bool any_tracks;
    Table at; /* (tree, node) -> 1 + index */
} Trees;

static int64_t node_at(Trees *t, int64_t tree, int64_t node)
{
    int64_t key[2] = {tree, node};
    return table_at_copy(&t->at, key, sizeof key)->number - 1;
}

/* Returns an attribute that lists a number for each node. */
static const int64_t *node_ints(OnnxNode *n, const Trees *t, const char *name)
{
    int64_t count;
    const int64_t *v = ints_of(n, name, &count);
    if (v && count == t->nodes)
        return v;
    onnx_wrong(n, "has %lld numbers as '%s', expected one for each of %lld nodes", (long long)count, name,
               (long long)t->nodes);
    return NULL;
}

/* Reads the condition of node i.  All nodes but leaves must have the same. */
static bool read_mode(OnnxNode *n, Trees *t, const Onnx__Attribute *modes, int64_t i, bool *is_leaf)
{
    static const struct {
        const char *name;
        OpId op;
    } row[] = {{"BRANCH_LEQ", OP_LE_TENSOR}, {"BRANCH_LT", OP_LT_TENSOR}, {"BRANCH_GTE", OP_GE_TENSOR},
               {"BRANCH_GT", OP_GT_TENSOR}};
    const char *mode = onnx_text(n->in, modes->strings[i]);
    *is_leaf = mode && !strcmp(mode, "LEAF");
    if (!mode || *is_leaf)
        return mode != NULL;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (!strcmp(mode, row[k].name) && (t->op == OP_NONE || t->op == row[k].op)) {
            t->op = row[k].op;
            return true;
        }
    return onnx_unsupported(n, "has nodes of the mode '%s', or of several modes", mode);
}

static bool read_nodes(OnnxNode *n, Trees *t)
{
    enum { MOST = 1 << 22 };
    Arena *a = n->in->program->arena;
    const Onnx__Attribute *modes = on_attribute(n, "nodes_modes");
    int64_t values;
    const int64_t *tree, *node, *feature, *next[2];
    t->nodes = modes ? (int64_t)modes->n_strings : 0;
    t->value = floats_of(n, "nodes_values", &values);
    if (t->nodes < 1 || t->nodes > MOST || values != t->nodes)
        return onnx_unsupported(n, "has no nodes, too many, or not a threshold of f32 for each");
    if (!(tree = node_ints(n, t, "nodes_treeids")) || !(node = node_ints(n, t, "nodes_nodeids")) ||
        !(feature = node_ints(n, t, "nodes_featureids")) ||
        !(next[0] = node_ints(n, t, "nodes_falsenodeids")) ||
        !(next[1] = node_ints(n, t, "nodes_truenodeids")))
        return false;
    size_t bytes = (size_t)t->nodes * sizeof(int64_t);
    t->feature = arena_bytes(a, bytes);
    t->next[0] = arena_bytes(a, bytes);
    t->next[1] = arena_bytes(a, bytes);
    t->root = arena_bytes(a, bytes);
    for (int64_t i = 0; i < t->nodes; i++) {
        int64_t key[2] = {tree[i], node[i]};
        TableItem *at = table_at_copy(&t->at, key, sizeof key);
        if (at->number)
            return onnx_wrong(n, "has two nodes of one number in a tree");
        at->number = i + 1;
    }
    for (int64_t i = 0; i < t->nodes; i++) {
        bool is_leaf;
        if (!read_mode(n, t, modes, i, &is_leaf))
            return false;
        t->feature[i] = is_leaf ? 0 : feature[i];
        for (int k = 0; k < 2; k++) {
            t->next[k][i] = is_leaf ? i : node_at(t, tree[i], next[k][i]);
            if (t->next[k][i] < 0)
                return onnx_wrong(n, "has a node whose child is not in its tree");
        }
    }
    return true;
}

/* Finds the roots, which are the nodes that no other leads to, in the order of the file.  Levels
 * are counted from them; each node may be met once. */
static bool find_depth(OnnxNode *n, Trees *t)
{
    enum { MOST = 1000 }; /* each level adds several nodes to the graph */
    Arena *a = n->in->tmp;
    bool *is_inner = NEW(a, bool, t->nodes);
    int64_t *queue = NEW(a, int64_t, t->nodes), end = 0, at = 0;
    for (int64_t i = 0; i < t->nodes; i++)
        for (int k = 0; k < 2; k++) {
            int64_t to = t->next[k][i];
            if (to != i && is_inner[to])
                return onnx_wrong(n, "has a node with several parents");
            is_inner[to] = is_inner[to] || to != i;
        }
    for (int64_t i = 0; i < t->nodes; i++)
        if (!is_inner[i])
            queue[end++] = t->root[t->trees++] = i;
    for (int64_t level = end; at < level; level = end, t->depth++)
        for (; at < level; at++)
            for (int k = 0; k < 2; k++)
                if (t->next[k][queue[at]] != queue[at])
                    queue[end++] = t->next[k][queue[at]];
    if (end < t->nodes)
        return onnx_wrong(n, "has nodes that form a cycle");
    return t->depth <= MOST || onnx_unsupported(n, "has trees of more than %d levels", MOST);
}

/* Reads the scores of leaves from attributes whose names begin with `of`. */
static bool read_scores(OnnxNode *n, Trees *t, const char *of)
{
    enum { MOST = 1 << 23 };
    Arena *a = n->in->tmp;
    int64_t count[4];
    const int64_t *tree = ints_of(n, arena_printf(a, "%s_treeids", of), &count[0]);
    const int64_t *node = ints_of(n, arena_printf(a, "%s_nodeids", of), &count[1]);
    const int64_t *id = ints_of(n, arena_printf(a, "%s_ids", of), &count[2]);
    const float *weight = floats_of(n, arena_printf(a, "%s_weights", of), &count[3]);
    if (!weight || count[0] != count[3] || count[1] != count[3] || count[2] != count[3])
        return onnx_unsupported(n, "expects an f32 weight for each of its results");
    if (t->results < 1 || t->results > MOST / t->nodes)
        return onnx_unsupported(n, "has no results, or too many");
    size_t bytes = (size_t)(t->nodes * t->results) * sizeof *t->score;
    t->score = arena_bytes(n->in->program->arena, bytes);
    memset(t->score, 0, bytes);
    for (int64_t i = 0; i < count[3]; i++) {
        int64_t at = node_at(t, tree[i], node[i]);
        if (at < 0 || id[i] < 0 || id[i] >= t->results)
            return onnx_wrong(n, "has a weight of no node, or of no result");
        t->score[at * t->results + id[i]] += weight[i];
    }
    return true;
}

static bool read_tracks(OnnxNode *n, Trees *t)
{
    int64_t count;
    const int64_t *v = ints_of(n, "nodes_missing_value_tracks_true", &count);
    if (v && count != t->nodes)
        return onnx_wrong(n, "expects one number in nodes_missing_value_tracks_true for each node");
    t->tracks = arena_bytes(n->in->program->arena, (size_t)t->nodes);
    for (int64_t i = 0; i < t->nodes; i++) {
        t->tracks[i] = v && v[i] && t->next[0][i] != i;
        t->any_tracks = t->any_tracks || t->tracks[i];
    }
    return true;
}

static Value *looked_up(OnnxNode *n, Value *table, Value *at)
{
    Value *list[1] = {at};
    return table && at ? ON_BUILD(n, OP_INDEX_TENSOR, "vV", table, 1, list) : NULL;
}

/* Returns the sums of the scores of the leaves that the rows reach, [rows, results]. */
static Value *walked(OnnxNode *n, const Trees *t)
{
    Value *x = features(n);
    if (!x)
        return NULL;
    for (int64_t i = 0; i < t->nodes; i++)
        if (t->feature[i] < 0 || t->feature[i] >= x->type.dim[1].value) {
            onnx_wrong(n, "compares column %lld, which its operand does not have",
                       (long long)t->feature[i]);
            return NULL;
        }
    Dim size = DIM(t->nodes), all[2] = {x->type.dim[0], DIM(t->trees)}, wide[2] = {size, DIM(t->results)};
    OnnxConst tracks = {.type = type_tensor(n->in->program, ETC_BOOL, 1, &size), .n_bytes = t->nodes,
                        .data = (const uint8_t *)t->tracks};
    Value *feature = integers_of(n, t->feature, t->nodes), *value = on_floats(n, 1, &size, t->value);
    Value *otherwise = integers_of(n, t->next[0], t->nodes), *then = integers_of(n, t->next[1], t->nodes);
    Value *missing = t->any_tracks ? onnx_const_value(n->in, "table", &tracks) : NULL;
    Value *at = on_insert(n, integers_of(n, t->root, t->trees), 0);
    at = at ? ON_BUILD(n, OP_EXPAND, "vD", at, 2, all) : NULL;
    for (int64_t level = 1; level < t->depth && at; level++) {
        Value *column = looked_up(n, feature, at);
        Value *v = column ? ON_BUILD(n, OP_GATHER, "viv", x, (int64_t)1, column) : NULL;
        Value *is = on_binary(n, t->op, v, looked_up(n, value, at));
        if (missing && v) {
            Value *is_nan = on_given(n, OP_ISNAN, type_tensor(n->in->program, ETC_BOOL, 2, all), v);
            is = on_binary(n, OP_LOGICAL_OR, is,
                           on_binary(n, OP_LOGICAL_AND, is_nan, looked_up(n, missing, at)));
        }
        at = on_where(n, is, looked_up(n, then, at), looked_up(n, otherwise, at));
    }
    Value *score = looked_up(n, on_floats(n, 2, wide, t->score), at);
    return on_sum(n, OP_SUM_DIM, score, 1, false);
}

static bool read_trees(OnnxNode *n, Trees *t, const char *of)
{
    t->at = (Table){.arena = n->in->tmp};
    return read_nodes(n, t) && find_depth(n, t) && read_scores(n, t, of) && read_tracks(n, t);
}

static Value *based(OnnxNode *n, Value *y)
{
    Value *base = line_of(n, "base_values");
    return base ? on_binary(n, OP_ADD_TENSOR, y, base) : y;
}

bool onnx_tree_regressor(OnnxNode *n)
{
    Trees t = {.op = OP_NONE, .results = on_int(n, "n_targets", 1)};
    const char *how = on_text(n, "aggregate_function", "SUM");
    bool is_mean = !strcmp(how, "AVERAGE");
    if (!is_mean && strcmp(how, "SUM") != 0)
        return onnx_unsupported(n, "has the aggregate_function '%s'", how);
    if (strcmp(on_text(n, "post_transform", "NONE"), "NONE") != 0)
        return onnx_unsupported(n, "transforms its results");
    if (!read_trees(n, &t, "target"))
        return false;
    Value *y = walked(n, &t);
    y = is_mean ? on_scalar(n, OP_DIV_SCALAR, y, (double)t.trees) : y;
    return on_define(n, 0, based(n, y));
}

/* Reads an ensemble of trees that classifies.  Of two classes only the first may have weights,
 * which then count for the second. */
bool onnx_tree_classifier(OnnxNode *n)
{
    Trees t = {.op = OP_NONE};
    int64_t count;
    const int64_t *id = ints_of(n, "class_ids", &count);
    bool is_one = true, is_above = true;
    for (int64_t i = 1; i < count; i++)
        is_one = is_one && id[i] == id[0];
    ints_of(n, "classlabels_int64s", &t.results);
    if (is_one && count && id[0] != 0)
        return onnx_unsupported(n, "has weights of one class alone, which is not the first");
    if (!read_trees(n, &t, "class"))
        return false;
    for (int64_t i = 0; i < t.nodes * t.results; i++)
        is_above = is_above && t.score[i] >= 0;
    Value *y = walked(n, &t);
    if (!is_one || t.results != 2) {
        y = based(n, y);
        return define_classes(n, greatest(n, y), transformed(n, y), "classlabels_int64s");
    }
    bool is_logistic = !strcmp(on_text(n, "post_transform", "NONE"), "LOGISTIC");
    if ((!is_above && !is_logistic) || (is_above && is_logistic))
        return onnx_unsupported(n, "has weights of one of two classes, in another form than probabilities "
                                   "or logits");
    y = based(n, on_part(n, y, 1, DIM(0), DIM(1), 1));
    y = is_logistic ? on_unary(n, OP_SIGMOID, y) : y;
    Value *other = on_scalar(n, OP_ADD_SCALAR, on_unary(n, OP_NEG, y), 1);
    Value *is = on_cast(n, on_scalar(n, OP_GT_SCALAR, y, 0.5), ETC_I64);
    is = is ? on_view(n, is, 1, is->type.dim) : NULL;
    return define_classes(n, is, on_cat(n, other, y, 1), "classlabels_int64s");
}
