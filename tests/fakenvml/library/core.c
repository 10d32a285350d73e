/* The library's state behind one lock: the scenario of the day, and how a call is answered. */
#include "fake.h"

#include <sys/stat.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct scenario *current, *previous; /* the one before is kept for calls still under way */
static struct stat seen;
static bool read_once;
static unsigned users;
static struct device devices[MAX_CARDS][MAX_MIG + 1];

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void replace(struct scenario *next)
{
    if (previous)
        scenario_free(previous);
    previous = current;
    current = next;
    if (next)
        next->replaced_at = read_once ? scenario_now() : -FOREVER;
    read_once = true;
}

static void refresh(void)
{
    const char *path = getenv("FAKE_NVML_SCENARIO");
    struct stat now = {0};
    if (!path || stat(path, &now)) {
        if (!read_once)
            fprintf(stderr, "fake NVML: FAKE_NVML_SCENARIO=%s: no such file; it must name a scenario\n",
                    path ? path : "");
        seen = (struct stat){0};
        replace(NULL);
    } else if (!read_once || !same_file(&now, &seen)) {
        seen = now;
        replace(scenario_read(path));
    }
}

struct scenario *scenario_lock(void)
{
    pthread_mutex_lock(&lock);
    refresh();
    return current;
}

void scenario_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

bool initialised(void)
{
    return users > 0;
}

/* ---- handles ------------------------------------------------------------------------------------ */

nvmlDevice_t handle_of(int card, int mig)
{
    devices[card][mig + 1] = (struct device){card, mig};
    return (nvmlDevice_t)&devices[card][mig + 1];
}

const struct device *device_of(nvmlDevice_t handle)
{
    const struct device *device = (const struct device *)handle;
    bool ours = device >= &devices[0][0] && device < &devices[0][0] + sizeof devices / sizeof devices[0][0];
    return ours ? device : NULL;
}

/* ---- asking ------------------------------------------------------------------------------------- */

static bool starts_or_ends(const struct function *function)
{
    return !strncmp(function->name, "nvmlInit", 8) || !strcmp(function->name, "nvmlShutdown");
}

nvmlReturn_t ask(const struct call *call, struct answer *answer)
{
    double began_s = monotonic_s(), latency = 0;
    struct scenario *scenario = scenario_lock();
    double t = scenario_now();
    nvmlReturn_t problem = NVML_SUCCESS;
    if (!scenario)
        problem = NVML_ERROR_UNKNOWN;
    else if (!users && !starts_or_ends(call->function))
        problem = NVML_ERROR_UNINITIALIZED;
    else if (call->function->on_card && (call->card < 0 || call->card >= (int)scenario->cards))
        problem = NVML_ERROR_INVALID_ARGUMENT;
    if (!problem) {
        latency = latency_of(scenario, call, t);
        answer_from(answer, scenario, call, t);
    }
    scenario_unlock();
    if (problem)
        return problem;
    if (latency > 0)
        wait_until(began_s + latency);
    if (answer->act == ACT_HANG)
        hang_for_ever();
    if (answer->act == ACT_CRASH)
        *(volatile int *)0 = 0;
    return answer->act == ACT_ERROR ? answer->error : NVML_SUCCESS;
}

nvmlReturn_t ask_unless_unsaid(const struct call *call, struct answer *answer)
{
    nvmlReturn_t result = ask(call, answer);
    return result == NVML_ERROR_NOT_SUPPORTED && answer->unsaid ? NVML_SUCCESS : result;
}

static nvmlReturn_t start(const char *name)
{
    struct answer answer;
    struct call call = {.function = function_named(name), .card = -1, .mig = WHOLE_CARD};
    nvmlReturn_t result = ask_unless_unsaid(&call, &answer);
    pthread_mutex_lock(&lock);
    users += !result;
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t nvmlInit(void)
{
    return start("nvmlInit");
}

nvmlReturn_t nvmlInit_v2(void)
{
    return start("nvmlInit_v2");
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return start("nvmlInitWithFlags");
}

nvmlReturn_t nvmlShutdown(void)
{
    struct answer answer;
    struct call call = {.function = function_named("nvmlShutdown"), .card = -1, .mig = WHOLE_CARD};
    nvmlReturn_t result = ask_unless_unsaid(&call, &answer);
    if (result)
        return result;
    pthread_mutex_lock(&lock);
    result = users ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    users -= users > 0;
    pthread_mutex_unlock(&lock);
    return result;
}
