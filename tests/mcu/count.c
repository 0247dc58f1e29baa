/* count.c -- a QEMU plugin that counts the instructions which a guest runs from one address to
 * another.
 *
 *     qemu-system-arm ... -plugin count.so,start=0x...,stop=0x...,to=FILE[,mark=0x...]
 *
 * `start` and `stop` are functions that the program calls.  The plugin writes the number of
 * instructions between the two calls to FILE, and then, for each call of a function `mark`, the
 * address and the number so far.  Debian has no header of QEMU's plugins, so the parts that are
 * used are declared here. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))
typedef uint64_t Id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;
extern void qemu_plugin_register_vcpu_tb_trans_cb(Id, void (*)(Id, struct qemu_plugin_tb *));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *,
                                                   void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_atexit_cb(Id, void (*)(Id, void *), void *);
PUBLIC int qemu_plugin_version = 1;
PUBLIC int qemu_plugin_install(Id id, const struct qemu_info_t *info, int argc, char **argv);

static uint64_t total, at_start, counted, start, stop;
static const char *to;

enum { MOST_MARKS = 256, MOST_CALLS = 4096 };
static uint64_t mark[MOST_MARKS], called[MOST_CALLS], called_at[MOST_CALLS];
static int n_marks, n_called;

static void executes(unsigned cpu, void *address)
{
    (void)cpu;
    total++;
    if ((uintptr_t)address == start)
        at_start = total;
    else if ((uintptr_t)address == stop)
        counted = total - at_start;
    for (int i = 0; i < n_marks && n_called < MOST_CALLS; i++)
        if ((uintptr_t)address == mark[i]) {
            called_at[n_called] = total - at_start;
            called[n_called++] = mark[i];
        }
}

static void translates(Id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        qemu_plugin_register_vcpu_insn_exec_cb(insn, executes, 0,
                                               (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn));
    }
}

static void ends(Id id, void *data)
{
    FILE *f = fopen(to, "w");
    (void)id;
    (void)data;
    if (f) {
        fprintf(f, "%" PRIu64 "\n", counted);
        for (int i = 0; i < n_called; i++)
            fprintf(f, "%#" PRIx64 " %" PRIu64 "\n", called[i], called_at[i]);
        fclose(f);
    }
}

PUBLIC int qemu_plugin_install(Id id, const struct qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "start=", 6))
            start = strtoull(argv[i] + 6, NULL, 0);
        else if (!strncmp(argv[i], "stop=", 5))
            stop = strtoull(argv[i] + 5, NULL, 0);
        else if (!strncmp(argv[i], "mark=", 5) && n_marks < MOST_MARKS)
            mark[n_marks++] = strtoull(argv[i] + 5, NULL, 0);
        else if (!strncmp(argv[i], "to=", 3))
            to = argv[i] + 3;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translates);
    qemu_plugin_register_atexit_cb(id, ends, NULL);
    return to == NULL;
}
