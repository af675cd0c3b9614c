/* Preloaded into a process: the Nth write or flush of a database file fails, or writes only half. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include <stdio.h>

static int calls;

static int of_database(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strstr(path, "bad.db") != NULL;
}

static int due(int fd, const char *kind) {
  const char *wanted = getenv("BADIO_KIND"), *after = getenv("BADIO_AFTER");
  if (!wanted || !after || strcmp(wanted, kind) || !of_database(fd)) return 0;
  int at = atoi(after);
  return ++calls >= at && calls < at + 3; /* SQLite may try again */
}

static ssize_t bad_pwrite(const char *name, int fd, const void *data, size_t size, off_t place) {
  ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, name);
  if (due(fd, "eio")) { errno = EIO; return -1; }
  if (due(fd, "full")) { real(fd, data, size / 2, place); errno = ENOSPC; return -1; }
  if (size > 1 && due(fd, "short")) return real(fd, data, size / 2, place);
  return real(fd, data, size, place);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
  return bad_pwrite("pwrite", fd, data, size, place);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t place) {
  return bad_pwrite("pwrite64", fd, data, size, place);
}

static int bad_sync(const char *name, int fd) {
  int (*real)(int) = dlsym(RTLD_NEXT, name);
  if (due(fd, "sync")) { errno = EIO; return -1; }
  return real(fd);
}

int fsync(int fd) { return bad_sync("fsync", fd); }
int fdatasync(int fd) { return bad_sync("fdatasync", fd); }
