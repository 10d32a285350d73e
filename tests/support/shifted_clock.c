/* Preloaded: a process whose wall and monotonic clocks are moved by what a mapped file of two int64 holds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t SECOND_NS = 1000000000;
static volatile int64_t *shifts; /* nanoseconds: wall, monotonic */

__attribute__((constructor)) static void map_shifts(void)
{
    const char *path = getenv("SHIFTED_CLOCK_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        shifts = mapped;
}

static int64_t shift_of(clockid_t clock)
{
    if (!shifts)
        return 0;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        return shifts[0];
    if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME)
        return shifts[1];
    return 0;
}

static struct timespec moved(struct timespec time, int64_t by_ns)
{
    int64_t ns = time.tv_sec * SECOND_NS + time.tv_nsec + by_ns;
    struct timespec result = {ns / SECOND_NS, ns % SECOND_NS};
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int code = (int)syscall(SYS_clock_gettime, clock, time);
    if (code == 0)
        *time = moved(*time, shift_of(clock));
    return code;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result)
        *result = now.tv_sec;
    return now.tv_sec;
}

/* Waits until a moment of a moved clock are waits until a moment of the kernel's. */

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
    struct timespec kernels = flags & TIMER_ABSTIME ? moved(*until, -shift_of(clock)) : *until;
    return syscall(SYS_clock_nanosleep, clock, flags, &kernels, left) ? errno : 0;
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    static int (*real)(sem_t *, clockid_t, const struct timespec *);
    struct timespec kernels = moved(*until, -shift_of(clock));
    if (!real)
        real = (int (*)(sem_t *, clockid_t, const struct timespec *))dlsym(RTLD_NEXT, "sem_clockwait");
    return real(semaphore, clock, &kernels);
}

/* Python's conditions count on the monotonic clock. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct timespec kernels = moved(*until, -shift_of(CLOCK_MONOTONIC));
    return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &kernels);
}
