/* pipeline.c -- the compiler, top to bottom: the order of the passes, one list per tail.
 *
 *   aten -> core -> edge -> planned      to a .pte
 *   aten -> core -> grouped -> planned   to C
 */
#include "compiler/compiler.h"

#define TO_CORE \
    "resolve_views", "functionalize", "decompose", "canonicalize", "fold_constants", \
    "fold_batch_norm", "canonicalize", "cse", "dce", "drop_states"
#define TO_PLANNED "order", "alias", "plan_memory", "check_plan"

static const char *const pte_tail[] = {
    TO_CORE, "to_edge", "lower_symint", "dce", "drop_states", "to_out", TO_PLANNED,
};
static const char *const c_tail[] = { /* the first alias: copies that outputs need join groups */
    TO_CORE, "alias", "group", TO_PLANNED,
};

enum { N_TO_CORE = 10, N_TO_TAIL = 5, N_TO_GROUPED = 2 };

Pipeline pipeline_of(Tail tail, Stage stage)
{
    Pipeline all = tail == TAIL_PTE
                       ? (Pipeline){pte_tail, sizeof pte_tail / sizeof *pte_tail}
                       : (Pipeline){c_tail, sizeof c_tail / sizeof *c_tail};
    int skip = 0;
    if (stage == STAGE_EDGE || stage == STAGE_GROUPED)
        skip = N_TO_CORE + (tail == TAIL_PTE ? N_TO_TAIL : N_TO_GROUPED);
    else if (stage == STAGE_PLANNED)
        skip = all.n - 1;
    return (Pipeline){all.pass + skip, all.n - skip};
}
