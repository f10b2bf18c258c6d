/* Keeps what a power cut would leave of a database: loaded before the C library, it copies a file to
 * FILE.synced whenever a process has waited for the disk to have that file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), size = strlen(end);
    return length >= size && strcmp(text + length - size, end) == 0;
}

static void keep(int file) {
    char link[64], path[PATH_MAX], copy[PATH_MAX + 64], unfinished[PATH_MAX + 64], block[65536];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return;
    path[length] = 0;
    if (!ends_with(path, ".db") && !ends_with(path, ".db-wal")) return;
    snprintf(copy, sizeof copy, "%s.synced", path);
    snprintf(unfinished, sizeof unfinished, "%s.%d.%d", copy, getpid(), gettid());
    int out = open(unfinished, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (out < 0) return;
    off_t at = 0;
    ssize_t count;
    while ((count = pread(file, block, sizeof block, at)) > 0) {
        if (write(out, block, count) != count) break;
        at += count;
    }
    close(out);
    rename(unfinished, copy);
}

static int synced(const char *name, int file) {
    int (*original)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int result = original(file);
    if (result == 0) keep(file);
    return result;
}

int fsync(int file) { return synced("fsync", file); }

int fdatasync(int file) { return synced("fdatasync", file); }
