/* Shared by the parts of the fake libnvidia-ml.so.1; generated.c is made from the header at build time. */
#pragma once

#define _GNU_SOURCE
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#include <redirects.h>

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- tables made from the header ---------------------------------------------------------------- */

enum kind { KIND_NONE, KIND_UINT, KIND_INT, KIND_DOUBLE, KIND_TEXT, KIND_BYTES };

#define KIND(x)                                                                                                        \
    _Generic((x), unsigned char: KIND_UINT, unsigned short: KIND_UINT, unsigned int: KIND_UINT,                        \
             unsigned long: KIND_UINT, unsigned long long: KIND_UINT, short: KIND_INT, int: KIND_INT, long: KIND_INT,  \
             long long: KIND_INT, double: KIND_DOUBLE, char *: KIND_TEXT, unsigned char *: KIND_BYTES,                 \
             default: KIND_NONE)

struct field {
    const char *path;
    size_t offset, size;
    enum kind kind;
};

#define FIELD(type, path) {#path, offsetof(type, path), sizeof(((type *)0)->path), KIND(((type *)0)->path)}

/* One struct as a caller may pass it; version 0: it has none, or any is taken. */
struct layout {
    const char *name;
    unsigned version;
    const struct field *fields;
    size_t n_fields;
};

enum shape { TAKES_NOTHING, TAKES_VALUES, TAKES_FIELDS, TAKES_LIST };

/* What is known of a function, or of one of the words that stand for what functions cannot say. */
struct function {
    const char *name;
    bool on_card;
    unsigned n_args;
    enum shape shape;
    unsigned n_values; /* of TAKES_VALUES */
    const struct layout *layouts;
    unsigned n_layouts; /* of TAKES_FIELDS */
};

struct constant {
    const char *name;
    long long value;
};

extern const struct function functions[];
extern const size_t n_functions;
extern const struct constant constants[];
extern const size_t n_constants;

const struct function *function_named(const char *name);
bool constant_named(const char *name, long long *value);

/* ---- the scenario as it was read ---------------------------------------------------------------- */

#define MAX_CARDS 64
#define MAX_MIG 8
#define MAX_ARGS 4
#define MAX_VALUES 256
#define ANY_ARG LLONG_MIN
#define WHOLE_CARD (-1)
#define ANY_MIG (-2)
#define FOREVER HUGE_VAL

struct window {
    double from, to; /* seconds of scenario time: from <= t < to */
};

struct term {
    long double amount;
    bool per_second, wall_us, index;
    struct window window; /* of a rate */
};

struct value {
    char *name; /* field of a struct, or NULL */
    char *text; /* or NULL: the sum of the terms */
    struct term *terms;
    size_t n_terms;
};

enum act { ACT_VALUES, ACT_ERROR, ACT_HANG, ACT_CRASH, ACT_DEFAULT };

struct outcome {
    double at; /* of steps and ramps */
    enum act act;
    nvmlReturn_t error;
    struct value *values;
    size_t n_values;
};

struct target {
    bool system;
    uint64_t cards; /* one bit a card */
    int mig;        /* WHOLE_CARD, ANY_MIG or the index of a MIG device */
};

enum course { COURSE_FIXED, COURSE_CALLS, COURSE_STEPS, COURSE_RAMP };

/* `card` and `system` lines */
struct rule {
    struct target target;
    char *pattern;
    long long args[MAX_ARGS];
    enum course course;
    struct outcome *outcomes;
    size_t n_outcomes;
    struct window window;
    double repeat; /* seconds, or 1 for calls; 0: does not repeat */
    int value_type;
    double every_s; /* of sample buffers */
    unsigned depth;
    unsigned *calls; /* so far, by card */
};

struct latency {
    struct target target;
    char *pattern;
    long long args[MAX_ARGS];
    struct window window;
    double usual_s, first_s;
    bool *called; /* by card */
};

/* The lines whose pattern fits one function, the last line first. */
struct matches {
    bool known;
    struct rule **rules;
    size_t n_rules;
    struct latency **latencies;
    size_t n_latencies;
};

enum process_kind { PROCESS_COMPUTE, PROCESS_GRAPHICS, PROCESS_MPS };

struct process {
    struct target target;
    enum process_kind kind;
    unsigned pid;
    bool own_pid, memory_unknown, churns;
    struct value memory;
    unsigned count;
    struct window window;
};

struct event {
    struct target target;
    bool on_load; /* happens when the file takes another's place */
    double at, every;
    unsigned long long type, data;
};

struct scenario {
    unsigned cards;
    unsigned mig[MAX_CARDS];
    double replaced_at; /* when it took another file's place; -FOREVER: it is the first */
    struct rule *rules;
    size_t n_rules;
    struct latency *latencies;
    size_t n_latencies;
    struct process *processes;
    size_t n_processes;
    struct event *events;
    size_t n_events;
    struct matches *matches; /* by function, made when first asked */
};

/* Read a file and what it includes; NULL after a message on standard error. */
struct scenario *scenario_read(const char *path);
void scenario_free(struct scenario *scenario);

/* ---- asking it ---------------------------------------------------------------------------------- */

struct call {
    const struct function *function;
    int card, mig; /* card -1: a system call */
    unsigned n_args;
    const long long *args;
};

struct answer_value {
    const char *name;
    const char *text;
    long double number;
};

struct answer {
    enum act act;
    nvmlReturn_t error;
    bool unsaid; /* no line is about this call */
    int value_type;
    size_t n_values;
    struct answer_value values[MAX_VALUES];
    char texts[4096];
    size_t texts_used;
};

double monotonic_s(void);
double scenario_now(void);
double scenario_speed(void);
unsigned long long wall_us(void);
long double value_at(const struct value *value, int card, double t);
bool targets(const struct target *target, int card, int mig);
const struct rule *rule_for(const struct scenario *scenario, const struct call *call, double t);
void answer_from(struct answer *answer, const struct scenario *scenario, const struct call *call, double t);
double latency_of(struct scenario *scenario, const struct call *call, double t);

/* The state behind one lock: hold it only to look at the scenario, never while a call is slow or hangs. */
struct scenario *scenario_lock(void); /* NULL: the file is bad */
void scenario_unlock(void);

bool initialised(void);
void wait_until(double end_s); /* monotonic; exactly, as a busy driver does */
void rest(double seconds);     /* about, at no cost */
_Noreturn void hang_for_ever(void);

/* Answer a call from the scenario: takes its time, hangs or crashes; values only after NVML_SUCCESS. */
nvmlReturn_t ask(const struct call *call, struct answer *answer);

struct device {
    int card, mig;
};
nvmlReturn_t ask_unless_unsaid(const struct call *call, struct answer *answer); /* no line: success, no values */

const struct device *device_of(nvmlDevice_t handle); /* NULL: no such card */
nvmlDevice_t handle_of(int card, int mig);

/* ---- serving what the generator understands ----------------------------------------------------- */

struct out {
    enum { OUT_NUMBER, OUT_TEXT, OUT_STRUCT, OUT_LIST } shape;
    void *to;
    size_t size; /* of a number, of one element of a list, of a text's buffer */
    enum kind kind;
    unsigned *count; /* of a list: in its room, out its length; of a text: its room */
    unsigned room;   /* of a list of fixed length */
};

#define NUMBER(p) {OUT_NUMBER, (void *)(p), (p) ? sizeof *(p) : 0, KIND(*(p)), NULL, 0}
#define TEXT(p, n) {OUT_TEXT, (void *)(p), (n), KIND_TEXT, NULL, 0}
#define SIZED_TEXT(p, n) {OUT_TEXT, (void *)(p), (n) ? *(n) : 0, KIND_TEXT, (n), 0}
#define STRUCT(p) {OUT_STRUCT, (void *)(p), 0, KIND_NONE, NULL, 0}
#define LIST(p, n) {OUT_LIST, (void *)(p), sizeof *(p), KIND(*(p)), (n), 0}
#define FIXED_LIST(p, n) {OUT_LIST, (void *)(p), sizeof *(p), KIND(*(p)), NULL, (n)}
#define IN_FIELD(p, member) ((p) ? (long long)(p)->member : 0)

nvmlReturn_t serve(const char *name, nvmlDevice_t device, unsigned n_args, const long long *args, unsigned n_outs,
                   const struct out *outs);
nvmlReturn_t put_fields(const struct function *function, const struct answer *answer, void *to);
const struct answer_value *answer_field(const struct answer *answer, const char *name);
