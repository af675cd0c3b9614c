/* Preloaded into a PostgreSQL server: while the file that BADDISK names exists, what it names fails: "eio wal",
   "full data", "short wal", "sync wal" ("wal": files of the log; "data": files of tables). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int due(int fd, const char *kind) {
  char link[64], path[4096], wanted[64], *place;
  const char *trigger = getenv("BADDISK");
  int descriptor = trigger ? open(trigger, O_RDONLY) : -1;
  if (descriptor < 0) return 0;
  ssize_t length = read(descriptor, wanted, sizeof wanted - 1);
  close(descriptor);
  if (length <= 0) return 0;
  wanted[length] = 0;
  if (!(place = strchr(wanted, ' '))) return 0;
  *place++ = 0;
  if (strcmp(wanted, kind)) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strstr(path, strcmp(place, "wal") ? "/base/" : "/pg_wal/") != NULL;
}

static ssize_t bad_pwrite(const char *name, int fd, const void *data, size_t size, off_t place) {
  ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, name);
  if (due(fd, "eio")) { errno = EIO; return -1; }
  if (due(fd, "full")) { errno = ENOSPC; return -1; }
  if (size > 1 && due(fd, "short")) return real(fd, data, size / 2, place);
  return real(fd, data, size, place);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
  return bad_pwrite("pwrite", fd, data, size, place);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t place) {
  return bad_pwrite("pwrite64", fd, data, size, place);
}

static ssize_t bad_pwritev(const char *name, int fd, const struct iovec *parts, int count, off_t place) {
  ssize_t (*real)(int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, name);
  if (due(fd, "eio")) { errno = EIO; return -1; }
  if (due(fd, "full")) { errno = ENOSPC; return -1; }
  return real(fd, parts, count, place);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t place) {
  return bad_pwritev("pwritev", fd, parts, count, place);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t place) {
  return bad_pwritev("pwritev64", fd, parts, count, place);
}

static int bad_fallocate(const char *name, int fd, off_t place, off_t size) {
  int (*real)(int, off_t, off_t) = dlsym(RTLD_NEXT, name);
  if (due(fd, "full")) return ENOSPC;
  return real(fd, place, size);
}

int posix_fallocate(int fd, off_t place, off_t size) {
  return bad_fallocate("posix_fallocate", fd, place, size);
}

int posix_fallocate64(int fd, off_t place, off_t size) {
  return bad_fallocate("posix_fallocate64", fd, place, size);
}

static int bad_sync(const char *name, int fd) {
  int (*real)(int) = dlsym(RTLD_NEXT, name);
  if (due(fd, "sync")) { errno = EIO; return -1; }
  return real(fd);
}

int fsync(int fd) { return bad_sync("fsync", fd); }
int fdatasync(int fd) { return bad_sync("fdatasync", fd); }
