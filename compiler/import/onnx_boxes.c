/* onnx_boxes.c -- reads the ONNX operators that detection models have after their network. */
#include "compiler/import/onnx.h"
#include <string.h>

/* -- non-maximum suppression ------------------------------------------------------------------ */

/* Reads input i, which must be a known number.  If it is absent, *out stays as it is. */
static bool threshold(OnnxNode *n, int i, float *out)
{
    OnnxConst *c = on_has(n, i) ? on_const(n, i) : NULL;
    if (!on_has(n, i))
        return true;
    if (!c || c->type.dtype != ETC_F32 || c->n_bytes != sizeof *out)
        return onnx_unsupported(n, "has a threshold that is no constant f32: give it with --bind");
    memcpy(out, c->data, sizeof *out);
    return true;
}

/* Returns boxes that are given by their centers and sizes as pairs of corners. */
static Value *corners(OnnxNode *n, Value *boxes)
{
    Value *center = on_part(n, boxes, 2, DIM(0), DIM(2), 1);
    Value *half = on_scalar(n, OP_MUL_SCALAR, on_part(n, boxes, 2, DIM(2), DIM(4), 1), .5);
    return on_cat(n, on_binary(n, OP_SUB_TENSOR, center, half), on_binary(n, OP_ADD_TENSOR, center, half), 2);
}

/* Returns how many boxes a class may keep; DIM_BAD: an error was reported. */
static Dim most_boxes(OnnxNode *n)
{
    Dim most = DIM(0);
    int count = 1;
    if (!on_has(n, 2))
        return DIM(0);
    return on_dims(n, 2, &most, &count) && count == 1 ? dim_max(n->in->program, most, DIM(0)) : DIM_BAD;
}

bool onnx_nms(OnnxNode *n)
{
    Program *p = n->in->program;
    Value *boxes = on_value(n, 0), *scores = boxes ? on_value(n, 1) : NULL;
    float iou = 0, least = 0;
    if (!scores)
        return false;
    if (boxes->type.rank != 3 || scores->type.rank != 3)
        return onnx_wrong(n, "expects boxes and scores of rank 3");
    Dim most = most_boxes(n);
    if (dim_is_bad(most) || !threshold(n, 3, &iou) || !threshold(n, 4, &least))
        return false;
    if (on_int(n, "center_point_box", 0))
        boxes = corners(n, boxes);
    Dim each = dim_min(p, most, scores->type.dim[2]);
    Dim rows = dim_mul(p, dim_mul(p, scores->type.dim[0], scores->type.dim[1]), each);
    Dim size[2] = {on_new_size(n, rows, 0), DIM(3)};
    Type t = type_tensor(p, ETC_I64, 2, size);
    Arg limit = {.kind = ARG_FLOAT, .f = least}, at_most = {.kind = ARG_INT, .dim = most};
    if (!on_has(n, 4))
        limit.kind = ARG_NONE;
    return boxes && on_define(n, 0, ON_GIVEN(n, OP_NMS_OF_CLASSES, t, "vvafa", boxes, scores, at_most,
                                             (double)iou, limit));
}

/* -- roi_align --------------------------------------------------------------------------------- */

/* Returns whether positions are aligned to the centres of pixels; -1: an error was reported. */
static int is_aligned(OnnxNode *n)
{
    const char *how = on_text(n, "coordinate_transformation_mode",
                              n->in->opset < 16 ? "output_half_pixel" : "half_pixel");
    if (!strcmp(how, "half_pixel") || !strcmp(how, "output_half_pixel"))
        return *how == 'h';
    onnx_wrong(n, "has the coordinate_transformation_mode '%s', expected half_pixel or output_half_pixel", how);
    return -1;
}

bool onnx_roi_align(OnnxNode *n)
{
    Value *x = on_value(n, 0), *rois = x ? on_value(n, 1) : NULL;
    Value *batch = rois ? on_cast(n, on_value(n, 2), ETC_I64) : NULL;
    const char *mode = on_text(n, "mode", "avg");
    int64_t height = on_int(n, "output_height", 1), width = on_int(n, "output_width", 1);
    int aligned = is_aligned(n);
    if (!batch || aligned < 0)
        return false;
    if (x->type.rank != 4 || rois->type.rank != 2 || !dim_equal(rois->type.dim[1], DIM(4)))
        return onnx_wrong(n, "expects an image of rank 4 and boxes of 4 numbers");
    if (strcmp(mode, "avg") != 0 && strcmp(mode, "max") != 0)
        return onnx_wrong(n, "has the mode '%s', expected avg or max", mode);
    if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX)
        return onnx_wrong(n, "has an output size that is out of range");
    Dim size[4] = {rois->type.dim[0], x->type.dim[1], DIM(height), DIM(width)};
    Type t = type_tensor(n->in->program, x->type.dtype, 4, size);
    return on_define(n, 0, ON_GIVEN(n, OP_ROI_ALIGN_OF, t, "vvvfiiibb", x, rois, batch,
                                    on_float(n, "spatial_scale", 1), height, width,
                                    on_int(n, "sampling_ratio", 0), aligned, *mode == 'm'));
}
