/* Time: the scenario's own, the latency of a call, and the call that never ends. */
#include "fake.h"

#include <errno.h>
#include <signal.h>

/* Sleeping is coarse by some 60 us, so the last part of a latency is spun: a real call burns that time too. */
#define SPIN_S 100e-6

static double epoch, speed = 1;

double monotonic_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

__attribute__((constructor)) static void start(void)
{
    const char *from = getenv("FAKE_NVML_EPOCH"), *fast = getenv("FAKE_NVML_SPEED");
    epoch = from && *from ? strtod(from, NULL) : monotonic_s();
    if (fast && *fast)
        speed = strtod(fast, NULL);
}

double scenario_now(void)
{
    return (monotonic_s() - epoch) * speed;
}

double scenario_speed(void)
{
    return speed;
}

unsigned long long wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000ULL + now.tv_nsec / 1000;
}

void wait_until(double end_s)
{
    double wake_s = end_s - SPIN_S;
    if (wake_s > monotonic_s()) {
        struct timespec wake = {(time_t)wake_s, (long)((wake_s - floor(wake_s)) * 1e9)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) == EINTR)
            ;
    }
    while (monotonic_s() < end_s)
        ;
}

void rest(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&time, NULL);
}

_Noreturn void hang_for_ever(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* as in the kernel: nothing but SIGKILL gets through */
    for (;;)
        pause();
}
