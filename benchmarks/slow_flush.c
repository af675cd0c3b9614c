/* Makes each flush of the disk take SLOW_FLUSH_US microseconds longer, for LD_PRELOAD: what a store gains by
   sharing flushes shows only where a flush costs something. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static void wait_longer(void) {
    const char *text = getenv("SLOW_FLUSH_US");
    long microseconds = text ? atol(text) : 0;
    struct timespec time = {microseconds / 1000000, (microseconds % 1000000) * 1000};
    if (microseconds > 0) nanosleep(&time, 0);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    wait_longer();
    return real(fd);
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    wait_longer();
    return real(fd);
}
