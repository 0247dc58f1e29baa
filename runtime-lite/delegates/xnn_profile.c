/* xnn_profile.c -- finds the node of each operation in the library's profile, which has only names:
 * "Convolution (NHWC, F32) IGEMM". */
#include "runtime-lite/delegates/xnn_graph.h"

#include <string.h>

static const char *family(XnnKind kind)
{
    switch ((int)kind) {
    case XNN_FULLY_CONNECTED:
        return "Fully Connected";
    case XNN_CONV: case XNN_DEPTHWISE:
        return "Convolution";
    case XNN_CONV_TRANSPOSE:
        return "Deconvolution";
    case XNN_BATCH_MATMUL:
        return "Batch Matrix Multiply";
    case XNN_ADD: case XNN_SUBTRACT: case XNN_MULTIPLY: case XNN_DIV: case XNN_MINIMUM:
    case XNN_MAXIMUM: case XNN_PRELU:
        return "Binary Elementwise";
    case XNN_AVG_POOL:
        return "Average Pooling";
    case XNN_MAX_POOL:
        return "Max Pooling";
    case XNN_ARGMAX_POOL:
        return "ArgMax Pooling";
    case XNN_GLOBAL_POOL:
        return "Mean";
    case XNN_SOFTMAX:
        return "Softmax";
    case XNN_TRANSPOSE:
        return "Transpose";
    case XNN_SLICE:
        return "Slice";
    case XNN_PAD:
        return "Constant Pad";
    case XNN_RESIZE:
        return "Resize Bilinear";
    case XNN_RESHAPE: case XNN_COPY: case XNN_CONCAT2: case XNN_CONCAT3: case XNN_CONCAT4:
    case XNN_CONCAT5:
        return "Copy";
    default:
        return "Unary Elementwise";
    }
}

static int starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Some nodes of a family have names of their own in the library. */
static int may_be(XnnKind kind, const char *name)
{
    if (starts_with(name, "Dynamic ")) {
        name += strlen("Dynamic ");
    }
    return starts_with(name, family(kind)) ||
           ((kind == XNN_CONVERT) && starts_with(name, "Convert")) ||
           ((kind == XNN_RSQRT) && starts_with(name, "Reciprocal Square Root"));
}

void etc_xnn_match(const XnnGraph *g, const char *const *name, uint32_t n, uint32_t *node)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = next;
        while ((at < g->n_nodes) && !may_be(g->node[at].kind, name[i])) {
            at++;
        }
        node[i] = (at < g->n_nodes) ? at : XNN_NO_ID;
        next = (at < g->n_nodes) ? at + 1 : next;
    }
}
