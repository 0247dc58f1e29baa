/* stream.c -- chooses the convolutions that emitted C runs by rows, so that the tensors between
 * them never exist as a whole: for example expand, depthwise and project of an inverted residual.
 *
 * A link is a convolution, with at most a clamp after it, that only the next convolution reads.
 * Chains of links are cut at tensors that are not larger than both their neighbours; the part
 * between two cuts is a stream.  A stream needs memory for what it reads from outside, for its
 * output, and for lines: the rows that the next convolution reads at a time.  Only memory
 * counts: a stream is made only if its convolutions one by one would need more than anything
 * else in the graph.  Linear. */
#include "passes/group.h"
#include "ir/session.h"
#include <string.h>

enum {
    LINES = 256 << 10, /* bytes of lines up to which more rows are made at a time */
    MOST_ROWS = 8
};

typedef struct Stream {
    int first, n;   /* clusters chain[first] .. */
    int64_t apart, joined, lines; /* bytes needed: one by one, as a stream; in lines */
    int64_t rows[MAX_STAGES];
} Stream;

typedef struct Streams {
    const Graph *g;
    const Uses *uses;
    Cluster *cluster;
    int n_clusters;
    const int *of;
    Arena *tmp;
    int *next, *seen; /* cluster behind a link or NO_GROUP; stamps by value index */
    int stamp, n_chain, n;
    int *chain;
    Stream *stream;
} Streams;

/* -- links ------------------------------------------------------------------------------- */

/* Returns whether t is images with a known number of channels; other sizes may be open up to some
 * bound. */
static bool is_plain(Type t)
{
    return t.rank == 4 && !t.dim[1].expr && type_bytes(t) != INT64_MAX;
}

static bool read_conv(const Cluster *c, Conv *of)
{
    const Node *n = c->anchor;
    return n && conv_read(n, of) && !of->is_transposed && is_plain(of->x->type) &&
           is_plain(n->out[0]->type) && type_is_static(of->w->type) &&
           of->x->type.dtype == ETC_F32;
}

static bool is_conv(const Cluster *c)
{
    return read_conv(c, &(Conv){0});
}

/* Returns whether the cluster is a convolution, perhaps with a clamp, that exactly one node
 * reads. */
static bool is_link(const Streams *s, const Cluster *c)
{
    if (!is_conv(c) || c->n > 2 || c->member[0] != c->anchor || c->last->n_out != 1)
        return false;
    Clamp clamp;
    const Value *v = c->last->out[0];
    return (c->n == 1 || (clamp_read(c->last, &clamp) && clamp.x == c->anchor->out[0])) &&
           value_is_read_once(s->uses, v);
}

static int link_before(const Streams *s, int c)
{
    Conv of;
    const Value *x = read_conv(&s->cluster[c], &of) ? of.x : NULL;
    int before = x && x->def ? s->of[x->index] : NO_GROUP;
    return before != NO_GROUP && before != c && s->cluster[before].last->out[0] == x &&
                   is_link(s, &s->cluster[before])
               ? before
               : NO_GROUP;
}

/* -- needs ------------------------------------------------------------------------------- */

/* Returns the bytes at the upper bounds, limited such that sums do not overflow. */
static int64_t bytes_of(const Value *v)
{
    int64_t b = type_bytes(v->type), most = INT64_MAX / 64;
    return value_is_fixed(v) ? 0 : b < most ? b : most;
}

static int64_t sum(int64_t a, int64_t b)
{
    int64_t most = INT64_MAX / 64;
    return a + b < most ? a + b : most;
}

/* Returns the bytes that a node reads from outside cluster c, and stamps the values; those that are
 * stamped already do not count. */
static int64_t reads(Streams *s, const Node *n, int c)
{
    int64_t bytes = 0;
    for (int i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (s->seen[v->index] == s->stamp || (v->def && c != NO_GROUP && s->of[v->index] == c))
            continue;
        s->seen[v->index] = s->stamp;
        bytes = sum(bytes, bytes_of(v));
    }
    return bytes;
}

static int64_t inputs_of(Streams *s, int c)
{
    int64_t bytes = 0;
    for (int i = 0; i < s->cluster[c].n; i++)
        bytes = sum(bytes, reads(s, s->cluster[c].member[i], c));
    return bytes;
}

static int64_t result_of(const Streams *s, int c)
{
    const Node *last = s->cluster[c].last;
    int64_t bytes = 0;
    for (int i = 0; i < last->n_out; i++)
        bytes = sum(bytes, bytes_of(last->out[i]));
    return bytes;
}

/* -- lines ------------------------------------------------------------------------------- */

/* Returns the bytes of lines if the last stage makes `rows` rows at a time. */
static int64_t lines_of(const Streams *s, Stream *m, int64_t rows)
{
    int64_t bytes = 0;
    for (int i = m->n - 1; i >= 0; i--) {
        Conv c;
        const Node *n = s->cluster[s->chain[m->first + i]].anchor;
        const Dim *y = n->out[0]->type.dim;
        conv_read(n, &c);
        m->rows[i] = rows < dim_upper(y[2]) ? rows : dim_upper(y[2]);
        if (i < m->n - 1)
            bytes = sum(bytes, 4 * y[1].value * m->rows[i] * dim_upper(y[3]));
        rows = access_window(m->rows[i], c.kernel[0], c.stride[0], c.dilation[0]);
    }
    return bytes;
}

static void measure(Streams *s, Stream *m)
{
    int last = s->chain[m->first + m->n - 1];
    for (int i = 0; i < m->n; i++) {
        s->stamp++;
        int c = s->chain[m->first + i];
        int64_t need = sum(inputs_of(s, c), result_of(s, c));
        m->apart = need > m->apart ? need : m->apart;
    }
    s->stamp++;
    for (int i = 0; i + 1 < m->n; i++) /* these are in lines */
        s->seen[s->cluster[s->chain[m->first + i]].last->out[0]->index] = s->stamp;
    for (int i = 0; i < m->n; i++)
        m->joined = sum(m->joined, inputs_of(s, s->chain[m->first + i]));
    int64_t rows = MOST_ROWS;
    while ((m->lines = lines_of(s, m, rows)) > LINES && rows > 1)
        rows /= 2;
    m->joined = sum(sum(m->joined, m->lines), result_of(s, last));
}

/* -- chains ------------------------------------------------------------------------------ */

static void add_stream(Streams *s, int first, int n)
{
    Stream m = {.first = first, .n = n};
    measure(s, &m);
    PUSH(s->tmp, s->stream, s->n, m);
}

/* Cuts chain[first ..] where a tensor is no larger than both its neighbours. */
static void cut_chain(Streams *s, int first)
{
    assert(first < s->n_chain);
    int64_t before = bytes_of(first_operand(s->cluster[s->chain[first]].anchor));
    for (int i = first; i < s->n_chain; i++) {
        int64_t here = result_of(s, s->chain[i]);
        bool is_end = i + 1 == s->n_chain;
        int64_t after = is_end ? 0 : result_of(s, s->chain[i + 1]);
        if (is_end || i + 1 - first == MAX_STAGES || (here <= before && here <= after)) {
            add_stream(s, first, i + 1 - first);
            first = i + 1;
        }
        before = here;
    }
}

static void find_streams(Streams *s)
{
    bool *has_before = NEW(s->tmp, bool, s->n_clusters + 1);
    for (int c = 0; c < s->n_clusters; c++)
        s->next[c] = NO_GROUP;
    for (int c = 0; c < s->n_clusters; c++) {
        int before = link_before(s, c);
        has_before[c] = before != NO_GROUP;
        if (has_before[c])
            s->next[before] = c;
    }
    for (int c = 0; c < s->n_clusters; c++) {
        int first = s->n_chain;
        for (int at = c; !has_before[c] && is_conv(&s->cluster[c]) && at != NO_GROUP;
             at = s->next[at])
            PUSH(s->tmp, s->chain, s->n_chain, at);
        if (s->n_chain > first)
            cut_chain(s, first);
    }
}

/* Returns the largest need of memory if every stream that can be joined is joined. */
static int64_t least_peak(Streams *s)
{
    int64_t peak = 0, need;
    for (int c = 0; c < s->n_clusters; c++) {
        s->stamp++;
        need = is_conv(&s->cluster[c]) ? 0 : sum(inputs_of(s, c), result_of(s, c));
        peak = need > peak ? need : peak;
    }
    for (int i = 0; i < s->n; i++) {
        const Stream *m = &s->stream[i];
        need = m->joined < m->apart && m->n > 1 ? m->joined : m->apart;
        peak = need > peak ? need : peak;
    }
    return peak;
}

/* -- joining ----------------------------------------------------------------------------- */

static void join(Streams *s, const Stream *m)
{
    Cluster *to = &s->cluster[s->chain[m->first + m->n - 1]];
    Node **member = NULL;
    int n = 0;
    assert(m->n >= 2 && m->n <= MAX_STAGES);
    for (int i = 0; i < m->n; i++) {
        Cluster *c = &s->cluster[s->chain[m->first + i]];
        for (int k = 0; k < c->n; k++)
            PUSH(s->tmp, member, n, c->member[k]);
        c->n = 0;
    }
    to->member = member;
    to->n = n;
    to->n_stages = m->n;
    memcpy(to->rows, m->rows, sizeof to->rows);
}

static void tell(const Streams *s, const Stream *m, int64_t peak)
{
    const char *from = s->cluster[s->chain[m->first]].anchor->loc.node;
    const char *to = s->cluster[s->chain[m->first + m->n - 1]].anchor->loc.node;
    session_note(s->g->program->session,
                 "%s .. %s: %d convolutions, %lld rows at a time: %lld -> %lld bytes at once, %lld "
                 "in lines; all else needs %lld",
                 from ? from : "?", to ? to : "?", m->n, (long long)m->rows[m->n - 1],
                 (long long)m->apart, (long long)m->joined, (long long)m->lines, (long long)peak);
}

void stream_clusters(Graph *g, const Uses *uses, Cluster *cluster, int n, const int *of, Arena *tmp)
{
    Streams s = {.g = g, .uses = uses, .cluster = cluster, .n_clusters = n, .of = of, .tmp = tmp};
    s.next = NEW(tmp, int, n + 1);
    s.seen = NEW(tmp, int, g->n_values + 1);
    find_streams(&s);
    int64_t peak = least_peak(&s);
    for (int i = 0; i < s.n; i++) {
        const Stream *m = &s.stream[i];
        if (m->n < 2 || m->apart <= peak || m->joined >= m->apart)
            continue;
        tell(&s, m, peak);
        join(&s, m);
    }
}
