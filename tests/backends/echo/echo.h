/* echo.h -- the smallest possible backend: convolutions of images and sums, as a list of words that
 * a delegate reads.  It shows what the contract of ir/backend.h requires. */
#ifndef TESTS_ECHO_H
#define TESTS_ECHO_H

#include "ir/backend.h"
#include "runtime-lite/etc_rt.h"

extern const Backend echo_backend;
extern const EtcDelegate echo_delegate;

/* A blob: magic, counts of values, inputs, outputs and operations, the values that are outputs,
 * then each operation: its code, result, operands, sizes.  Values are numbered, inputs first. */
enum { ECHO_MAGIC = 0x4F484345, ECHO_HEADER = 5, ECHO_ADD = 1, ECHO_CONV = 2 };

/* Words of an operation behind its code; of a convolution, weights and bias follow them. */
enum { ADD_Y, ADD_A, ADD_B, ADD_COUNT, ADD_WORDS };
enum {
    CONV_Y, CONV_X, CONV_BATCH, CONV_IN, CONV_OUT, CONV_GROUPS, CONV_HAS_BIAS,
    CONV_SIZE,                      /* of these, two each: height, width */
    CONV_TO = CONV_SIZE + 2, CONV_KERNEL = CONV_TO + 2, CONV_STRIDE = CONV_KERNEL + 2,
    CONV_PAD = CONV_STRIDE + 2, CONV_DILATION = CONV_PAD + 2, CONV_WORDS = CONV_DILATION + 2
};

#endif
