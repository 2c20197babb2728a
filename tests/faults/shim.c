// Counts the calls that change files below one folder, writes them down, and lets one fail.
//
// Preloaded (LD_PRELOAD) into the process under test. Python arms it with `faults_arm`; until
// then, and for all other files, every call goes straight on to the C library.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kKill = -1, kShort = -2 };  // besides numbers of errors, which are positive

static char root[4096];
static size_t root_length = 0;
static atomic_long n_calls = 0;
static long fail_from = 0, fail_until = 0;  // of the calls, counted from 1; the end excluded
static int failure = 0;
static int log_file = -1;
static char failed_call[32];

void faults_arm(const char *folder, long from, long until, int what, const char *log) {
    strncpy(root, folder, sizeof root - 1);
    n_calls = 0;
    fail_from = from;
    fail_until = until;
    failure = what;
    failed_call[0] = 0;
    if (log_file >= 0) syscall(SYS_close, log_file);
    log_file = log ? (int)syscall(SYS_openat, AT_FDCWD, log,
                                  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)
                   : -1;
    root_length = strlen(root);
}

void faults_disarm(void) { root_length = 0; }
long faults_count(void) { return n_calls; }
const char *faults_failed(void) { return failed_call; }

// Full path of a name relative to an open folder; empty if it is not to be watched.
static int watched(int folder, const char *name, char *path) {
    if (root_length == 0 || name == NULL) return 0;
    if (name[0] == '/') {
        snprintf(path, 8192, "%s", name);
    } else {
        char link[64], base[4096];
        if (folder == AT_FDCWD)
            snprintf(link, sizeof link, "/proc/self/cwd");
        else
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, base, sizeof base - 1);
        if (length < 0) return 0;
        base[length] = 0;
        snprintf(path, 8192, name[0] ? "%s/%s" : "%s%s", base, name);
    }
    return strncmp(path, root, root_length) == 0 &&
           (path[root_length] == '/' || path[root_length] == 0);
}

static int watched_file(int file, char *path) { return watched(file, "", path); }

static void note(const char *call, const char *path, const char *other, long offset,
                 const void *data, size_t length) {
    if (log_file < 0) return;
    char *record;
    int head = asprintf(&record, "%s\t%s\t%s\t%ld\t%zu\n", call, path, other, offset, length);
    record = realloc(record, head + length + 1);
    memcpy(record + head, data, length);
    syscall(SYS_write, log_file, record, head + length);  // one call, so that threads do not mix
    free(record);
}

// Counts a call; nonzero if it is to fail, with errno set or, for `kShort`, not.
static int fails(const char *call) {
    long number = ++n_calls;
    if (number < fail_from || number >= fail_until) return 0;
    if (failed_call[0] == 0) snprintf(failed_call, sizeof failed_call, "%s", call);
    if (failure > 0) errno = failure;
    return 1;
}

static int fails_whole(const char *call) {
    if (!fails(call)) return 0;
    if (failure == kKill) kill(getpid(), SIGKILL);
    return failure > 0;
}

static int open_at(int folder, const char *name, int flags, mode_t mode) {
    char path[8192];
    int writes = (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
    if (!writes || (flags & O_TMPFILE) == O_TMPFILE || !watched(folder, name, path))
        return (int)syscall(SYS_openat, folder, name, flags, mode);
    if (fails_whole("open")) return -1;
    int is_new = syscall(SYS_faccessat, folder, name, F_OK) != 0;
    int file = (int)syscall(SYS_openat, folder, name, flags, mode);
    if (file >= 0 && is_new)
        note("create", path, "", 0, "", 0);
    else if (file >= 0 && (flags & O_TRUNC))
        note("truncate", path, "", 0, "", 0);
    return file;
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

#define OPEN(name)                                              \
    int name(const char *path, int flags, ...) {                \
        va_list rest;                                           \
        va_start(rest, flags);                                  \
        mode_t mode = mode_of(flags, rest);                     \
        va_end(rest);                                           \
        return open_at(AT_FDCWD, path, flags, mode);            \
    }
#define OPENAT(name)                                            \
    int name(int folder, const char *path, int flags, ...) {    \
        va_list rest;                                           \
        va_start(rest, flags);                                  \
        mode_t mode = mode_of(flags, rest);                     \
        va_end(rest);                                           \
        return open_at(folder, path, flags, mode);              \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

// A write is failed whole, or cut in half: by a kill, or by a disk that takes no more.
static ssize_t write_at(int file, const void *data, size_t length, long offset) {
    char path[8192];
    if (!watched_file(file, path)) {
        return offset < 0 ? syscall(SYS_write, file, data, length)
                          : syscall(SYS_pwrite64, file, data, length, offset);
    }
    int is_cut = 0;
    if (fails("write")) {
        if (failure > 0) return -1;
        is_cut = 1;
        length = (length + 1) / 2;
    }
    long place = offset < 0 ? syscall(SYS_lseek, file, 0, SEEK_CUR) : offset;
    ssize_t written = offset < 0 ? syscall(SYS_write, file, data, length)
                                 : syscall(SYS_pwrite64, file, data, length, offset);
    if (written > 0) note("write", path, "", place, data, written);
    if (is_cut && failure == kKill) kill(getpid(), SIGKILL);
    return written;
}

ssize_t write(int file, const void *data, size_t length) {
    return write_at(file, data, length, -1);
}
ssize_t pwrite(int file, const void *data, size_t length, off_t offset) {
    return write_at(file, data, length, offset);
}
ssize_t pwrite64(int file, const void *data, size_t length, off64_t offset) {
    return write_at(file, data, length, offset);
}
ssize_t writev(int file, const struct iovec *parts, int n_parts) {
    char path[8192];
    if (n_parts == 0 || !watched_file(file, path)) return syscall(SYS_writev, file, parts, n_parts);
    return write_at(file, parts[0].iov_base, parts[0].iov_len, -1);  // a short write is legal
}

static int truncate_file(int file, off64_t length, const char *call) {
    char path[8192];
    int is_watched = watched_file(file, path);
    if (is_watched && fails_whole(call)) return -1;
    int result = (int)syscall(SYS_ftruncate, file, length);
    if (is_watched && result == 0) note("truncate", path, "", length, "", 0);
    return result;
}
int ftruncate(int file, off_t length) { return truncate_file(file, length, "ftruncate"); }
int ftruncate64(int file, off64_t length) { return truncate_file(file, length, "ftruncate"); }

// The disk itself is left in peace: what a power cut may lose is derived from what is noted.
static int sync_file(int file, const char *call) {
    char path[8192];
    if (!watched_file(file, path)) return (int)syscall(SYS_fsync, file);
    if (fails_whole(call)) return -1;
    note("sync", path, "", 0, "", 0);
    return 0;
}
int fsync(int file) { return sync_file(file, "fsync"); }
int fdatasync(int file) { return sync_file(file, "fdatasync"); }

int msync(void *address, size_t length, int flags) {
    if (root_length != 0 && fails_whole("msync")) return -1;
    return (int)syscall(SYS_msync, address, length, flags);
}

int close(int file) {
    char path[8192];
    int is_watched = root_length != 0 && watched_file(file, path) &&
                     (fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY;
    int is_failed = is_watched && fails_whole("close");
    int result = (int)syscall(SYS_close, file);  // an error of close comes when it is closed
    if (is_failed) {
        errno = failure;
        return -1;
    }
    return result;
}

static int rename_at(int folder, const char *name, int other_folder, const char *other_name,
                     unsigned flags) {
    char path[8192], other[8192];
    int is_watched = watched(folder, name, path);
    is_watched |= watched(other_folder, other_name, other);
    if (is_watched && fails_whole("rename")) return -1;
    int result = (int)syscall(SYS_renameat2, folder, name, other_folder, other_name, flags);
    if (is_watched && result == 0)
        note("rename", path, other, 0, "", 0);
    return result;
}
int rename(const char *from, const char *to) {
    return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int folder, const char *from, int other, const char *to) {
    return rename_at(folder, from, other, to, 0);
}
int renameat2(int folder, const char *from, int other, const char *to, unsigned flags) {
    return rename_at(folder, from, other, to, flags);
}

static int unlink_at(int folder, const char *name, int flags) {
    char path[8192];
    int is_watched = watched(folder, name, path);
    const char *call = flags & AT_REMOVEDIR ? "rmdir" : "unlink";
    if (is_watched && fails_whole(call)) return -1;
    int result = (int)syscall(SYS_unlinkat, folder, name, flags);
    if (is_watched && result == 0) note(call, path, "", 0, "", 0);
    return result;
}
int unlink(const char *path) { return unlink_at(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlink_at(AT_FDCWD, path, AT_REMOVEDIR); }
int unlinkat(int folder, const char *path, int flags) { return unlink_at(folder, path, flags); }

static int mkdir_at(int folder, const char *name, mode_t mode) {
    char path[8192];
    int is_watched = watched(folder, name, path);
    if (is_watched && fails_whole("mkdir")) return -1;
    int result = (int)syscall(SYS_mkdirat, folder, name, mode);
    if (is_watched && result == 0) note("mkdir", path, "", 0, "", 0);
    return result;
}
int mkdir(const char *path, mode_t mode) { return mkdir_at(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return mkdir_at(folder, path, mode); }
